//! Groups and meters as bytes: when they were added, then the OpenFlow 1.3 message that adds them.
//!
//! ```text
//! record = stamp (see `stamp`), ofp_group_mod or ofp_meter_mod with its header
//! ```
//!
//! So every field is kept that a controller can send. The one action that 1.3 has no word for, [`Action::EnsureVlan`], is
//! written as an experimenter's action that no group can have.

use super::encode::BadRecord;
use openflow::{
    Action, GroupDesc, GroupMod, GroupModCommand, Message, MeterConfig, MeterMod, MeterModCommand,
    Version,
};

/// Stands for [`Action::EnsureVlan`]; 0 is nobody's experimenter id, so a group-mod with this action is refused.
const ENSURE_VLAN: Action = Action::Experimenter { experimenter: 0, body: Vec::new() };

/// Returns the message of a group.
pub fn group_bytes(group: &GroupDesc) -> Vec<u8> {
    let mut buckets = group.buckets.clone();
    replace(&mut buckets, &Action::EnsureVlan, &ENSURE_VLAN);
    let (command, kind, id) = (GroupModCommand::Add, group.kind, group.id);
    bytes(&Message::GroupMod(GroupMod { command, kind, id, buckets }))
}

/// Returns the message of a meter.
pub fn meter_bytes(meter: &MeterConfig) -> Vec<u8> {
    let MeterConfig { flags, id, bands } = meter.clone();
    bytes(&Message::MeterMod(MeterMod { command: MeterModCommand::Add, flags, id, bands }))
}

/// Reads [`group_bytes`].
///
/// # Errors
/// Anything else.
pub fn read_group(bytes: &[u8]) -> Result<GroupDesc, BadRecord> {
    let Ok((_, Message::GroupMod(found))) = Message::decode(bytes) else { return Err(BadRecord) };
    let GroupMod { kind, id, mut buckets, .. } = found;
    replace(&mut buckets, &ENSURE_VLAN, &Action::EnsureVlan);
    Ok(GroupDesc { kind, id, buckets })
}

/// Reads [`meter_bytes`].
///
/// # Errors
/// Anything else.
pub fn read_meter(bytes: &[u8]) -> Result<MeterConfig, BadRecord> {
    let Ok((_, Message::MeterMod(found))) = Message::decode(bytes) else { return Err(BadRecord) };
    let MeterMod { flags, id, bands, .. } = found;
    Ok(MeterConfig { flags, id, bands })
}

fn bytes(message: &Message) -> Vec<u8> {
    let encoded = message.encode(Version::V1_3, 0);
    encoded.expect("what was taken can be described in one message, which is longer than this one")
}

fn replace(buckets: &mut [openflow::Bucket], old: &Action, new: &Action) {
    let actions = buckets.iter_mut().flat_map(|bucket| &mut bucket.actions);
    actions.filter(|action| *action == old).for_each(|action| *action = new.clone());
}

#[cfg(test)]
mod tests {
    use super::*;
    use openflow::{
        BandKind, Bucket, GroupId, GroupType, MeterBand, MeterFlags, MeterId, Oxm, OxmField, PortNo,
    };
    use proptest::collection::vec;
    use proptest::option;
    use proptest::prelude::{Just, Strategy, any, prop_assert_eq, prop_oneof, proptest};
    use proptest::sample::select;

    fn an_action() -> impl Strategy<Value = Action> {
        let set = (any::<u32>(), option::of(any::<u32>())).prop_map(|(value, mask)| {
            let (value, mask) = (u128::from(value), mask.map(u128::from));
            Action::SetField(Oxm::Known { field: OxmField::Ipv4Dst, value, mask })
        });
        prop_oneof![
            (any::<u32>(), any::<u16>())
                .prop_map(|(port, max_len)| Action::Output { port: PortNo(port), max_len }),
            set,
            any::<u32>().prop_map(Action::SetQueue),
            any::<u32>().prop_map(|id| Action::Group(GroupId(id))),
            any::<u16>().prop_map(Action::PushVlan),
            Just(Action::EnsureVlan),
            Just(Action::PopVlan),
            Just(Action::DecNwTtl),
        ]
    }

    fn a_bucket() -> impl Strategy<Value = Bucket> {
        let head = (any::<u16>(), any::<u32>(), any::<u32>());
        (head, vec(an_action(), 0..5)).prop_map(|((weight, port, group), actions)| Bucket {
            weight,
            watch_port: PortNo(port),
            watch_group: GroupId(group),
            actions,
        })
    }

    fn a_band() -> impl Strategy<Value = MeterBand> {
        let kind = prop_oneof![
            Just(BandKind::Drop),
            any::<u8>().prop_map(|prec_level| BandKind::DscpRemark { prec_level }),
        ];
        (kind, any::<u32>(), any::<u32>()).prop_map(|(kind, rate, burst_size)| MeterBand {
            kind,
            rate,
            burst_size,
        })
    }

    proptest! {
        #[test]
        fn a_group_read_is_the_group_written(
            kind in select(vec![GroupType::All, GroupType::Select, GroupType::Indirect, GroupType::FastFailover]),
            id: u32, buckets in vec(a_bucket(), 0..5),
        ) {
            let group = GroupDesc { kind, id: GroupId(id), buckets };
            prop_assert_eq!(read_group(&group_bytes(&group)), Ok(group));
        }

        #[test]
        fn a_meter_read_is_the_meter_written(flags in 0u16..16, id: u32, bands in vec(a_band(), 0..5)) {
            let flags = MeterFlags::from_bits_retain(flags);
            let meter = MeterConfig { flags, id: MeterId(id), bands };
            prop_assert_eq!(read_meter(&meter_bytes(&meter)), Ok(meter));
        }

        #[test]
        fn damaged_messages_are_refused_without_a_panic(bytes in vec(any::<u8>(), 0..64)) {
            let _ = read_group(&bytes);
            let _ = read_meter(&bytes);
        }
    }
}
