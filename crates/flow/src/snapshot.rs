//! What workers see of a switch: immutable, stamped with a generation.

use crate::action::PortNo;
use crate::config::{FragMode, Miss, SwitchConfig};
use crate::exec::{Env, NO_COOKIE, Origin};
use crate::group::GroupTable;
use crate::mac::MacTable;
use crate::meter::MeterTable;
use crate::ports::PortTable;
use crate::program::{Program, Programs, Tells};
use crate::store::{ArenaView, Line, Plan, RecordId, Secret};
use crate::table::Table;
use crate::template::{Searched, TableView};
use crate::time::Nanos;
use crate::versions::Versions;
use std::sync::Arc;
use wire::{Depth, Key, Likeness};

/// One published state of a switch's tables.
///
/// Hand it to workers as often as you like; the [`crate::Pipeline`] that made it frees it once it alone holds it.
pub struct Snapshot {
    pub(crate) switch: u32,
    pub(crate) generation: u32,
    /// No other snapshot of any switch has it.
    pub(crate) serial: u64,
    pub(crate) versions: Versions,
    pub(crate) secret: Secret,
    pub(crate) arena: ArenaView,
    pub(crate) programs: Programs,
    pub(crate) view: Arc<View>,
    pub(crate) config: SwitchConfig,
    pub(crate) ports: Arc<PortTable>,
    pub(crate) groups: GroupTable,
    pub(crate) meters: MeterTable,
    pub(crate) macs: Arc<MacTable>,
    /// How far packets must be parsed for the programs.
    pub(crate) programs_depth: Depth,
    /// A packet may leave as another frame than it came.
    pub(crate) reshapes_frames: bool,
}

/// Probes that the cache could not save anything of.
const CHEAP: u32 = 2;

/// The tables' views.
pub(crate) struct View {
    tables: Vec<Option<Arc<TableView>>>,
    /// Bits that any table looks at.
    pub union: Plan,
    /// How far packets must be parsed for these bits.
    depth: Depth,
    /// How frames that have the same bits are known, if that is easy.
    pub likeness: Option<Likeness>,
    pub probe_bound: u32,
}

impl View {
    pub fn new<'t>(
        tables: Vec<Option<Arc<TableView>>>,
        sources: impl Iterator<Item = &'t Table>,
    ) -> Self {
        let union = sources.fold(Key::default(), |all, table| all.union(&table.mask()));
        let probe_bound = tables.iter().flatten().map(|table| table.template.probe_bound()).sum();
        Self {
            tables,
            depth: Depth::of(&union),
            likeness: Likeness::of(&union),
            union: Plan::new(&union),
            probe_bound,
        }
    }

    /// Whether a search can cost more than a look into the cache.
    pub fn is_worth_caching(&self) -> bool {
        self.probe_bound > CHEAP
    }

    /// Table `number`; `None` if it has never had an entry.
    pub fn table(&self, number: u8) -> Option<&TableView> {
        self.tables.get(usize::from(number))?.as_deref()
    }
}

impl Snapshot {
    /// Which publication this is; wraps.
    pub fn generation(&self) -> u32 {
        self.generation
    }

    /// Most probes that one packet can cost in the tables as they are, the cache's own included: at most
    /// tables × (1 + K), plus the blocks of tables with more than K masks (see [`crate::TableStats::probe_bound`]).
    pub fn probe_bound(&self) -> u32 {
        1 + self.view.probe_bound
    }

    /// How far a packet must have been parsed to go through the tables. What lies deeper makes no difference to it.
    pub fn depth(&self) -> Depth {
        let fragments = match self.config.fragments {
            FragMode::Drop => Depth::Full,
            FragMode::Normal => Depth::Nothing,
        };
        let miss = match self.config.miss {
            Miss::Normal | Miss::Orphaned => Depth::Link,
            Miss::Drop | Miss::Controller => Depth::Nothing,
        };
        self.view.depth.max(self.programs_depth).max(fragments).max(miss)
    }

    /// Whether a packet's headers may leave longer or shorter than they came: some entry pushes or pops one. Else a frame's length and its offload state are what they were.
    pub fn reshapes_frames(&self) -> bool {
        self.reshapes_frames
    }

    /// Whether every frame that comes in by `in_port` goes to the tables: the port may receive, and no fragment is dropped.
    #[inline]
    pub fn admits(&self, in_port: PortNo) -> bool {
        self.config.fragments == FragMode::Normal && self.ports.ingress(in_port).is_ok()
    }

    /// The ports.
    pub fn ports(&self) -> &PortTable {
        &self.ports
    }

    /// The first line of a record that a search found.
    #[inline(always)] // asked twice of each frame
    pub(crate) fn line(&self, id: RecordId) -> &Line {
        self.arena.line(id).expect("a search finds only records of its snapshot")
    }

    /// What a packet-in would say of an entry. The cookie lies in a cache line of its own, so it is read only if needed.
    pub(crate) fn origin(&self, id: RecordId, program: &Program, table: u8) -> Origin {
        let told = match program.tells {
            Tells::Never => false,
            Tells::IfTtlEnds => self.config.invalid_ttl_to_controller,
            Tells::Perhaps => true,
        };
        if !told {
            return Origin { table, cookie: NO_COOKIE, miss: false };
        }
        let record = self.arena.record(id);
        let rule = record.rule();
        let miss = rule.priority == 0
            && self.view.table(table).is_some_and(|view| view.all == Some(rule.mask));
        Origin { table, cookie: record.cookie(), miss }
    }

    pub(crate) fn searched(&self) -> Searched<'_> {
        Searched { arena: &self.arena, secret: &self.secret, generation: self.generation }
    }

    /// Copies a second beyond those that each frame may make; none: what is so by default.
    pub fn copies_per_s(&self) -> Option<u32> {
        self.config.copies_per_s
    }

    pub(crate) fn env(&self, now: Nanos) -> Env<'_> {
        Env {
            ports: &self.ports,
            groups: &self.groups,
            meters: &self.meters,
            macs: &self.macs,
            flood_copies_per_s: self.config.flood_copies_per_s,
            invalid_ttl_to_controller: self.config.invalid_ttl_to_controller,
            for_v10: self.config.miss == Miss::Controller,
            now,
        }
    }
}
