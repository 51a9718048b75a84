//! The actions that change a packet's headers.

use crate::action::Action;
use crate::packet::Packet;
use wire::{Edit, EditError};

/// The packet's frame, ready to be edited.
#[inline]
pub(super) fn of<'p>(packet: &'p mut Packet<'_>) -> Edit<'p> {
    Edit {
        head: packet.head,
        key: &mut packet.key,
        layers: &mut packet.layers,
        offload: &mut packet.offload,
        frame_len: &mut packet.frame_len,
    }
}

/// Applies one action to the headers; the ones that change none do nothing.
pub(crate) fn edit(packet: &mut Packet<'_>, action: &Action) -> Result<(), EditError> {
    let mut edit = of(packet);
    match *action {
        Action::PushVlan(tpid) => edit.push_vlan(tpid),
        Action::EnsureVlan if edit.layers.vlans == 0 => edit.push_vlan(wire::eth_type::VLAN),
        Action::EnsureVlan => Ok(()),
        Action::PopVlan => edit.pop_vlan(),
        Action::PushMpls(eth_type) => edit.push_mpls(eth_type),
        Action::PopMpls(eth_type) => edit.pop_mpls(eth_type),
        Action::PushPbb(eth_type) => edit.push_pbb(eth_type),
        Action::PopPbb => edit.pop_pbb(),
        // A port of TCP is none of UDP's (OpenFlow 1.3.5 §7.2.5.8).
        Action::SetField { of: Some(transport), .. } if !transport.is_named_by(edit.key) => {
            Err(EditError::NotPresent)
        }
        Action::SetField { field, of: _, value, mask } => edit.set_field(field, value, mask),
        Action::CopyTtlOut => edit.copy_ttl_out(),
        Action::CopyTtlIn => edit.copy_ttl_in(),
        Action::SetMplsTtl(ttl) => edit.set_mpls_ttl(ttl),
        Action::DecMplsTtl => edit.dec_mpls_ttl(),
        Action::SetNwTtl(ttl) => edit.set_nw_ttl(ttl),
        Action::DecNwTtl => edit.dec_nw_ttl(),
        Action::Output(_) | Action::Group(_) | Action::SetQueue(_) => Ok(()),
    }
}
