//! Statistics: of cores, and of what was placed.

use super::action::Place;
use super::{Wire, end_element, put_core, take_core, take_element};
use crate::bytes::{Reader, Writer};
use crate::envelope::known;
use crate::error::{ErrorCode, Fault};
use crate::fixed_text::FixedText;
use crate::matching::Match;
use crate::v13::{put_match, take_match};
use crate::wire_enum::wire_enum;

/// How many stages a packet passes: driver, packet processing, vhost, guest, in this order wherever there is one number for each.
pub const STAGES: usize = 4;

/// What a core did.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct CoreStats {
    /// The core.
    pub core: u16,
    /// Load by stage in the last milliseconds, per mille of the core's time.
    pub load: [u16; STAGES],
    /// Load of everything else, likewise.
    pub other: u16,
    /// Flow groups and entries that are placed here.
    pub units: u32,
    /// Frames that were handed to this core.
    pub frames: u64,
    /// Nanoseconds by stage since the node began to watch. A stage's service time is its growth by the frames'.
    pub busy_ns: [u64; STAGES],
}

wire_enum! {
    /// What was placed.
    PlacementKind: u8 {
        /// An entry, by a rule.
        Entry = 0,
        /// A flow group: all flows without an entry whose hash falls into one bucket.
        Group = 1,
    }
}

bitflags::bitflags! {
    /// Which kinds a request asks for.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
    pub struct PlacementKinds: u8 {
        /// [`PlacementKind::Entry`].
        const ENTRIES = 1;
        /// [`PlacementKind::Group`].
        const GROUPS = 2;
    }
}

wire_enum! {
    /// Why a flow is on its core. The numbers are those of the placement policies (crate `place`), with 0 before them.
    Reason: u8 {
        /// It is on none: no frame has come yet.
        Undecided = 0,
        /// Its entry names the core.
        Fixed = 1,
        /// By its hash, blind to load.
        Hash = 2,
        /// The least loaded core with nothing pinned to it and at or below the threshold.
        LeastLoaded = 3,
        /// The same for a priority flow, with its own threshold and the reserved cores.
        Priority = 4,
        /// No core is free: the machine that receives the packets pays for them.
        OwnCore = 5,
        /// The entry wants it on its machine's own core.
        OwnCoreWanted = 6,
        /// It stays where it arrives: every core that it might use is above the threshold.
        AboveThreshold = 7,
        /// It stays where it arrives: there is no core that it might use at all.
        NoCore = 8,
        /// It stays where it arrives: no entry matches.
        NoMatch = 9,
        /// It stays where it arrives: this traffic is not steered.
        NotSteered = 10,
        /// Moved: its core was overloaded.
        Overload = 11,
        /// Moved: its core had more to do than the others.
        Balance = 12,
        /// Moved: a machine is pinned to its core, and another core is free.
        Collision = 13,
        /// Moved to its machine's own core, so that a priority flow has this one.
        YieldedToPriority = 14,
        /// Moved: its core takes no such flows any more.
        NotAllowed = 15,
    }
}

/// Which placements a request asks for.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct PlacementRequest {
    /// Which kinds.
    pub kinds: PlacementKinds,
    /// Cookie bits to agree on; groups have the cookie 0.
    pub cookie: u64,
    /// Which cookie bits; 0 = no filter.
    pub cookie_mask: u64,
    /// Of this interface only; empty = of all.
    pub interface: FixedText<16>,
}

/// One entry or flow group, and where it is.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct PlacementStats {
    /// What it is.
    pub kind: PlacementKind,
    /// Why it is there.
    pub reason: Reason,
    /// Where its frames are processed; `None` = no frame has come yet.
    pub core: Option<u16>,
    /// Where it is going; the same core unless it is moving.
    pub wanted: Option<u16>,
    /// What was asked for.
    pub place: Place,
    /// The entry's priority.
    pub priority: u16,
    /// Whose frames they are, if that is known; 0 = unknown.
    pub vm: u16,
    /// Its number on its interface.
    pub unit: u32,
    /// How often it was moved.
    pub moves: u32,
    /// The entry's cookie.
    pub cookie: u64,
    /// Frames.
    pub packets: u64,
    /// Their bytes; 0 for groups, where they are not counted.
    pub bytes: u64,
    /// Nanoseconds since it was decided; `u64::MAX` = it was not.
    pub age_ns: u64,
    /// Its interface.
    pub interface: FixedText<16>,
    /// The entry's match.
    pub fields: Match,
}

/// Bytes of a core's statistics.
const CORE_LEN: usize = 64;

impl Wire for CoreStats {
    fn put(&self, out: &mut Writer) {
        let start = out.len();
        out.u16(0);
        out.u16(self.core);
        self.load.iter().for_each(|load| out.u16(*load));
        out.u16(self.other);
        out.zeros(2);
        out.u32(self.units);
        out.zeros(4);
        out.u64(self.frames);
        self.busy_ns.iter().for_each(|ns| out.u64(*ns));
        end_element(start, out);
    }

    fn take(input: &mut Reader<'_>) -> Result<Self, Fault> {
        let mut stats = take_element(input, CORE_LEN)?;
        let core = stats.u16()?;
        let load = [stats.u16()?, stats.u16()?, stats.u16()?, stats.u16()?];
        let other = stats.u16()?;
        stats.skip(2)?;
        let units = stats.u32()?;
        stats.skip(4)?;
        Ok(Self {
            core,
            load,
            other,
            units,
            frames: stats.u64()?,
            busy_ns: [stats.u64()?, stats.u64()?, stats.u64()?, stats.u64()?],
        })
    }
}

impl Wire for PlacementRequest {
    fn put(&self, out: &mut Writer) {
        out.u8(self.kinds.bits());
        out.zeros(7);
        out.u64(self.cookie);
        out.u64(self.cookie_mask);
        out.fixed(self.interface.as_bytes(), 16);
    }

    fn take(input: &mut Reader<'_>) -> Result<Self, Fault> {
        let kinds = PlacementKinds::from_bits_retain(input.u8()?);
        input.skip(7)?;
        Ok(Self {
            kinds,
            cookie: input.u64()?,
            cookie_mask: input.u64()?,
            interface: FixedText::new(input.take(16)?),
        })
    }
}

/// Bytes of a placement before its match, and those of the match of everything.
const PLACEMENT_LEN: usize = 72 + 8;

impl Wire for PlacementStats {
    fn put(&self, out: &mut Writer) {
        let start = out.len();
        out.u16(0);
        out.u8(self.kind.wire());
        out.u8(self.reason.wire());
        put_core(self.core, out);
        put_core(self.wanted, out);
        self.place.put(out);
        out.u16(self.priority);
        out.u16(self.vm);
        out.u32(self.unit);
        out.u32(self.moves);
        out.u64(self.cookie);
        out.u64(self.packets);
        out.u64(self.bytes);
        out.u64(self.age_ns);
        out.fixed(self.interface.as_bytes(), 16);
        put_match(&self.fields, out);
        end_element(start, out);
    }

    fn take(input: &mut Reader<'_>) -> Result<Self, Fault> {
        let mut stats = take_element(input, PLACEMENT_LEN)?;
        let kind = known(stats.u8()?, PlacementKind::from_wire, ErrorCode::BadRequestBadLen)?;
        let reason = known(stats.u8()?, Reason::from_wire, ErrorCode::BadRequestBadLen)?;
        let (core, wanted) = (take_core(&mut stats)?, take_core(&mut stats)?);
        let place = Place::take(&mut stats)?;
        Ok(Self {
            kind,
            reason,
            core,
            wanted,
            place,
            priority: stats.u16()?,
            vm: stats.u16()?,
            unit: stats.u32()?,
            moves: stats.u32()?,
            cookie: stats.u64()?,
            packets: stats.u64()?,
            bytes: stats.u64()?,
            age_ns: stats.u64()?,
            interface: FixedText::new(stats.take(16)?),
            fields: take_match(&mut stats)?,
        })
    }
}
