//! Copies between memories that others may write.

use super::prefetch::{ASKED, own_soon};
use std::sync::LazyLock;

/// Bytes of a cache line.
pub(crate) const LINE: usize = 64;

/// From here on the processor's own way of moving what is long ([`Long`]). Below, what it takes to begin costs more.
const LONG_MIN: usize = 512;

/// The shortest batch of frames that goes backwards, by its longest frame ([`Backwards`](super::backwards)).
pub(crate) const BACKWARDS_MIN: usize = LONG_MIN;

/// Bytes that are on their way before they are written ([`Long::Ahead`]). Twice as many are no better, and three times worse.
const AHEAD: usize = 8 * LINE;

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
struct Far {
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
    stores: Stores,
    long: Long,
    /// To a guest on another cache, past ours; how it is known.
    far: Option<Far>,
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
enum Long {
    /// By a string move. It takes whole lines without reading what they held (AMD, 1518-byte frames whose payload the receiver reads: 546 → 357 cycles when it sits on another cache, 137 → 124 on the same).
    String,
    /// Line by line, but large segments by a string move. That of a processor without AVX-512 sends the lines on to where the reader finds them only slowly once
    /// others of the host want the last-level cache (Zen 3: 9000-byte frames whose payload is read, 0.9 Mpps, by lines 2.1; 1518 bytes 5.4 to 12.7, by lines 8.1 to 13.0). Large segments, which come from cold memory and go to cold
    /// memory, are faster by it everywhere.
    Lines,
    /// The same, and a batch of frames backwards ([`Backwards`](super::backwards)): of AMD's family 25 with AVX-512 (Zen 4, 1518-byte frames as above: 1900 → 1190 cycles when it sits on another cache, 410 → 320 on the same).
    Backwards,
    /// Line by line, with those of the destination asked for [`AHEAD`], but jumbo frames by a string move, which is as fast for them. Intel's stores wait for their lines one after the other, a string move's too, where they could be on
    /// their way together (a Xeon, 1518-byte frames as above: 459 → 340 cycles).
    Ahead,
}

impl Long {
    /// From so many bytes on a string move.
    #[inline]
    fn string_min(self) -> usize {
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

    /// The widest stores.
    #[inline]
    pub(super) fn stores(self) -> Stores {
        self.stores
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

    /// Copies as [`copy`] does.
    ///
    /// # Safety
    /// As for [`copy`].
    #[inline(always)]
    pub(super) unsafe fn copy(self, to: *mut u8, from: *const u8, len: usize) {
        // SAFETY: the caller's promise.
        unsafe { copy_by(to, from, len, self) };
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

/// Copies `len` bytes. Some may be read and written twice.
///
/// # Safety
/// `from` is readable and `to` writable for `len` bytes. Either may change meanwhile, and they may overlap if nobody minds what arrives.
#[inline]
pub(super) unsafe fn copy(to: *mut u8, from: *const u8, len: usize) {
    // SAFETY: the caller's promise.
    unsafe { copy_by(to, from, len, Copier::here()) };
}

/// The same for a part of a frame that goes to several buffers, large segments mostly: from [`LONG_MIN`] on a string move whatever the processor.
///
/// # Safety
/// As for [`copy`].
#[inline]
pub(super) unsafe fn copy_part(to: *mut u8, from: *const u8, len: usize) {
    let copier = Copier::here();
    match len {
        // SAFETY: the caller's promise, and 64 <= len.
        LONG_MIN.. => unsafe { move_string(to, from, len, copier.stores) },
        // SAFETY: the caller's promise.
        _ => unsafe { copy_by(to, from, len, copier) },
    }
}

/// The same as [`copy`], by whoever has asked how before.
///
/// # Safety
/// As for [`copy`].
#[inline]
unsafe fn copy_by(to: *mut u8, from: *const u8, len: usize, copier: Copier) {
    let Copier { stores, long, .. } = copier;
    match len {
        // SAFETY: the caller's promise, and 64 <= len.
        LONG_MIN.. if len >= long.string_min() => unsafe { move_string(to, from, len, stores) },
        // SAFETY: the caller's promise, and 128 <= len.
        LONG_MIN.. if long == Long::Ahead => unsafe { ahead(to, from, len, stores) },
        // SAFETY: the caller's promise, and 64 <= len.
        64.. => unsafe { lines(to, from, len, stores) },
        // SAFETY: in each arm, the caller's promise and the arm's range.
        32.. => unsafe { halves(to, from, len, stores) },
        // SAFETY: as above.
        16.. => unsafe { ends::<16>(to, from, len) },
        // SAFETY: as above.
        8.. => unsafe { ends::<8>(to, from, len) },
        // SAFETY: as above.
        4.. => unsafe { ends::<4>(to, from, len) },
        // SAFETY: as above.
        2.. => unsafe { ends::<2>(to, from, len) },
        // SAFETY: as above.
        1 => unsafe { one::<1>(to, from) },
        0 => {}
    }
}

/// A string move that begins where a line of the destination does: 2 to 3 % less for 1518-byte frames than from wherever the body begins.
///
/// # Safety
/// As for [`copy`], and `len >= 64`.
#[inline]
unsafe fn move_string(to: *mut u8, from: *const u8, len: usize, stores: Stores) {
    let before = to_next_line(to);
    // SAFETY: `64 <= len`.
    unsafe { line(to, from, stores) };
    // SAFETY: `before <= 64 <= len`.
    unsafe { string(to.wrapping_add(before), from.wrapping_add(before), len - before) };
}

/// Line by line of the destination, each asked for [`AHEAD`] bytes before it is written, and none behind the last.
///
/// # Safety
/// As for [`copy`], and `len >= 128`.
#[inline]
unsafe fn ahead(to: *mut u8, from: *const u8, len: usize, stores: Stores) {
    let (first, before) = (to, to_next_line(to));
    let (to, body, len) = (to.wrapping_add(before), from.wrapping_add(before), len - before);
    own_soon(first);
    for at in (0..len.min(AHEAD)).step_by(64) {
        own_soon(to.wrapping_add(at));
    }
    // SAFETY: `64 <= len`.
    unsafe { line(first, from, stores) };
    let mut at = 0;
    while at + AHEAD < len {
        own_soon(to.wrapping_add(at + AHEAD));
        // SAFETY: `at + 64 < len`.
        unsafe { line(to.wrapping_add(at), body.wrapping_add(at), stores) };
        at += 64;
    }
    // SAFETY: what is left, at least 64 bytes: there were, and the loop ends where more than `AHEAD - 64` are left.
    unsafe { lines(to.wrapping_add(at), body.wrapping_add(at), len - at, stores) };
}

/// Bytes up to where the next line begins, 1 to 64.
#[inline]
fn to_next_line(at: *mut u8) -> usize {
    64 - at.addr() % 64
}

/// `len` bytes by 64, the last ones counted from the end.
///
/// # Safety
/// As for [`copy`], and `len >= 64`.
#[inline]
unsafe fn lines(to: *mut u8, from: *const u8, len: usize, stores: Stores) {
    let last = len - 64;
    let mut at = 0;
    while at < last {
        // SAFETY: `at + 64 < len`.
        unsafe { line(to.wrapping_add(at), from.wrapping_add(at), stores) };
        at += 64;
    }
    // SAFETY: `last + 64 == len`.
    unsafe { line(to.wrapping_add(last), from.wrapping_add(last), stores) };
}

/// 64 bytes.
///
/// # Safety
/// As for [`copy`].
#[inline]
unsafe fn line(to: *mut u8, from: *const u8, stores: Stores) {
    match stores {
        // SAFETY: the caller's promise, and the processor can.
        #[cfg(target_arch = "x86_64")]
        Stores::Avx512 => unsafe { line_avx512(to, from) },
        // SAFETY: the caller's promise.
        _ => unsafe { one::<64>(to, from) },
    }
}

/// `32 <= len <= 64` bytes, as the first and the last 32.
///
/// # Safety
/// As for [`copy`].
#[inline]
unsafe fn halves(to: *mut u8, from: *const u8, len: usize, stores: Stores) {
    let last = len - 32;
    match stores {
        #[cfg(target_arch = "x86_64")]
        Stores::Avx512 => {
            // SAFETY: the caller's promise, and the processor can.
            unsafe { half_avx512(to, from) };
            // SAFETY: `last + 32 == len`.
            unsafe { half_avx512(to.wrapping_add(last), from.wrapping_add(last)) };
        }
        // SAFETY: the caller's promise.
        _ => unsafe { ends::<32>(to, from, len) },
    }
}

/// 64 bytes in one store.
///
/// # Safety
/// As for [`copy`]; AVX-512 is there.
#[cfg(target_arch = "x86_64")]
#[inline]
unsafe fn line_avx512(to: *mut u8, from: *const u8) {
    // SAFETY: reads and writes exactly the ranges that the caller promised, at any address. Register 16 exists only for code that knows of
    // AVX-512: no one else keeps anything there, and nothing has to be cleared after it.
    unsafe {
        std::arch::asm!(
            "vmovdqu64 zmm16, [{from}]",
            "vmovdqu64 [{to}], zmm16",
            from = in(reg) from,
            to = in(reg) to,
            options(nostack, preserves_flags)
        );
    }
}

/// 32 bytes in one store.
///
/// # Safety
/// As for [`copy`]; AVX-512 is there, for short vectors too.
#[cfg(target_arch = "x86_64")]
#[inline]
unsafe fn half_avx512(to: *mut u8, from: *const u8) {
    // SAFETY: as for `line_avx512`.
    unsafe {
        std::arch::asm!(
            "vmovdqu64 ymm16, [{from}]",
            "vmovdqu64 [{to}], ymm16",
            from = in(reg) from,
            to = in(reg) to,
            options(nostack, preserves_flags)
        );
    }
}

/// `N <= len <= 2 * N` bytes, as the first and the last `N`.
///
/// # Safety
/// As for [`copy`].
#[inline]
unsafe fn ends<const N: usize>(to: *mut u8, from: *const u8, len: usize) {
    let last = len - N;
    // SAFETY: `N <= len`.
    unsafe { one::<N>(to, from) };
    // SAFETY: `last + N == len`.
    unsafe { one::<N>(to.wrapping_add(last), from.wrapping_add(last)) };
}

/// `N` bytes, read whole before any is written.
///
/// # Safety
/// As for [`copy`].
#[inline]
unsafe fn one<const N: usize>(to: *mut u8, from: *const u8) {
    // SAFETY: the caller's promise; any bytes are `[u8; N]`, at any address.
    let bytes = unsafe { from.cast::<[u8; N]>().read_unaligned() };
    // SAFETY: likewise.
    unsafe { to.cast::<[u8; N]>().write_unaligned(bytes) };
}

/// # Safety
/// As for [`copy`].
#[cfg(target_arch = "x86_64")]
#[inline]
unsafe fn string(to: *mut u8, from: *const u8, len: usize) {
    // SAFETY: reads and writes exactly the ranges that the caller promised, byte by byte as the processor sees fit; the direction
    // flag is clear by the calling convention.
    unsafe {
        std::arch::asm!(
            "rep movsb",
            inout("rcx") len => _,
            inout("rdi") to => _,
            inout("rsi") from => _,
            options(nostack, preserves_flags)
        );
    }
}

/// # Safety
/// As for [`copy`].
#[cfg(not(target_arch = "x86_64"))]
#[inline]
unsafe fn string(to: *mut u8, from: *const u8, len: usize) {
    // SAFETY: the caller's promise; `ptr::copy` allows overlap.
    unsafe { std::ptr::copy(from, to, len) };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every one that this processor can.
    fn ways() -> impl Iterator<Item = Copier> {
        let all = [Long::String, Long::Lines, Long::Backwards, Long::Ahead];
        let stores = [Copier::here().stores, Stores::Common];
        stores
            .into_iter()
            .flat_map(move |stores| all.map(|long| Copier { stores, long, far: None }))
    }

    #[test]
    fn every_length_is_copied_whole_and_nothing_else() {
        let from: Vec<u8> = (0..20_000).map(|at| (at % 251) as u8 + 1).collect();
        for len in (0..700).chain([1023, 1024, 1025, 1299, 9001, 16_383, 16_384, 19_999]) {
            for copier in ways() {
                let mut to = vec![0; 20_100];
                let (into, out) = (to.as_mut_ptr().wrapping_add(3), from.as_ptr().wrapping_add(1));
                // SAFETY: both are longer, from the third byte on.
                unsafe { copy_by(into, out, len, copier) };
                assert_eq!(to[3..3 + len], from[1..1 + len], "{len} {copier:?}");
                assert!(
                    to[..3].iter().chain(&to[3 + len..]).all(|&byte| byte == 0),
                    "{len} {copier:?}"
                );

                to.fill(0);
                // SAFETY: likewise.
                unsafe { copy_part(to.as_mut_ptr().wrapping_add(3), out, len) };
                assert_eq!(to[3..3 + len], from[1..1 + len], "a part of {len}");
                assert!(to[..3].iter().chain(&to[3 + len..]).all(|&byte| byte == 0), "{len}");
            }
        }
    }

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
