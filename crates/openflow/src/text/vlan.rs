//! VLAN matches: 1.0's `dl_vlan` and `vlan_tci`, 1.3's `vlan_vid` and `vlan_pcp`, all as OXM fields and back.

use super::error::TextError;
use super::scan::Span;
use super::value;
use crate::matching::Match;
use crate::oxm::{Oxm, OxmField, VLAN_PRESENT};

const PRESENT: u128 = VLAN_PRESENT as u128;
/// The PCP bits of a tag control field.
const PCP: u64 = 0xe000;
/// The present bit and the id.
const VID: u64 = 0x1fff;

/// `dl_vlan=N`; 0xffff means untagged.
pub(super) fn dl_vlan(word: Span<'_>) -> Result<Oxm, TextError> {
    match value::integer(word.text) {
        Some(0xffff) => Ok(Oxm::exact(OxmField::VlanVid, 0)),
        Some(id) if id <= 0xfff => Ok(Oxm::exact(OxmField::VlanVid, PRESENT | u128::from(id))),
        _ => {
            Err(word.error("not a VLAN id", "give a number from 0 to 4095, or 0xffff for untagged"))
        }
    }
}

/// `vlan_tci=V[/M]`: the tag control field, whose CFI bit means "there is a tag".
pub(super) fn vlan_tci(word: Span<'_>) -> Result<Vec<Oxm>, TextError> {
    let (value, mask) = match word.split("/") {
        Some((value, mask)) => (value::number(value, 0xffff)?, value::number(mask, 0xffff)?),
        None => (value::number(word, 0xffff)?, 0xffff),
    };
    let value = value & mask;
    if value == 0 && mask & VID == VID {
        return Ok(vec![Oxm::exact(OxmField::VlanVid, 0)]);
    }
    let mut fields = Vec::new();
    if mask & VID != 0 {
        fields.push(Oxm::masked(OxmField::VlanVid, (value & VID).into(), (mask & VID).into()));
    }
    match mask & PCP {
        0 => {}
        PCP if value & u64::from(VLAN_PRESENT) != 0 => {
            fields.push(Oxm::exact(OxmField::VlanPcp, u128::from(value >> 13)));
        }
        PCP => {
            return Err(
                word.error("a priority without a tag", "set the bit 0x1000 in value and mask")
            );
        }
        _ => {
            return Err(word.error(
                "a mask that covers part of the priority",
                "cover all of 0xe000 or nothing of it",
            ));
        }
    }
    Ok(fields)
}

/// What ovs-ofctl prints for the VLAN fields of a match; empty without any.
pub(super) fn print(fields: &Match) -> String {
    let (vid, vid_mask) = fields.get(OxmField::VlanVid).unwrap_or((0, 0));
    let pcp = fields.get(OxmField::VlanPcp).map(|(pcp, _)| pcp);
    let whole =
        vid_mask & PRESENT != 0 && vid & PRESENT != 0 && [0, 0xfff].contains(&(vid_mask & 0xfff));
    match (whole, vid_mask & 0xfff, pcp) {
        (true, 0xfff, None) => format!("dl_vlan={}", vid & 0xfff),
        (true, 0xfff, Some(pcp)) => format!("dl_vlan={},dl_vlan_pcp={pcp}", vid & 0xfff),
        (true, _, Some(pcp)) => format!("dl_vlan_pcp={pcp}"),
        (_, _, None) if vid_mask == 0 => String::new(),
        (_, _, pcp) => {
            let pcp_mask = if pcp.is_some() { u128::from(PCP) } else { 0 };
            format!("vlan_tci=0x{:04x}/0x{:04x}", vid | pcp.unwrap_or(0) << 13, vid_mask | pcp_mask)
        }
    }
}
