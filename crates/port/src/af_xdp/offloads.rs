//! Offloads that AF_XDP cannot live with, or not without: switched while the port is open.
//!
//! * A VLAN tag beside the frame: XDP sees the frame without it, so it would be switched in another VLAN. A card keeps its tags in the
//!   frame when it no longer strips them, a veth when its other end inserts them itself. Where neither can be had, the port is refused.
//! * Frames larger than a UMEM frame. The native hook of a veth makes the kernel switch off its other end's segmentation by itself. At the
//!   generic hook, that and the interface's own receive merging are switched off here. What remains is dropped by the kernel and counted
//!   as `too_big`.
//! * A veth takes redirected frames only while its other end merges what it receives (GRO). Where flows go past the workers it does.
//! * A veth drops frames that are longer than the MTU of the end that receives them and one tag, counted with the tags that are in them. Its MTU is
//!   [`SECOND_TAG`] higher while the port is open, and nobody is told that it has more.

use crate::error::OpenError;
use crate::interface::Interface;
use crate::peer;
use crate::settings::{Changed, Is, Notes, Place};
use netlink::{Change, Link, Netlink};
use std::io;
use xdp::Mode;

/// Tags of received frames, 802.1Q and 802.1ad, are taken out of the frame.
const STRIP_TAGS: [&str; 2] = ["rx-vlan-hw-parse", "rx-vlan-stag-hw-parse"];
/// Tags of frames to send are left to be put into the frame by the device.
const INSERT_TAGS: [&str; 2] = ["tx-vlan-hw-insert", "tx-vlan-stag-hw-insert"];
/// Received frames are merged.
const MERGE: [&str; 1] = ["rx-gro"];
/// Frames larger than the MTU are left to the device, or to the moment before it.
const SEGMENT: [&str; 6] = [
    "tx-tcp-segmentation",
    "tx-tcp-accecn-segmentation",
    "tx-tcp-ecn-segmentation",
    "tx-tcp-mangleid-segmentation",
    "tx-tcp6-segmentation",
    "tx-generic-segmentation",
];

const VETH: &str = "veth";
const OTHER_END: &str = "its other end";
/// Bytes that a second tag takes.
const SECOND_TAG: u32 = 4;

/// The interface, its other end if it is a veth, and what was changed on both.
pub(super) struct Offloads {
    own: Place,
    peer: Option<io::Result<Place>>,
    changed: Changed,
    /// How often tags had to be kept again.
    kept_again: u32,
}

impl Offloads {
    /// Nothing changed yet, but for what a port of a process before did. What changes is noted in `notes`.
    pub(super) fn of(interface: &Interface, link: &Link, notes: &Notes) -> Result<Self, OpenError> {
        let own = Place::new(interface.netns(), link.index);
        let own = own.map_err(|source| OpenError::io(&link.name, "read its namespace", source))?;
        let changed = notes.of(&own);
        let peer = link.peer.map(|peer| peer::place(interface, peer));
        Ok(Self { own, peer, changed, kept_again: 0 })
    }

    /// Has VLAN tags stay in frames, before the first one is received.
    pub(super) fn keep_tags(&mut self, interface: &str) -> Result<(), OpenError> {
        let refused = |why: String| OpenError::Tags { interface: interface.to_owned(), why };
        let (place, names, whose) = match &self.peer {
            None => (&self.own, &STRIP_TAGS, "its driver takes them out of frames"),
            Some(Ok(peer)) => (peer, &INSERT_TAGS, "its other end leaves them beside frames"),
            Some(Err(_)) => {
                let why = "its other end is in a network namespace that has no name and no process";
                return Err(refused(why.into()));
            }
        };
        match self.changed.switch(place, names, Is::Off) {
            Ok((_, still)) if still.is_empty() => Ok(()),
            Ok((_, still)) => {
                Err(refused(format!("{whose}: {} cannot be switched off", still.join(" and "))))
            }
            Err(error) => {
                Err(refused(format!("{whose}, and that cannot be switched off ({error})")))
            }
        }
    }

    /// Switches off what makes large frames, as far as the kernel does not, and notes it.
    pub(super) fn keep_small(&mut self, hook: Mode, link: &Link, notes: &mut Vec<String>) {
        if hook == Mode::Native {
            return;
        }
        let own = self.changed.switch(&self.own, &MERGE, Is::Off);
        note(&link.name, own, notes);
        if let Some(Ok(peer)) = &self.peer {
            note(OTHER_END, self.changed.switch(peer, &SEGMENT, Is::Off), notes);
        }
    }

    /// Has the interface take redirected frames, if it is a veth; who switches that off again is obeyed. Frames that the socket sends meet them
    /// in the ring then: a veth that segments hands the former on past it (`veth_skb_is_eligible_for_gro`).
    pub(super) fn take_frames(&mut self, hook: Mode, notes: &mut Vec<String>) {
        let (Mode::Native, Some(Ok(peer))) = (hook, &self.peer) else { return };
        match self.changed.switch(&self.own, &SEGMENT, Is::Off) {
            Ok((off, _)) if off.is_empty() => {}
            Ok(_) => notes.push("its own segmentation switched off while the port is open: flows go past the worker".into()),
            Err(error) => notes.push(format!("its own segmentation cannot be switched off ({error}): frames may come late when flows move")),
        }
        match self.changed.switch(peer, &MERGE, Is::On) {
            Ok((on, _)) if on.is_empty() => {}
            Ok(_) => notes.push(format!("GRO of {OTHER_END} switched on while the port is open: flows go past the worker to it")),
            Err(error) => notes.push(format!("GRO of {OTHER_END} cannot be switched on ({error})")),
        }
    }

    /// Has tags stay in frames again, if the owner of a veth's other end has switched that otherwise. True if so.
    pub(super) fn look(&mut self) -> bool {
        let Some(Ok(peer)) = &self.peer else { return false };
        let state = peer.offloads(|offloads| offloads.state(peer.index));
        if state.is_ok_and(|state| state.active(&INSERT_TAGS).is_empty()) {
            return false;
        }
        // An end that is gone is no news of this kind.
        let kept = self.changed.switch(peer, &INSERT_TAGS, Is::Off).is_ok();
        self.kept_again += u32::from(kept);
        kept
    }

    /// What became of tags meanwhile.
    pub(super) fn note(&self) -> Option<String> {
        let times = self.kept_again;
        (times > 0).then(|| format!("{OTHER_END} left VLAN tags beside frames again, which seemed untagged until that was switched off: {times} times"))
    }

    /// Has full-size frames with two tags come in: the interface gets `mtu` and room for the second.
    pub(super) fn set_mtu(&mut self, link: &Link, mtu: u32, netlink: &Netlink) -> io::Result<()> {
        let change = |change| netlink.change(link.index, change);
        match link.kind.as_str() {
            VETH => self.changed.raise_mtu(&self.own, (mtu, SECOND_TAG), change),
            _ if link.mtu == mtu => Ok(()),
            _ => change(Change::Mtu(mtu)),
        }
    }

    /// The interface as everybody is told of it: without the room for a second tag.
    pub(super) fn told(&self, link: Link) -> Link {
        Link { mtu: self.changed.mtu(link.mtu), ..link }
    }

    /// The port is open.
    pub(super) fn own(&mut self, notes: &Notes) {
        notes.own(&mut self.changed);
    }

    /// Everything stays as it is until the next start.
    pub(super) fn leave(mut self) {
        self.changed.leave();
    }

    /// Everything as it was before.
    pub(super) fn put_back(mut self) -> io::Result<()> {
        self.changed.put_back()
    }
}

fn note(of: &str, switched: io::Result<(Vec<String>, Vec<String>)>, notes: &mut Vec<String>) {
    match switched {
        Ok((off, _)) if off.is_empty() => {}
        Ok((off, _)) => notes.push(format!("{} of {of} switched off while the port is open", off.join(", "))),
        Err(error) => notes.push(format!("offloads of {of} cannot be switched off ({error}): larger frames will be dropped as too_big")),
    }
}
