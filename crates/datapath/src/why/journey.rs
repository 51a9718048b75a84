//! A frame's way, and those of its copies, in the order of [`crate::ladder`]: level by level over vlinks, in passes.

use super::{ROUNDS, Rules, Step, VISITS, Way, What, World};
use crate::collect::copies_allowed;
use crate::crossing::{COPIES_BEHIND, DELIVERIES, HOPS};
use crate::id::{PortAt, SwitchId};
use crate::onward::PASSES;
use flow::{Asked, Exit, Hit, Memory, MeterVerdict, Nanos, PacketIn, PortNo, Stop, Visitor};
use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use wire::{BATCH, DropReason, Key};

/// A frame that stands before a switch.
struct Arrival {
    at: PortAt,
    frame: Asked,
    /// Its frame of the batch.
    origin: usize,
    /// Its head among those of the pass: workers take frames that enter a switch together in this order.
    head: usize,
}

/// What one frame of a batch has caused.
#[derive(Clone, Copy, Default)]
struct Caused {
    deliveries: u16,
    copies: u16,
    passes: u8,
    /// More copies were wanted than may be.
    is_cut: bool,
}

/// A frame that goes on in a later pass.
struct Later {
    at: PortAt,
    frame: Asked,
    passes: u8,
}

/// The way was not followed to its end.
struct Ended;

/// A question in work.
pub(crate) struct Journey<'w> {
    world: &'w World,
    rules: &'w dyn Rules,
    now: Nanos,
    way: Way,
    memory: HashMap<SwitchId, Memory>,
    later: VecDeque<Later>,
    /// Places that read each head.
    users: HashMap<usize, usize>,
    /// The head that was taken last.
    last_head: usize,
    visits: usize,
    /// Of each switch.
    rounds: HashMap<SwitchId, usize>,
}

impl<'w> Journey<'w> {
    /// The way of a frame that comes in there.
    pub(crate) fn of(
        (world, rules): (&'w World, &'w dyn Rules),
        now: Nanos,
        at: PortAt,
        frame: Asked,
    ) -> Way {
        let mut journey = Self {
            world,
            rules,
            now,
            way: Way::default(),
            memory: HashMap::new(),
            later: VecDeque::new(),
            users: HashMap::new(),
            last_head: BATCH,
            visits: 0,
            rounds: HashMap::new(),
        };
        let _ended_or_not = journey.run(at, frame);
        journey.way
    }

    fn run(&mut self, at: PortAt, frame: Asked) -> Result<(), Ended> {
        let is_up = self.world.ports.get(&at).is_none_or(|door| door.is_up);
        if !is_up {
            self.note(at.switch, 0, What::Enters(at.port, Box::new(frame)));
            self.note(at.switch, 0, What::Refused(at.port, DropReason::PortDown));
            return Ok(());
        }
        self.pass(vec![Later { at, frame, passes: 0 }])?;
        while let Some(first) = self.later.pop_front() {
            let place = first.at;
            let mut batch = vec![first];
            while batch.len() < BATCH && self.later.front().is_some_and(|next| next.at == place) {
                batch.extend(self.later.pop_front());
            }
            self.pass(batch)?;
        }
        Ok(())
    }

    /// A pass of frames that all stand before one port.
    fn pass(&mut self, batch: Vec<Later>) -> Result<(), Ended> {
        let caused = |later: &Later| Caused { passes: later.passes, ..Caused::default() };
        let mut caused: Vec<_> = batch.iter().map(caused).collect();
        let arrival =
            |(origin, Later { at, frame, .. })| Arrival { at, frame, origin, head: origin };
        self.users.clear();
        let batch = batch.into_iter().enumerate().map(arrival).collect();
        let crossings = self.switch(batch, 0, &mut caused)?;
        self.cross(crossings, 1, &mut caused)
    }

    /// Works off a level, and all that follows from it.
    fn cross(
        &mut self,
        mut level: Vec<Arrival>,
        hops: u32,
        caused: &mut [Caused],
    ) -> Result<(), Ended> {
        if level.windows(2).any(|pair| pair[0].at.switch != pair[1].at.switch) {
            level.sort_by_key(|arrival| {
                let switch = self.world.switches.get(&arrival.at.switch).map(|(ix, _)| *ix);
                (switch, self.world.ports.get(&arrival.at).map(|door| door.ix), arrival.head)
            });
        }
        let mut level = level.into_iter().peekable();
        while let Some(first) = level.next() {
            let switch = first.at.switch;
            let mut run = vec![first];
            while run.len() < BATCH
                && let Some(next) = level.next_if(|next| next.at.switch == switch)
            {
                run.push(next);
            }
            run.retain_mut(|arrival| self.enter(arrival, hops, caused));
            let crossings = self.switch(run, hops, caused)?;
            self.cross(crossings, hops + 1, caused)?;
        }
        Ok(())
    }

    fn take_head(&mut self) -> usize {
        self.last_head += 1;
        self.last_head
    }

    /// Gives a frame a head of its own, if others read its; false if it was cut.
    fn enter(&mut self, arrival: &mut Arrival, hops: u32, caused: &[Caused]) -> bool {
        let users = self.users.entry(arrival.head).or_default();
        *users = users.saturating_sub(1);
        let has_others = *users > 0;
        if caused[arrival.origin].is_cut {
            self.note(arrival.at.switch, hops, What::Lost(DropReason::TooManyCopies));
            return false;
        }
        if has_others {
            arrival.head = self.take_head();
        }
        true
    }

    /// Takes frames through a switch; those that leave it over vlinks.
    fn switch(
        &mut self,
        frames: Vec<Arrival>,
        hops: u32,
        caused: &mut [Caused],
    ) -> Result<Vec<Arrival>, Ended> {
        let mut crossings = Vec::new();
        for Arrival { at, frame, origin, head } in frames {
            let Some((_, tables)) = self.world.switches.get(&at.switch) else { continue };
            self.visits += 1;
            let rounds = self.rounds.entry(at.switch).or_default();
            *rounds += 1;
            if self.visits > VISITS || *rounds > ROUNDS {
                self.way.is_cut = true;
                return Err(Ended);
            }
            self.note(at.switch, hops, What::Enters(at.port, Box::new(frame.clone())));
            let mut memory = self.memory.remove(&at.switch).unwrap_or_default();
            let mut visit = Visit {
                journey: self,
                at,
                hops,
                origin,
                caused: &mut caused[origin],
                crossings: &mut crossings,
                copies: 0,
                gathered: Gathered::default(),
            };
            let now = visit.journey.now;
            let lost = tables.follow(&frame, &mut memory, now, &mut visit);
            let kept = visit.gathered.head;
            self.memory.insert(at.switch, memory);
            if let Some(kept) = kept {
                // What left last, as the frame was in the end, is the frame itself.
                let users = self.users.remove(&kept).unwrap_or_default();
                *self.users.entry(head).or_default() += users;
                let same = crossings.iter_mut().filter(|arrival| arrival.head == kept);
                same.for_each(|arrival| arrival.head = head);
            }
            match lost {
                Ok(None) => {}
                Ok(Some(DropReason::PortNoReceive)) => {
                    self.note(at.switch, hops, What::Refused(at.port, DropReason::PortNoReceive));
                }
                Ok(Some(reason)) => self.note(at.switch, hops, What::Lost(reason)),
                Err(Stop::Depends(field)) => {
                    self.way.depends = Some(field);
                    return Err(Ended);
                }
                Err(Stop::Cut | Stop::Enough) => return Err(Ended),
            }
        }
        Ok(crossings)
    }

    fn note(&mut self, switch: SwitchId, hops: u32, what: What) {
        self.way.steps.push(Step { switch, hops, what });
    }
}

/// A frame in a switch.
struct Visit<'v, 'w> {
    journey: &'v mut Journey<'w>,
    at: PortAt,
    hops: u32,
    origin: usize,
    caused: &'v mut Caused,
    crossings: &'v mut Vec<Arrival>,
    copies: usize,
    gathered: Gathered,
}

/// Outputs of a frame as it is now, which share a head as far as they are told together.
#[derive(Default)]
struct Gathered {
    head: Option<usize>,
    ports: usize,
    is_many: bool,
}

/// Single ports that are told together ([`flow`]'s `exec`).
const FEW: usize = 8;

impl Visit<'_, '_> {
    fn note(&mut self, what: What) {
        self.journey.note(self.at.switch, self.hops, what);
    }

    /// Another output: with the ones before, or by a head of its own.
    fn gather(&mut self, ports: usize) {
        let Gathered { head, ports: gathered, is_many } = &mut self.gathered;
        if ports > 1 || *is_many || *gathered == FEW {
            *head = None;
        }
        if head.is_none() {
            *head = Some(self.journey.take_head());
            *gathered = 0;
        }
        *gathered += 1;
        *is_many = ports > 1;
    }

    /// Another place reads the head of what leaves now.
    fn use_head(&mut self) -> usize {
        let head = self.gathered.head.unwrap_or_default();
        *self.journey.users.entry(head).or_default() += 1;
        head
    }

    /// What [`crate::collect::Collector`] does with an output.
    fn output(&mut self, frame: &Asked, ports: &[PortNo], queue: u32) {
        self.gather(ports.len());
        let paid = match self.hops {
            0 => ports.len(),
            _ => ports.len().min(usize::from(COPIES_BEHIND - self.caused.copies)),
        };
        if self.hops > 0 {
            self.caused.copies += paid as u16;
            self.caused.is_cut |= paid < ports.len();
        }
        let allowed = copies_allowed(self.journey.world.ports_of(self.at.switch));
        for (place, &port) in ports.iter().enumerate() {
            let at = PortAt { port, ..self.at };
            if !self.journey.world.ports.contains_key(&at) {
                self.note(What::Lost(DropReason::NoPort));
                continue;
            }
            self.copies += 1;
            match place < paid && self.copies <= allowed {
                true => self.send(frame, at, queue),
                false => self.note(What::Lost(DropReason::TooManyCopies)),
            }
        }
    }

    fn send(&mut self, frame: &Asked, at: PortAt, queue: u32) {
        let port = at.port;
        let over = match self.journey.world.out(at, frame) {
            Err(reason) => {
                let is_vlink =
                    self.journey.world.ports.get(&at).is_some_and(|door| door.far.is_some());
                if !is_vlink {
                    self.use_head();
                }
                return self.note(What::Refused(port, reason));
            }
            Ok(door) => door.far,
        };
        let Some(far) = over else {
            self.use_head();
            return self.note(What::Leaves(port, queue, Box::new(frame.clone())));
        };
        if self.caused.is_cut || self.caused.deliveries >= DELIVERIES {
            return self.note(What::Refused(port, DropReason::TooManyCopies));
        }
        self.caused.deliveries += 1;
        let mut frame = frame.clone();
        frame.cross(far.port);
        if self.hops < HOPS {
            self.note(What::Crosses(port, far));
            let head = self.use_head();
            self.crossings.push(Arrival { at: far, frame, origin: self.origin, head });
        } else if self.caused.passes >= PASSES {
            self.note(What::Refused(port, DropReason::VlinkLoop));
        } else {
            self.note(What::Crosses(port, far));
            let passes = self.caused.passes + 1;
            let frame = frame.received_again();
            self.journey.later.push_back(Later { at: far, frame, passes });
        }
    }
}

impl Visitor for Visit<'_, '_> {
    fn search(
        &mut self,
        table: u8,
        (key, known): (&Key, &Key),
        found: Option<&Hit>,
    ) -> Result<(), Stop> {
        self.note(What::Search(table, Box::new((*key, *known))));
        if *known == Asked::ALL {
            return Ok(());
        }
        let open = self.journey.rules.open_field(self.at.switch, table, (key, known), found);
        open.map_or(Ok(()), |field| Err(Stop::Depends(field)))
    }

    fn hit(&mut self, hit: Hit) -> Result<(), Stop> {
        self.note(What::Hit(hit));
        Ok(())
    }

    fn miss(&mut self, table: u8) -> Result<(), Stop> {
        self.note(What::Miss(table));
        Ok(())
    }

    fn metered(&mut self, meter: u32, verdict: MeterVerdict) -> Result<(), Stop> {
        self.note(What::Meter(meter, verdict));
        Ok(())
    }

    fn group(&mut self, group: u32, chosen: &Range<usize>) {
        self.note(What::Group(group, chosen.clone()));
    }

    fn bucket(&mut self, group: u32, bucket: usize) -> Result<(), Stop> {
        self.note(What::Bucket(group, bucket));
        Ok(())
    }

    fn bridge(&mut self) -> Result<(), Stop> {
        self.note(What::Bridge);
        Ok(())
    }

    fn parted(&mut self) {
        self.gathered = Gathered::default();
    }

    fn nowhere(&mut self, reason: DropReason) {
        self.note(What::Nowhere(reason));
    }

    fn leave(&mut self, frame: &Asked, queue: u32, exit: Exit<'_>) -> Result<(), Stop> {
        match exit {
            Exit::Ports(ports) => self.output(frame, ports, queue),
            Exit::Controller(why) => self.tell(why),
        }
        Ok(())
    }
}

impl Visit<'_, '_> {
    fn tell(&mut self, why: PacketIn) {
        self.note(What::Controller(why));
    }
}
