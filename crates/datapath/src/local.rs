//! A worker's own view of switches and ports: dense tables, no hashing, no sharing.

use crate::allowance::Allowance;
use crate::counters::SwitchBlock;
use crate::id::{PortIx, SwitchIx};
use crate::pending::Chain;
use crate::shape::{Departure, Shaper};
use crate::shared::PortShared;
use crate::switch::SwitchShared;
use flow::{Nanos, PortNo};
use port::TxQueue;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use wire::DropReason;

/// Where a port leads.
pub(crate) enum Sink {
    /// Out of this worker's half of the port.
    Queue(Box<dyn TxQueue>),
    /// Into the switch at the other end.
    Vlink(PortIx),
}

/// A port at one worker.
pub(crate) struct LocalPort {
    pub(crate) shared: Arc<PortShared>,
    pub(crate) switch: SwitchIx,
    pub(crate) sink: Sink,
    /// Whether frames that leave by it tell what rules said of tunnels.
    pub(crate) wants_tunnel_ids: bool,
    /// Frames that wait for the end of the pass.
    pub(crate) chain: Chain,
    /// Its queues and rates, if it has any.
    pub(crate) shaper: Option<Box<Shaper>>,
    strikes: u32,
}

/// Panics of its own code after which nothing is sent to a port any more: the third is no accident.
const STRIKES: u32 = 3;

impl LocalPort {
    pub(crate) fn new(shared: Arc<PortShared>, switch: SwitchIx, sink: Sink) -> Self {
        let wants_tunnel_ids = match &sink {
            Sink::Queue(queue) => queue.wants_tunnel_ids(),
            Sink::Vlink(_) => false,
        };
        let chain = Chain::default();
        Self { shared, switch, sink, wants_tunnel_ids, chain, shaper: None, strikes: 0 }
    }

    /// Its code panicked; true when it goes out of service for that.
    pub(crate) fn strike(&mut self) -> bool {
        self.strikes += 1;
        self.strikes == STRIKES
    }

    /// Whether it is out of service.
    fn is_parked(&self) -> bool {
        self.strikes >= STRIKES
    }

    /// Why nothing may leave by it, if so.
    pub(crate) fn shut(&self) -> Option<DropReason> {
        match () {
            () if self.is_parked() => Some(DropReason::TxError),
            () if !self.shared.up.load(Relaxed) => Some(DropReason::PortDown),
            () => None,
        }
    }

    /// The other end of the vlink, if it is one.
    pub(crate) fn far_end(&self) -> Option<PortIx> {
        match self.sink {
            Sink::Vlink(far) => Some(far),
            Sink::Queue(_) => None,
        }
    }

    /// Whether what is sent to it only has to wait for the end of the pass.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        matches!(self.sink, Sink::Queue(_)) && self.shaper.is_none()
    }

    /// The port's own half of a departure, and its queues; `None` if it has none.
    pub(crate) fn departure(&mut self, ix: PortIx) -> Option<(Departure<'_>, &mut Shaper)> {
        let shut = self.shut();
        let Self { shared, sink: Sink::Queue(queue), shaper: Some(shaper), .. } = self else {
            return None;
        };
        Some((Departure { ix, shared, queue: &mut **queue, shut }, shaper))
    }

    /// The lane of a queue among those that it has.
    #[inline]
    pub(crate) fn lane(&self, queue: u32) -> u8 {
        self.shaper.as_ref().map_or(0, |shaper| shaper.lane(queue))
    }
}

/// A switch at one worker.
pub(crate) struct LocalSwitch {
    pub(crate) shared: Arc<SwitchShared>,
    pub(crate) ports: PortMap,
    /// Copies over vlinks, of frames that came in here.
    pub(crate) allowance: Allowance,
    /// Copies at its own ports, beyond those that each frame may make.
    pub(crate) own_copies: Allowance,
}

impl LocalSwitch {
    pub(crate) fn counters(&self, worker: usize) -> &SwitchBlock {
        &self.shared.counters[worker]
    }

    /// Takes copies over vlinks of a frame that came in here, if so many are left.
    pub(crate) fn pay_over_vlinks(&self, copies: u64, now: Nanos) -> bool {
        self.allowance.take(copies, self.copies_per_s(), now)
    }

    /// Takes copies at its own ports beyond those that a frame may make, if so many are left.
    pub(crate) fn pay_at_its_ports(&self, copies: u64, now: Nanos) -> bool {
        self.own_copies.take(copies, self.copies_per_s(), now)
    }

    fn copies_per_s(&self) -> Option<u32> {
        self.shared.tables.load().copies_per_s()
    }
}

/// Numbers below this are looked up by index. Chosen: users count from 1, and a switch with more ports than this
/// still works through the sorted list.
const DIRECT: PortNo = 1024;

/// Port numbers of one switch → places in the worker's table.
#[derive(Default)]
pub(crate) struct PortMap {
    direct: Vec<Option<PortIx>>,
    sorted: Vec<(PortNo, PortIx)>,
    len: usize,
}

impl PortMap {
    /// The port of this number.
    #[inline]
    pub(crate) fn get(&self, number: PortNo) -> Option<PortIx> {
        if number < DIRECT {
            return self.direct.get(number as usize).copied().flatten();
        }
        let at = self.sorted.binary_search_by_key(&number, |&(number, _)| number).ok()?;
        Some(self.sorted[at].1)
    }

    /// Ports.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Adds a port; the control thread has checked that the number is free.
    pub(crate) fn insert(&mut self, number: PortNo, ix: PortIx) {
        self.remove(number);
        self.len += 1;
        if number < DIRECT {
            let index = number as usize;
            self.direct.resize(self.direct.len().max(index + 1), None);
            self.direct[index] = Some(ix);
            return;
        }
        let at = self.sorted.partition_point(|&(other, _)| other < number);
        self.sorted.insert(at, (number, ix));
    }

    /// Forgets a port.
    pub(crate) fn remove(&mut self, number: PortNo) {
        if self.get(number).is_none() {
            return;
        }
        self.len -= 1;
        if number < DIRECT {
            self.direct[number as usize] = None;
        } else {
            self.sorted.retain(|&(other, _)| other != number);
        }
    }
}

/// The switches and ports that a worker serves.
#[derive(Default)]
pub(crate) struct World {
    switches: Vec<Option<LocalSwitch>>,
    ports: Vec<Option<LocalPort>>,
}

impl World {
    /// The switches and the ports, borrowed apart: a pass reads the ones while it changes the others.
    pub(crate) fn parts(&mut self) -> (&[Option<LocalSwitch>], &mut [Option<LocalPort>]) {
        (&self.switches, &mut self.ports)
    }

    /// Places for ports, free ones included.
    pub(crate) fn ports(&self) -> usize {
        self.ports.len()
    }

    /// A switch received frames.
    #[inline]
    pub(crate) fn earn(&self, ix: SwitchIx, frames: u64) {
        self.switch(ix).into_iter().for_each(|switch| switch.allowance.earn(frames));
    }

    #[inline]
    pub(crate) fn switch(&self, ix: SwitchIx) -> Option<&LocalSwitch> {
        self.switches.get(ix.0 as usize)?.as_ref()
    }

    pub(crate) fn port(&self, ix: PortIx) -> Option<&LocalPort> {
        self.ports.get(ix.0 as usize)?.as_ref()
    }

    pub(crate) fn port_mut(&mut self, ix: PortIx) -> Option<&mut LocalPort> {
        self.ports.get_mut(ix.0 as usize)?.as_mut()
    }

    /// Puts a switch in place.
    pub(crate) fn add_switch(&mut self, ix: SwitchIx, shared: Arc<SwitchShared>) {
        let ports = PortMap::default();
        let [allowance, own_copies] = std::array::from_fn(|_| Allowance::default());
        put(&mut self.switches, ix.0, LocalSwitch { shared, ports, allowance, own_copies });
    }

    /// Takes a switch out.
    pub(crate) fn remove_switch(&mut self, ix: SwitchIx) -> Option<LocalSwitch> {
        self.switches.get_mut(ix.0 as usize)?.take()
    }

    /// Puts a port in place; returns how many ports its switch has now.
    pub(crate) fn add_port(&mut self, ix: PortIx, port: LocalPort) -> usize {
        let (switch, number) = (port.switch, port.shared.at.port);
        put(&mut self.ports, ix.0, port);
        let Some(Some(switch)) = self.switches.get_mut(switch.0 as usize) else { return 0 };
        switch.ports.insert(number, ix);
        switch.ports.len()
    }

    /// Takes a port out.
    pub(crate) fn remove_port(&mut self, ix: PortIx) -> Option<LocalPort> {
        let port = self.ports.get_mut(ix.0 as usize)?.take()?;
        if let Some(Some(switch)) = self.switches.get_mut(port.switch.0 as usize) {
            switch.ports.remove(port.shared.at.port);
        }
        Some(port)
    }

    /// Every port, for what follows a panic.
    pub(crate) fn ports_mut(&mut self) -> impl Iterator<Item = &mut LocalPort> {
        self.ports.iter_mut().flatten()
    }
}

fn put<T>(table: &mut Vec<Option<T>>, at: u32, value: T) {
    let at = at as usize;
    if table.len() <= at {
        table.resize_with(at + 1, || None);
    }
    table[at] = Some(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_and_large_port_numbers_are_found_until_removed() {
        let mut map = PortMap::default();
        let numbers = [1, 0, 1023, 1024, 70_000, 0xffff_fffe];
        for (at, &number) in numbers.iter().enumerate() {
            map.insert(number, PortIx(at as u32));
        }
        assert_eq!(map.len(), numbers.len());
        for (at, &number) in numbers.iter().enumerate() {
            assert_eq!(map.get(number), Some(PortIx(at as u32)));
            map.remove(number);
            assert_eq!(map.get(number), None);
        }
        assert_eq!((map.len(), map.get(2), map.get(5000)), (0, None, None));
    }
}
