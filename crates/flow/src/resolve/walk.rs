//! A frame's way through the tables.

use super::course::{Course, uncut};
use super::sketch::{Sketch, whole};
use super::stamp::{Station, Uses};
use super::visit::{Stop, Visitor};
use super::{Asked, Hit, Memory};
use crate::action::{Action, Output, PortNo};
use crate::action_set::ActionSet;
use crate::config::{FragMode, Miss};
use crate::exec::{
    Leaves, MAX_COPIES, NO_COOKIE, Origin, WHOLE, is_group_address, is_reserved_address,
};
use crate::meter::MeterVerdict;
use crate::program::{Onward, Tells};
use crate::snapshot::Snapshot;
use crate::store::RecordId;
use crate::storm::Storm;
use crate::template::{Inquiry, Scratch};
use crate::time::Nanos;
use wire::{DropReason, Field, Key};

/// The bits of a VLAN id.
const VID: u16 = 0xfff;

/// A question about one frame in work.
pub(super) struct Walk<'s, V> {
    pub snapshot: &'s Snapshot,
    pub now: Nanos,
    pub scratch: &'s mut Scratch,
    pub visitor: &'s mut V,
    /// Bits of the frame as it came that the answer rests on.
    pub looked_at: Key,
    pub uses: Uses,
    /// What would have changed on the way.
    pub memory: Memory,
    /// The frame or a copy left.
    pub told: bool,
    /// Why the last copy that was lost was lost.
    pub lost: Option<DropReason>,
    /// Copies left.
    pub budget: u32,
}

impl<'s, V: Visitor> Walk<'s, V> {
    pub fn new(
        snapshot: &'s Snapshot,
        now: Nanos,
        scratch: &'s mut Scratch,
        visitor: &'s mut V,
    ) -> Self {
        Self {
            snapshot,
            now,
            scratch,
            visitor,
            looked_at: Key::default(),
            uses: Uses::default(),
            memory: Memory::default(),
            told: false,
            lost: None,
            budget: MAX_COPIES + snapshot.ports.len() as u32,
        }
    }

    /// Follows a frame to its end. The reason if it leaves nowhere.
    ///
    /// # Errors
    /// Never [`Stop::Cut`].
    pub fn run(&mut self, sketch: Sketch) -> Result<Option<DropReason>, Stop> {
        if let Some(reason) = self.refuses(&sketch)? {
            return Ok(Some(reason));
        }
        self.tables(Course::new(sketch))?;
        Ok((!self.told).then(|| self.lost.unwrap_or(DropReason::ByRule)))
    }

    /// Why the frame may not come in.
    fn refuses(&mut self, sketch: &Sketch) -> Result<Option<DropReason>, Stop> {
        if self.snapshot.config.fragments == FragMode::Drop
            && self.field(sketch, Field::IpFrag)? != 0
        {
            return Ok(Some(DropReason::Fragment));
        }
        let in_port = self.in_port(sketch)?;
        Ok(self.snapshot.ports.ingress(in_port).err())
    }

    fn tables(&mut self, mut course: Course) -> Result<(), Stop> {
        let (mut set, mut table) = (ActionSet::default(), 0);
        loop {
            let Some(id) = self.search(&course.sketch, table)? else {
                self.visitor.miss(table)?;
                uncut(self.miss(&mut course, table))?;
                break;
            };
            self.visitor.hit(Hit::new(self.snapshot, table, id))?;
            match self.entry(&mut course, &mut set, table, id) {
                Ok(next) if next > table => table = next,
                Ok(_) | Err(Stop::Cut) => break,
                Err(stop) => return Err(stop),
            }
        }
        course.finish(self, set.program())
    }

    /// The entry that the frame finds as it is now.
    fn search(&mut self, sketch: &Sketch, table: u8) -> Result<Option<RecordId>, Stop> {
        self.uses.tables.insert(table);
        let Some(view) = self.snapshot.view.table(table) else {
            self.visitor.search(table, (&sketch.key, &sketch.known), None)?;
            return Ok(None);
        };
        let (key, known) = match &sketch.whole {
            Some(frame) => (&frame.key, &Asked::ALL),
            None => (&sketch.key, &sketch.known),
        };
        let mut of = Inquiry::new(key, known);
        let found = view.search_known(self.snapshot.searched(), &mut of, self.scratch);
        sketch.note(&of.asked, &mut self.looked_at);
        let found = found.ok_or_else(|| Stop::Depends(sketch.name(&of.unknown)))?;
        let found = Some(found).filter(|found| found.is_some());
        let hit = found.map(|id| Hit::new(self.snapshot, table, id));
        self.visitor.search(table, (&sketch.key, &sketch.known), hit.as_ref())?;
        Ok(found)
    }

    /// Runs one entry's program. The next table, or `table` if there is none.
    fn entry(
        &mut self,
        course: &mut Course,
        set: &mut ActionSet,
        table: u8,
        id: RecordId,
    ) -> Result<u8, Stop> {
        let snapshot = self.snapshot;
        let program = snapshot.programs.get(snapshot.line(id).rule().program);
        let origin = snapshot.origin(id, program, table);
        if origin.miss && program.tells == Tells::Perhaps && snapshot.config.miss == Miss::Orphaned
        {
            self.miss(course, table)?;
            return Err(Stop::Cut);
        }
        course.origin = origin;
        let instructions = &program.instructions;
        if let Some(meter) = instructions.meter {
            course.meter(self, meter)?;
        }
        course.apply(self, &instructions.apply)?;
        if instructions.clear {
            set.clear();
        }
        set.write(&instructions.write);
        if let Some(metadata) = instructions.metadata {
            course.write_metadata(self, metadata)?;
        }
        Ok(match program.onward {
            Onward::End => table,
            Onward::Goto(next) | Onward::Edited(next) => next,
        })
    }

    fn miss(&mut self, course: &mut Course, table: u8) -> Result<(), Stop> {
        course.origin = Origin { table, cookie: NO_COOKIE, miss: true };
        match self.snapshot.config.miss {
            Miss::Drop => Err(course.stop(self, DropReason::NoMatch)),
            Miss::Normal | Miss::Orphaned => course.apply(self, &[Action::Output(Output::Normal)]),
            Miss::Controller => {
                course.apply(self, &[Action::Output(Output::Controller { max_len: WHOLE })])
            }
        }
    }

    /// Where an output sends the frame as it is now.
    pub fn leaves(&mut self, sketch: &Sketch, output: Output) -> Result<Leaves<'s>, Stop> {
        let (env, in_port) = (self.snapshot.env(self.now), self.in_port(sketch)?);
        match output {
            Output::Normal => self.bridged(sketch, in_port),
            _ => Ok(env.leaves_by_port(in_port, output)),
        }
    }

    /// Where a bridge sends it, once it has learned the source.
    fn bridged(&mut self, sketch: &Sketch, in_port: PortNo) -> Result<Leaves<'s>, Stop> {
        self.visitor.bridge()?;
        let (env, macs) = (self.snapshot.env(self.now), &self.snapshot.macs);
        let target = self.field(sketch, Field::EthDst)? as u64;
        if is_reserved_address(target) {
            return Ok(Leaves::Nowhere(DropReason::ReservedAddress));
        }
        let source = self.field(sketch, Field::EthSrc)? as u64;
        let vlan = self.field(sketch, Field::VlanVid)? as u16 & VID;
        if !is_group_address(source) && env.ports.get(in_port).is_some() {
            self.memory.learned.push((vlan, source, in_port));
        }
        let port = match self.memory.station(vlan, target) {
            _ if is_group_address(target) => None,
            Some(port) => Some(port),
            None => {
                let port = macs.lookup(vlan, target, self.now);
                self.uses.stations.push(Station { vlan, mac: target, port });
                port
            }
        };
        Ok(match env.leaves_bridged(port, in_port) {
            // Of frames that are not there, none is the one too many.
            Leaves::ByAll(ports) if sketch.whole.is_some() => {
                env.flooded(ports, in_port, target, Storm::would_take)
            }
            leaves => leaves,
        })
    }

    /// An output leads nowhere, or the way ends.
    pub fn lose(&mut self, reason: DropReason) {
        self.visitor.nowhere(reason);
        self.lost = Some(reason);
    }

    /// What a meter does with a frame of that length now.
    pub fn ask_meter(&mut self, id: u32, bytes: u32) -> MeterVerdict {
        let passed = &mut self.memory.passed;
        let before = passed.iter().filter(|(meter, _)| *meter == id).map(|&(_, bytes)| bytes);
        let verdict = self.snapshot.meters.ask(id, before, bytes, self.now);
        passed.push((id, bytes));
        verdict
    }

    /// The port that the frame came in by.
    pub fn in_port(&mut self, sketch: &Sketch) -> Result<PortNo, Stop> {
        self.field(sketch, Field::InPort).map(|port| port as PortNo)
    }

    fn field(&mut self, sketch: &Sketch, field: Field) -> Result<u128, Stop> {
        sketch.look(&whole(field), &mut self.looked_at).map_err(|_| Stop::Depends(field))?;
        Ok(sketch.key.get(field))
    }
}
