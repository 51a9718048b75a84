//! Probes as frames: Ethernet, on long ones two VLAN tags, the local experimental type (IEEE 802), then in network order:
//!
//! `magic` 0..4, `path` 4..8, `long` 8, `sequence` 9..13, `sent` 13..21 (ns of the sender's own clock), `pause` 21..23 (ms to its next), then what
//! the sender says of what it receives: `verdict` 23, `probes` and `lost` 24..32, `stamp` 32..40 (the newest `sent` of the other side), `held` 40..48 (ns
//! since it came). Four texts follow, each behind its length in a byte: the sender's node, its part, the link, and why the verdict is not good. Zeros fill a
//! long probe, so that it is as long as a frame of the link with two tags may be.

use super::end::{Report, Verdict};
use api::{CircuitSpec, WayView};

const MAGIC: [u8; 4] = *b"sup2";
/// Local experimental Ethertype 1.
const ETHERTYPE: u16 = 0x88b5;
/// The tags of a long probe: a service tag and a customer tag, whose numbers nobody has by habit.
const TAGS: [u16; 4] = [0x88a8, 2731, 0x8100, 1366];
const ETHERNET: usize = 14;
/// Longest text that is carried; of longer ones the first bytes are.
const TEXT_MAX: usize = 160;

/// A probe.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Probe {
    /// Tunnel id of the path's frames.
    pub path: u32,
    /// Whether it is as long as a frame of the link may be.
    pub long: bool,
    /// Counts pairs of probes.
    pub sequence: u32,
    /// By the sender's clock.
    pub sent: u64,
    /// Until its next pair, in ms.
    pub pause: u16,
    /// What the sender has received.
    pub report: Report,
    /// The sender's node.
    pub from: String,
    /// The part that declares the link there.
    pub part: String,
    /// The link.
    pub link: String,
}

/// A probe as it came.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Came {
    /// The path whose rule it came by; 0: a tag that no rule knows.
    pub by: u32,
    /// What it says.
    pub probe: Probe,
    /// What was done to its tags on the way.
    pub tags: Result<(), String>,
}

impl Probe {
    /// The frame, to the address by which rules tell paths apart.
    pub fn to_frame(&self, mtu: u16) -> Vec<u8> {
        let mut frame = CircuitSpec::probe_address(self.path).to_vec();
        let mut source = CircuitSpec::probe_address(self.path);
        source[1] = b'n';
        frame.extend(source);
        let tags = if self.long { &TAGS[..] } else { &[] };
        tags.iter().chain([&ETHERTYPE]).for_each(|word| frame.extend(word.to_be_bytes()));
        frame.extend(MAGIC);
        frame.extend(self.path.to_be_bytes());
        frame.push(self.long.into());
        frame.extend(self.sequence.to_be_bytes());
        frame.extend(self.sent.to_be_bytes());
        frame.extend(self.pause.to_be_bytes());
        let Report { verdict, way, stamp, held } = &self.report;
        frame.push(*verdict as u8);
        frame.extend(way.probes.to_be_bytes());
        frame.extend(way.lost.to_be_bytes());
        frame.extend(stamp.to_be_bytes());
        frame.extend(held.to_be_bytes());
        let why = way.why.as_deref().unwrap_or_default();
        for text in [&self.from, &self.part, &self.link, why] {
            let fits = (0..=text.len().min(TEXT_MAX)).rev().find(|&at| text.is_char_boundary(at));
            let text = &text.as_bytes()[..fits.unwrap_or(0)];
            frame.push(text.len() as u8);
            frame.extend(text);
        }
        if self.long {
            frame.resize(frame.len().max(ETHERNET + 2 * TAGS.len() + usize::from(mtu)), 0);
        }
        frame
    }

    /// The probe in a frame; nothing of another frame.
    pub fn of_frame(frame: &[u8]) -> Option<Came> {
        let mut rest = Reader(frame);
        let to = rest.take::<6>()?;
        let [.., x, y, z] = to;
        let by = u32::from_be_bytes([0, x, y, z]);
        rest.take::<6>()?;
        let mut tags = Vec::new();
        loop {
            match rest.word()? {
                ETHERTYPE => break,
                kind @ (0x8100 | 0x88a8) => tags.extend([kind, rest.word()?]),
                _ => return None,
            }
        }
        if to != CircuitSpec::probe_address(by) || rest.take()? != MAGIC {
            return None;
        }
        let path = u32::from_be_bytes(rest.take()?);
        let [long] = rest.take()?;
        let (sequence, sent) = (u32::from_be_bytes(rest.take()?), u64::from_be_bytes(rest.take()?));
        let pause = rest.word()?;
        let [verdict] = rest.take()?;
        let (probes, lost) = (u32::from_be_bytes(rest.take()?), u32::from_be_bytes(rest.take()?));
        let (stamp, held) = (u64::from_be_bytes(rest.take()?), u64::from_be_bytes(rest.take()?));
        let (from, part, link) = (rest.text()?, rest.text()?, rest.text()?);
        let why = Some(rest.text()?).filter(|why| !why.is_empty());
        let way = WayView { probes, lost, why };
        let report = Report { verdict: Verdict::of(verdict)?, way, stamp, held };
        let long = long != 0;
        let probe = Self { path, long, sequence, sent, pause, report, from, part, link };
        Some(Came { by, probe, tags: judge_tags(long, &tags) })
    }
}

/// What was done to a frame's tags.
fn judge_tags(long: bool, tags: &[u16]) -> Result<(), String> {
    let sent = if long { &TAGS[..] } else { &[] };
    if tags == sent {
        return Ok(());
    }
    let vids: Vec<_> = tags.chunks(2).map(|tag| (tag[1] & 0xfff).to_string()).collect();
    Err(match tags.len().cmp(&sent.len()) {
        std::cmp::Ordering::Less => "frames lose a VLAN tag on the way".into(),
        _ => format!("frames come with VLAN tag {}, which they were not sent with", vids[0]),
    })
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*first)
    }

    fn word(&mut self) -> Option<u16> {
        self.take().map(u16::from_be_bytes)
    }

    fn text(&mut self) -> Option<String> {
        let [len] = self.take()?;
        let (text, rest) = self.0.split_at_checked(usize::from(len))?;
        self.0 = rest;
        String::from_utf8(text.to_vec()).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn probe() -> impl Strategy<Value = Probe> {
        let why = prop::option::of("[a-z →:]{1,50}");
        let report = (0..4u8, any::<[u32; 2]>(), any::<[u64; 2]>(), why).prop_map(
            |(verdict, [probes, lost], [stamp, held], why)| {
                let way = WayView { probes, lost, why };
                Report { verdict: Verdict::of(verdict).unwrap(), way, stamp, held }
            },
        );
        let names = ("[a-z]{1,20}", "[0-9a-f]{32}", "[a-z:.]{1,40}");
        (0..1u32 << 23, any::<bool>(), any::<(u32, u64, u16)>(), report, names).prop_map(
            |(path, long, (sequence, sent, pause), report, (from, part, link))| Probe {
                path: path * 2,
                long,
                sequence,
                sent,
                pause,
                report,
                from,
                part,
                link,
            },
        )
    }

    proptest! {
        #[test]
        fn a_probe_is_read_as_it_is_sent_and_a_long_one_is_as_long_as_a_frame_may_be(
            probe in probe(), mtu in 400..9000u16,
        ) {
            let frame = probe.to_frame(mtu);
            if probe.long {
                prop_assert_eq!(frame.len(), 22 + usize::from(mtu));
            }
            prop_assert_eq!(Probe::of_frame(&frame), Some(Came { by: probe.path, probe, tags: Ok(()) }));
        }

        #[test]
        fn a_tag_that_comes_or_goes_on_the_way_is_told(probe in probe(), vid in 1..4095u16) {
            let mut frame = probe.to_frame(1500);
            frame.splice(12..12, [0x81, 0, (vid >> 8) as u8, vid as u8]);
            let came = Probe::of_frame(&frame).unwrap();
            prop_assert_eq!(&came.probe, &probe);
            let told = format!("frames come with VLAN tag {vid}, which they were not sent with");
            prop_assert_eq!(came.tags, Err(told));
            let mut frame = Probe { long: true, ..probe }.to_frame(1500);
            frame.drain(12..16);
            prop_assert_eq!(Probe::of_frame(&frame).unwrap().tags, Err("frames lose a VLAN tag on the way".into()));
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            Probe::of_frame(&bytes);
        }

        #[test]
        fn a_probe_that_was_cut_is_none(probe in probe(), cut in 1..60usize) {
            let frame = Probe { long: false, ..probe }.to_frame(1500);
            prop_assert_eq!(Probe::of_frame(&frame[..frame.len() - cut]), None);
        }
    }
}
