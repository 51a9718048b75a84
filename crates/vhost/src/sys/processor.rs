//! What is known of this processor: how it copies best, and what tells that a guest is on another cache.

use super::copy::LINE;
use super::prefetch::ASKED;
use std::sync::LazyLock;

/// From here on the processor's own way of moving what is long ([`Long`]). Below, what it takes to begin costs more.
pub(super) const LONG_MIN: usize = 512;

/// The shortest batch of frames that goes backwards, by its longest frame ([`Backwards`](super::backwards)).
pub(crate) const BACKWARDS_MIN: usize = LONG_MIN;

/// The first line of a long frame that is copied whole: the copy finds the next ones on their way.
const FIRST: usize = LINE;

/// Header and head of one that is looked at, wherever in a line they begin.
const LOOKED_AT: usize = 2 * LINE;

/// From how many cycles of a line (64 bytes, read and written) on a guest is taken to be on another cache ([`Copier::far_line`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Bounds {
    /// One that was near until now.
    pub(crate) of_near: u64,
    /// One that was far.
    pub(crate) of_far: u64,
}

impl Bounds {
    /// The same, wherever it was.
    pub(crate) const fn one(cycles: u64) -> Self {
        Self { of_near: cycles, of_far: cycles }
    }
}

/// How a processor tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Far {
    /// By frames.
    frames: Bounds,
    /// By large segments, which go by string moves.
    large: Bounds,
}

/// Zen 4. Chosen, batches of 256 to 9000 bytes: of 2000 looks at a near driver all but 15 at most took 2 to 20, of as many at a far one 30 to 70.
/// Large segments from cold memory take 26 at most nine times in ten, wherever the driver is (a busy host, testpmd's), and once they went past the caches, which leaves the next ones cold, 22 to 38. Those
/// that a far driver reads and writes take 36 and more nine times in ten, and once they went past the caches 64 and more (docs/decisions/0023).
const ZEN_4: Far = Far { frames: Bounds::one(26), large: Bounds { of_near: 40, of_far: 52 } };

/// Zen 3. Frames: of 20 000 looks and more at a near driver 99 in a hundred took 3 to 9, of as many at a far one 15 to 50, most of them 18 to 28. Large segments: from cold memory they take 17 wherever the driver is.
const ZEN_3: Far = Far { frames: Bounds::one(13), large: Bounds::one(26) };

/// How this processor copies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Copier {
    /// The widest.
    pub(super) stores: Stores,
    pub(super) long: Long,
    /// To a guest on another cache, past ours; how it is known.
    pub(super) far: Option<Far>,
}

/// The widest stores.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stores {
    /// 64 bytes and 32.
    Avx512,
    /// What every processor of the architecture has.
    Common,
}

/// How 512 bytes and more are moved (docs/decisions/0012 has the figures).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Long {
    /// By a string move. It takes whole lines without reading what they held (AMD, 1518-byte frames whose payload the receiver reads: 546 → 357 cycles when it sits on another cache, 137 → 124 on the same).
    String,
    /// Line by line, but large segments by a string move. That of a processor without AVX-512 sends the lines on to where the reader finds them only slowly once
    /// others of the host want the last-level cache (Zen 3: 9000-byte frames whose payload is read, 0.9 Mpps, by lines 2.1; 1518 bytes 5.4 to 12.7, by lines 8.1 to 13.0). Large segments, which come from cold memory and go to cold
    /// memory, are faster by it everywhere.
    Lines,
    /// The same, and a batch of frames backwards ([`Backwards`](super::backwards)): of AMD's family 25 with AVX-512 (Zen 4, 1518-byte frames as above: 1900 → 1190 cycles when it sits on another cache, 410 → 320 on the same).
    Backwards,
    /// Line by line, with those of the destination asked for some way ahead, but jumbo frames by a string move, which is as fast for them. Intel's stores wait for their lines one after the other, a string move's too, where they could be on
    /// their way together (a Xeon, 1518-byte frames as above: 459 → 340 cycles).
    Ahead,
}

impl Long {
    /// From so many bytes on a string move.
    #[inline]
    pub(super) fn string_min(self) -> usize {
        match self {
            Self::String => LONG_MIN,
            Self::Lines | Self::Backwards => 16 << 10,
            Self::Ahead => 4 << 10,
        }
    }
}

/// Asked once: within a virtual machine the processor's answer costs a way to the host.
static HERE: LazyLock<Copier> = LazyLock::new(Copier::ask);

impl Copier {
    /// This processor's.
    #[inline]
    pub(crate) fn here() -> Self {
        *HERE
    }

    #[cfg(target_arch = "x86_64")]
    fn ask() -> Self {
        let has_avx512 =
            is_x86_feature_detected!("avx512vl") && is_x86_feature_detected!("avx512bw");
        let stores = if has_avx512 { Stores::Avx512 } else { Stores::Common };
        let (long, far) = match (vendor(), family()) {
            (AMD, 25) if has_avx512 => (Long::Backwards, Some(ZEN_4)),
            (AMD, 25) => (Long::Lines, Some(ZEN_3)),
            (INTEL, _) if has_avx512 => (Long::Ahead, None),
            _ if has_avx512 => (Long::String, None),
            _ => (Long::Lines, None),
        };
        Self { stores, long, far: far.filter(|_| has_clflushopt()) }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn ask() -> Self {
        Self { stores: Stores::Common, long: Long::String, far: None }
    }

    /// Whether copies of which the longest has so many bytes are best taken from the last to the first ([`Backwards`](super::backwards)).
    #[inline]
    pub(super) fn goes_backwards(self, longest: usize) -> bool {
        self.long == Long::Backwards && (BACKWARDS_MIN..self.long.string_min()).contains(&longest)
    }

    /// Whether what goes to a guest on another cache is best written past ours ([`Past`](super::past)).
    #[inline]
    pub(super) fn goes_past(self) -> bool {
        self.far.is_some()
    }

    /// If so, from how many cycles on, of which the longest of a batch has so many bytes, its guest is on one.
    #[inline]
    pub(crate) fn far_line(self, longest: usize) -> Option<Bounds> {
        let is_large = longest >= self.long.string_min();
        self.far.map(|far| if is_large { far.large } else { far.frames })
    }

    /// Of a frame of `len` bytes, how many at its beginning are worth asking for before its turn comes ([`prefetch_lines`](super::prefetch::prefetch_lines)). Of one whose lines are asked for when it is copied, only the
    /// first, or what is looked at: what else is on its way then is in the way.
    #[inline]
    pub(crate) fn asked(self, len: usize, is_looked_at: bool) -> usize {
        let asks = matches!(self.long, Long::Ahead | Long::Backwards);
        let is_asked_for = asks && (LONG_MIN..self.long.string_min()).contains(&len);
        match (is_asked_for, is_looked_at) {
            (false, _) => len.min(ASKED),
            (true, false) => FIRST,
            (true, true) => LOOKED_AT,
        }
    }
}

#[cfg(target_arch = "x86_64")]
const AMD: [u8; 12] = *b"AuthenticAMD";
#[cfg(target_arch = "x86_64")]
const INTEL: [u8; 12] = *b"GenuineIntel";

/// Leaf 0 spells it (Intel's manual, volume 2A, CPUID; AMD's, volume 3, appendix E.3.1).
#[cfg(target_arch = "x86_64")]
fn vendor() -> [u8; 12] {
    let leaf = std::arch::x86_64::__cpuid(0);
    let mut name = [0; 12];
    name.as_chunks_mut().0.copy_from_slice(&[leaf.ebx, leaf.edx, leaf.ecx].map(u32::to_le_bytes));
    name
}

/// Leaf 1: the base family, and if that is 15 the extended one added (AMD's manual, volume 3, appendix E.3.2). 25 is Zen 3 and, with AVX-512, Zen 4.
#[cfg(target_arch = "x86_64")]
fn family() -> u32 {
    let signature = std::arch::x86_64::__cpuid(1).eax;
    match signature >> 8 & 0xf {
        15 => 15 + (signature >> 20 & 0xff),
        base => base,
    }
}

/// Leaf 7 (AMD's manual, volume 3, appendix E.3.6). The standard library's macro does not know of it.
#[cfg(target_arch = "x86_64")]
fn has_clflushopt() -> bool {
    std::arch::x86_64::__cpuid(0).eax >= 7
        && std::arch::x86_64::__cpuid_count(7, 0).ebx >> 23 & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_segments_have_bounds_of_their_own() {
        let by = |far| Copier { stores: Stores::Common, long: Long::Lines, far };
        let bounds = |copier: Copier| [192, 9000, 16 << 10].map(|len| copier.far_line(len));
        let Far { frames, large } = ZEN_4;
        assert_ne!(frames, large);
        assert_eq!(bounds(by(Some(ZEN_4))), [Some(frames), Some(frames), Some(large)]);
        assert_eq!(bounds(by(None)), [None; 3], "nobody goes past");
        assert!(!by(None).goes_past() && by(Some(ZEN_4)).goes_past());
    }
}
