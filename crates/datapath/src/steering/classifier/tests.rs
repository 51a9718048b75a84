use super::*;
use proptest::prelude::*;

fn entry(unit: u32, priority: u16, fields: &[(Field, u128, u128)]) -> SteeringEntry {
    let (mut key, mut mask) = (FlowKey::default(), FlowKey::default());
    for &(field, value, ones) in fields {
        key.set(field, value & ones);
        mask.set(field, ones);
    }
    let unit = UnitId(ENTRY_FIRST + unit);
    let (target, vm) = (Target::Auto, None);
    SteeringEntry {
        unit,
        key,
        mask,
        priority,
        target,
        is_priority: false,
        wants_own_core: false,
        vm,
    }
}

fn classifier(entries: &[SteeringEntry], unmatched: Unmatched) -> Classifier {
    Classifier::new(entries, (unmatched, false), [3, 5]).unwrap()
}

fn ip() -> FlowKey {
    FlowKey::default().with(Field::DlType, eth_type::IPV4.into())
}

/// Few bits, so that entries overlap.
fn entries() -> impl Strategy<Value = Vec<SteeringEntry>> {
    let one = (0..4u16, 0..4u128, 0..4u128, 0..4u128, 0..4u128);
    proptest::collection::vec(one, 0..12).prop_map(|all| {
        let made = |(at, (priority, src, src_mask, dst, dst_mask)): (
            u32,
            (u16, u128, u128, u128, u128),
        )| {
            entry(at, priority, &[(Field::NwSrc, src, src_mask), (Field::TpDst, dst, dst_mask)])
        };
        (0..).zip(all).map(made).collect()
    })
}

proptest! {
    #[test]
    fn the_strongest_entry_is_found_as_a_linear_scan_finds_it(entries in entries(), src in 0..4u128, dst in 0..4u128) {
        let key = FlowKey::default().with(Field::NwSrc, src).with(Field::TpDst, dst);
        let selects = |entry: &&SteeringEntry| key.and(&entry.mask) == entry.key;
        let strongest = entries.iter().filter(selects).map(|entry| entry.priority).max();
        let found = classifier(&entries, Unmatched::Stay).unit(&key).map(|(unit, _)| unit);
        let found = found.map(|unit| entries.iter().find(|entry| entry.unit == unit).unwrap());
        prop_assert_eq!(found.map(|entry| entry.priority), strongest);
        prop_assert!(found.is_none_or(|entry| selects(&entry)));
    }
}

#[test]
fn flows_spread_over_all_groups() {
    let classifier = classifier(&[], Unmatched::Groups(256));
    let mut groups = [0; 256];
    for flow in 0..25_600 {
        let (unit, _) = classifier.unit(&ip().with(Field::TpSrc, flow)).unwrap();
        groups[unit.0 as usize] += 1;
    }
    assert!(groups.iter().all(|count| (40..180).contains(count)), "{groups:?}");
}

#[test]
fn frames_that_nothing_selects_stay_unless_groups_take_them() {
    let some = [entry(0, 1, &[(Field::TpDst, 53, 0xffff)])];
    let stay = classifier(&some, Unmatched::Stay);
    assert_eq!(stay.unit(&FlowKey::default()), None);
    let dns = FlowKey::default().with(Field::TpDst, 53);
    assert_eq!(stay.unit(&dns).unwrap().0, UnitId(ENTRY_FIRST));
    assert!(classifier(&some, Unmatched::Groups(256)).unit(&ip()).unwrap().0.0 < 256);
    assert_eq!(
        classifier(&some, Unmatched::Groups(256)).unit(&FlowKey::default()),
        None,
        "no flow"
    );
}

#[test]
fn the_flow_control_field_names_a_unit_of_its_own() {
    let classifier = Classifier::new(&[], (Unmatched::Stay, true), [3, 5]).unwrap();
    let key = ip().with(Field::OuterTos, 5 << 1 | 1);
    let unit = classifier.unit(&key).unwrap().0;
    let facts = classifier.facts(unit);
    assert_eq!((facts.vm, facts.is_priority), (VmId::new(5), true));
    assert_eq!(classifier.unit(&ip().with(Field::OuterTos, 1)), None);
}

#[test]
fn more_masks_than_a_frame_may_cost_are_refused() {
    let bit = |bit: u32| entry(bit, 1, &[(Field::NwSrc, 0, 1 << bit)]);
    let entries: Vec<_> = (0..MASKS as u32).map(bit).collect();
    assert!(Classifier::new(&entries, (Unmatched::Stay, false), [3, 5]).is_ok());
    let entries: Vec<_> = (0..=MASKS as u32).map(bit).collect();
    assert!(Classifier::new(&entries, (Unmatched::Stay, false), [3, 5]).is_err());
}
