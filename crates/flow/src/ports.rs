//! The ports of one switch as the workers see them: may a packet come in here, may it go out there, and where does a
//! flood go?
//!
//! Immutable: the control thread builds a new table at every change. All answers are computed then, so that a worker
//! only looks them up: a port in one array access, a flood list in two.

use crate::action::PortNo;
use crate::storm::Storm;
use std::sync::Arc;
use wire::DropReason;

/// Port numbers below this are found by index, others by binary search. Chosen: switches number their ports from 1.
const INDEXED: PortNo = 4096;

/// "No such place" in [`PortTable::index`] and [`Entry`].
const NOWHERE: u32 = u32::MAX;

/// What the pipeline must know of a port (OpenFlow 1.3.5 §7.2.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PortState {
    /// Its number, local to the switch.
    pub number: PortNo,
    /// Administratively up and with a link: packets can leave, and groups that watch it find it alive.
    pub live: bool,
    /// `OFPPC_NO_FLOOD` (OpenFlow 1.0): left out of floods.
    pub no_flood: bool,
    /// `OFPPC_NO_FWD`: nothing leaves.
    pub no_fwd: bool,
    /// `OFPPC_NO_RECV`: what comes in is dropped.
    pub no_recv: bool,
    /// `OFPPC_NO_PACKET_IN`: a table miss does not go to the controller.
    pub no_packet_in: bool,
    /// This is the port that [`crate::Output::Local`] means.
    pub local: bool,
}

impl PortState {
    /// A port that is up and has no restriction.
    pub const fn up(number: PortNo) -> Self {
        Self {
            number,
            live: true,
            no_flood: false,
            no_fwd: false,
            no_recv: false,
            no_packet_in: false,
            local: false,
        }
    }

    /// Whether a packet may leave here.
    pub const fn egress(&self) -> Result<(), DropReason> {
        match (self.no_fwd, self.live) {
            (true, _) => Err(DropReason::PortNoForward),
            (_, false) => Err(DropReason::PortDown),
            _ => Ok(()),
        }
    }

    fn floods(&self) -> bool {
        self.egress().is_ok() && !self.no_flood
    }
}

/// A port and its places in the two lists ([`NOWHERE`] when it is not in one).
#[derive(Clone, Debug)]
struct Entry {
    state: PortState,
    in_all: u32,
    in_flood: u32,
    /// What its floods have left, over changes of the table.
    storm: Arc<Storm>,
}

/// The ports of one switch.
#[derive(Clone, Debug, Default)]
pub struct PortTable {
    /// By number, ascending.
    entries: Box<[Entry]>,
    /// Port number → place in `entries`, for numbers below [`INDEXED`].
    index: Box<[u32]>,
    /// Whether packets may leave by the port of each of these numbers.
    sends: Box<[bool]>,
    all: Ring,
    flood: Ring,
    local: Option<PortNo>,
}

impl PortTable {
    /// Builds the table. Of two states with one number, the later one counts.
    pub fn new(states: Vec<PortState>) -> Self {
        Self::after(&Self::default(), states)
    }

    /// Builds the table that follows `before`, likewise.
    pub(crate) fn after(before: &Self, mut states: Vec<PortState>) -> Self {
        states.reverse();
        states.sort_by_key(|port| port.number);
        states.dedup_by_key(|port| port.number);
        let all = Ring::of(states.iter().filter(|port| port.egress().is_ok()));
        let flood = Ring::of(states.iter().filter(|port| port.floods()));
        let entries = states.iter().map(|&state| Entry {
            state,
            in_all: all.place(state.number),
            in_flood: flood.place(state.number),
            storm: before.entry(state.number).map(|entry| entry.storm.clone()).unwrap_or_default(),
        });
        let index = index_of(&states);
        let sends = |&at: &u32| states.get(at as usize).is_some_and(|port| port.egress().is_ok());
        Self {
            entries: entries.collect(),
            sends: index.iter().map(sends).collect(),
            index,
            local: states.iter().find(|port| port.local).map(|port| port.number),
            all,
            flood,
        }
    }

    /// The port of that number.
    pub fn get(&self, number: PortNo) -> Option<&PortState> {
        self.entry(number).map(|entry| &entry.state)
    }

    /// Every port, by number.
    pub fn iter(&self) -> impl Iterator<Item = &PortState> {
        self.entries.iter().map(|entry| &entry.state)
    }

    /// Whether a packet may come in at this port.
    ///
    /// # Errors
    /// [`DropReason::NoPort`] and [`DropReason::PortNoReceive`].
    pub fn ingress(&self, number: PortNo) -> Result<(), DropReason> {
        match self.get(number) {
            None => Err(DropReason::NoPort),
            Some(port) if port.no_recv => Err(DropReason::PortNoReceive),
            Some(_) => Ok(()),
        }
    }

    /// Whether a packet may leave by this port.
    ///
    /// # Errors
    /// [`DropReason::NoPort`], [`DropReason::PortNoForward`] and [`DropReason::PortDown`].
    pub fn egress(&self, number: PortNo) -> Result<(), DropReason> {
        self.get(number).ok_or(DropReason::NoPort)?.egress()
    }

    /// Whether a packet may leave by this port, without the reason; perhaps false for numbers that are not found by index.
    #[inline]
    pub(crate) fn surely_sends(&self, number: PortNo) -> bool {
        self.sends.get(number as usize) == Some(&true)
    }

    /// Whether what came in by `in_port` may leave by this port, likewise.
    #[inline]
    pub(crate) fn surely_forwards(&self, in_port: PortNo, number: PortNo) -> bool {
        number != in_port && self.surely_sends(number)
    }

    /// Whether the port exists and is live.
    pub fn is_live(&self, number: PortNo) -> bool {
        self.get(number).is_some_and(|port| port.live)
    }

    /// The number of the local port.
    pub fn local(&self) -> Option<PortNo> {
        self.local
    }

    /// Number of ports.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no port.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Every port that can send, but `ingress` (`OFPP_ALL`); in no stated order.
    pub fn all_but(&self, ingress: PortNo) -> &[PortNo] {
        self.all.without(self.entry(ingress).map_or(NOWHERE, |entry| entry.in_all))
    }

    /// Every port that can send and floods, but `ingress` (`OFPP_FLOOD`); in no stated order.
    pub fn flood_but(&self, ingress: PortNo) -> &[PortNo] {
        self.flood.without(self.entry(ingress).map_or(NOWHERE, |entry| entry.in_flood))
    }

    /// What floods of this port have left; none if there is no such port.
    pub(crate) fn storm(&self, number: PortNo) -> Option<&Storm> {
        self.entry(number).map(|entry| &*entry.storm)
    }

    /// Frames that storm control has let go nowhere, by the port where they came in: ports of which there are any.
    pub fn storms(&self) -> impl Iterator<Item = (PortNo, u64)> {
        let cut = self.entries.iter().map(|entry| (entry.state.number, entry.storm.cut()));
        cut.filter(|(_, frames)| *frames > 0)
    }

    fn entry(&self, number: PortNo) -> Option<&Entry> {
        if let Some(&at) = self.index.get(number as usize) {
            return self.entries.get(at as usize);
        }
        let at = self.entries.binary_search_by_key(&number, |entry| entry.state.number).ok()?;
        Some(&self.entries[at])
    }
}

/// Places by number, as far as the numbers below [`INDEXED`] go.
fn index_of(states: &[PortState]) -> Box<[u32]> {
    let numbers = states.iter().map(|port| port.number).filter(|&number| number < INDEXED);
    let mut index = vec![NOWHERE; numbers.clone().max().map_or(0, |highest| highest as usize + 1)];
    for (at, number) in numbers.enumerate() {
        index[number as usize] = at as u32;
    }
    index.into()
}

/// A list written twice in a row, so that "all but the one at `i`" is one slice: `i + 1 .. i + n`.
#[derive(Clone, Debug, Default)]
struct Ring(Box<[PortNo]>);

impl Ring {
    fn of<'a>(ports: impl Iterator<Item = &'a PortState> + Clone) -> Self {
        Self(ports.clone().chain(ports).map(|port| port.number).collect())
    }

    fn place(&self, number: PortNo) -> u32 {
        self.0.iter().position(|&port| port == number).map_or(NOWHERE, |at| at as u32)
    }

    fn without(&self, place: u32) -> &[PortNo] {
        let count = self.0.len() / 2;
        match place {
            NOWHERE => &self.0[..count],
            at => &self.0[at as usize + 1..at as usize + count],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(ports: &[PortNo]) -> Vec<PortNo> {
        let mut ports = ports.to_vec();
        ports.sort_unstable();
        ports
    }

    fn five() -> PortTable {
        PortTable::new(vec![
            PortState::up(1),
            PortState { no_flood: true, ..PortState::up(2) },
            PortState { live: false, ..PortState::up(3) },
            PortState { no_fwd: true, no_recv: true, ..PortState::up(4) },
            PortState { local: true, ..PortState::up(0xffff_fffe) },
        ])
    }

    #[test]
    fn floods_leave_out_the_ingress_and_what_cannot_send() {
        let ports = five();
        assert_eq!(sorted(ports.all_but(1)), [2, 0xffff_fffe]);
        assert_eq!(sorted(ports.all_but(4)), [1, 2, 0xffff_fffe]);
        assert_eq!(sorted(ports.flood_but(2)), [1, 0xffff_fffe]);
        assert_eq!(sorted(ports.flood_but(0xffff_fffe)), [1]);
        assert_eq!(sorted(ports.flood_but(77)), [1, 0xffff_fffe]);
    }

    #[test]
    fn every_refusal_has_its_reason() {
        let ports = five();
        assert_eq!(ports.egress(1), Ok(()));
        assert_eq!(ports.egress(3), Err(DropReason::PortDown));
        assert_eq!(ports.egress(4), Err(DropReason::PortNoForward));
        assert_eq!(ports.egress(9), Err(DropReason::NoPort));
        assert_eq!(ports.egress(90_000), Err(DropReason::NoPort));
        assert_eq!(ports.ingress(4), Err(DropReason::PortNoReceive));
        assert_eq!(ports.ingress(3), Ok(()));
        assert_eq!(ports.local(), Some(0xffff_fffe));
    }

    #[test]
    fn of_two_states_with_one_number_the_later_counts() {
        let ports =
            PortTable::new(vec![PortState::up(1), PortState { live: false, ..PortState::up(1) }]);
        assert_eq!((ports.len(), ports.is_live(1)), (1, false));
    }

    #[test]
    fn an_empty_switch_floods_nowhere() {
        assert!(PortTable::default().flood_but(1).is_empty());
    }
}
