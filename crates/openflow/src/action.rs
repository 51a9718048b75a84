//! Actions and instructions as values (OpenFlow 1.3.5 §7.2.4, §7.2.5).

use crate::ids::{GroupId, MeterId, PortNo, TableId};
use crate::oxm::Oxm;
use crate::steering::Place;

/// Nicira's experimenter id: of its actions suiro knows `reg_load2`, which is [`Action::SetField`] with a mask.
pub(crate) const NICIRA: u32 = 0x2320;

/// What to do with a packet.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Action {
    /// Send a copy out of a port.
    Output {
        /// Where to.
        port: PortNo,
        /// Most bytes, for [`PortNo::CONTROLLER`] only.
        max_len: u16,
    },
    /// Process through a group.
    Group(GroupId),
    /// Queue for later outputs.
    SetQueue(u32),
    /// Push an outer VLAN tag with this Ethernet type.
    PushVlan(u16),
    /// Push a VLAN tag of type 0x8100 if the packet has none: what 1.0's set_vlan_vid and set_vlan_pcp begin with. 1.3 has no
    /// conditional push and is told `push_vlan`.
    EnsureVlan,
    /// Pop the outer VLAN tag.
    PopVlan,
    /// Push an MPLS shim with this Ethernet type.
    PushMpls(u16),
    /// Pop the outer MPLS shim; what follows has this Ethernet type.
    PopMpls(u16),
    /// Push a PBB I-TAG with this Ethernet type.
    PushPbb(u16),
    /// Pop the PBB I-TAG.
    PopPbb,
    /// Write a field. A mask writes only its bits; on the 1.3 wire such an action is Nicira's `reg_load2`, or suiro's own of the flow
    /// control field.
    SetField(Oxm),
    /// Copy the TTL outwards.
    CopyTtlOut,
    /// Copy the TTL inwards.
    CopyTtlIn,
    /// Set the MPLS TTL.
    SetMplsTtl(u8),
    /// Decrement the MPLS TTL.
    DecMplsTtl,
    /// Set the IP TTL.
    SetNwTtl(u8),
    /// Decrement the IP TTL.
    DecNwTtl,
    /// Which core shall process the flow. It changes no packet.
    Place(Place),
    /// An experimenter's action that this crate does not know, kept as it came.
    Experimenter {
        /// Who defined it.
        experimenter: u32,
        /// What follows the experimenter id; the wire pads it to a length of 8n.
        body: Vec<u8>,
    },
}

impl Action {
    /// An output; to the controller, the whole packet.
    pub fn output(port: PortNo) -> Self {
        let max_len = if port == PortNo::CONTROLLER { crate::ids::WHOLE_PACKET } else { 0 };
        Action::Output { port, max_len }
    }
}

/// What a flow entry does with the packets that it matches.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Instruction {
    /// Go on in a later table.
    GotoTable(TableId),
    /// Write metadata bits.
    WriteMetadata {
        /// New bits.
        value: u64,
        /// Which ones.
        mask: u64,
    },
    /// Merge actions into the action set.
    WriteActions(Vec<Action>),
    /// Execute actions at once.
    ApplyActions(Vec<Action>),
    /// Empty the action set.
    ClearActions,
    /// Pass a meter first.
    Meter(MeterId),
    /// An experimenter's instruction.
    Experimenter {
        /// Who defined it.
        experimenter: u32,
        /// What follows the experimenter id; the wire pads it to a length of 8n.
        body: Vec<u8>,
    },
}
