//! The host: cores, and the interfaces whose frames are steered.

use super::{Wire, count, end_element, put_core, take_core, take_element, take_u16s};
use crate::bytes::{Reader, Writer};
use crate::envelope::known;
use crate::error::{ErrorCode, Fault};
use crate::fixed_text::FixedText;
use crate::wire_enum::wire_enum;

bitflags::bitflags! {
    /// What the host's steering can do. Unknown bits survive.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
    pub struct HostAbilities: u32 {
        /// Loads and times are measured by stage.
        const MEASURES = 1;
        /// The policy moves flows that were placed, when a core is overloaded.
        const MOVES = 2;
        /// The controller that is told so may program entries.
        const PROGRAM = 4;
    }
}

bitflags::bitflags! {
    /// What an interface can do. Unknown bits survive.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
    pub struct InterfaceAbilities: u32 {
        /// It spreads frames over its queues by a hash (RSS).
        const RSS = 1;
        /// The spread can be chosen, queue by queue.
        const RSS_TABLE = 2;
        /// It takes rules for single flows (Flow Director, ntuple).
        const NTUPLE = 4;
        /// Its driver runs XDP programs itself.
        const XDP_NATIVE = 8;
        /// The kernel spreads its frames by a hash (RPS is configured).
        const RPS = 16;
    }
}

wire_enum! {
    /// Whether a core may process packets.
    CoreRole: u8 {
        /// It may.
        Allowed = 0,
        /// It is left to others.
        Excluded = 1,
        /// It may, for priority flows.
        Reserved = 2,
    }
}

wire_enum! {
    /// How the steering program runs at an interface.
    XdpMode: u8 {
        /// Not at all.
        Detached = 0,
        /// In the driver.
        Native = 1,
        /// In the kernel's stack, after it has made its own buffer: it works with every driver and costs more.
        Generic = 2,
    }
}

/// What a controller is told of the host.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct HostInfo {
    /// The sender's version of the extension; [`super::VERSION`] of this crate.
    pub version: u8,
    /// Load above which the policy takes a core for full, per mille.
    pub threshold: u16,
    /// What steering can do.
    pub abilities: HostAbilities,
    /// The policy's name, such as `vse`.
    pub policy: FixedText<16>,
    /// Its cores, in order of their numbers.
    pub cores: Vec<HostCore>,
    /// Its interfaces that steering is attached to.
    pub interfaces: Vec<HostInterface>,
}

/// One core.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct HostCore {
    /// Its number.
    pub id: u16,
    /// Its NUMA node, if the host tells.
    pub numa: Option<u16>,
    /// The other thread of the same physical core.
    pub sibling: Option<u16>,
    /// Whether it may process packets.
    pub role: CoreRole,
    /// The machines pinned to it, by number.
    pub vms: Vec<u16>,
}

/// One interface.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct HostInterface {
    /// Its number in the kernel.
    pub index: u32,
    /// How the program runs there.
    pub mode: XdpMode,
    /// Queues that it receives by.
    pub rx_queues: u16,
    /// What it can do.
    pub abilities: InterfaceAbilities,
    /// Its name.
    pub name: FixedText<16>,
    /// Its driver's name; empty if unknown.
    pub driver: FixedText<16>,
}

/// Bytes of a [`HostInfo`] before its lists.
const HEAD: u16 = 32;

impl Wire for HostInfo {
    fn put(&self, out: &mut Writer) {
        out.u8(self.version);
        out.zeros(1);
        out.u16(HEAD);
        out.u16(count(&self.cores));
        out.u16(count(&self.interfaces));
        out.u16(self.threshold);
        out.zeros(2);
        out.u32(self.abilities.bits());
        out.fixed(self.policy.as_bytes(), 16);
        self.cores.iter().take(count(&self.cores).into()).for_each(|core| core.put(out));
        let interfaces = self.interfaces.iter().take(count(&self.interfaces).into());
        interfaces.for_each(|interface| interface.put(out));
    }

    fn take(input: &mut Reader<'_>) -> Result<Self, Fault> {
        let version = input.u8()?;
        input.skip(1)?;
        let head = input.u16()?;
        let (cores, interfaces) = (input.u16()?, input.u16()?);
        let threshold = input.u16()?;
        input.skip(2)?;
        let abilities = HostAbilities::from_bits_retain(input.u32()?);
        let policy = FixedText::new(input.take(16)?);
        let more = head.checked_sub(HEAD).ok_or(input.bad_len("a head shorter than it must be"))?;
        input.skip(more.into())?;
        Ok(Self {
            version,
            threshold,
            abilities,
            policy,
            cores: (0..cores).map(|_| Wire::take(input)).collect::<Result<_, _>>()?,
            interfaces: (0..interfaces).map(|_| Wire::take(input)).collect::<Result<_, _>>()?,
        })
    }
}

/// Bytes of a core before its machines.
const CORE_LEN: usize = 12;

impl Wire for HostCore {
    fn put(&self, out: &mut Writer) {
        let start = out.len();
        out.u16(0);
        out.u16(self.id);
        put_core(self.numa, out);
        put_core(self.sibling, out);
        out.u8(self.role.wire());
        out.zeros(1);
        out.u16(count(&self.vms));
        self.vms.iter().for_each(|vm| out.u16(*vm));
        end_element(start, out);
    }

    fn take(input: &mut Reader<'_>) -> Result<Self, Fault> {
        let mut core = take_element(input, CORE_LEN)?;
        let (id, numa, sibling) = (core.u16()?, take_core(&mut core)?, take_core(&mut core)?);
        let role = known(core.u8()?, CoreRole::from_wire, ErrorCode::BadRequestBadLen)?;
        core.skip(1)?;
        let vms = core.u16()?;
        Ok(Self { id, numa, sibling, role, vms: take_u16s(vms, &mut core)? })
    }
}

/// Bytes of an interface.
const INTERFACE_LEN: usize = 48;

impl Wire for HostInterface {
    fn put(&self, out: &mut Writer) {
        let start = out.len();
        out.u16(0);
        out.u8(self.mode.wire());
        out.zeros(1);
        out.u32(self.index);
        out.u16(self.rx_queues);
        out.zeros(2);
        out.u32(self.abilities.bits());
        out.fixed(self.name.as_bytes(), 16);
        out.fixed(self.driver.as_bytes(), 16);
        end_element(start, out);
    }

    fn take(input: &mut Reader<'_>) -> Result<Self, Fault> {
        let mut interface = take_element(input, INTERFACE_LEN)?;
        let mode = known(interface.u8()?, XdpMode::from_wire, ErrorCode::BadRequestBadLen)?;
        interface.skip(1)?;
        let (index, rx_queues) = (interface.u32()?, interface.u16()?);
        interface.skip(2)?;
        Ok(Self {
            index,
            mode,
            rx_queues,
            abilities: InterfaceAbilities::from_bits_retain(interface.u32()?),
            name: FixedText::new(interface.take(16)?),
            driver: FixedText::new(interface.take(16)?),
        })
    }
}
