use super::*;
use flow::Wording;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};
use proptest::sample::select;
use std::sync::Arc;

const NOW: Moment = Moment { boot: 0x0102_0304, monotonic: flow::Nanos(0x20), wall_ms: 0x30 };

#[test]
fn every_field_has_one_code_and_every_code_one_field() {
    for &field in Field::ALL {
        assert_eq!(
            FIELDS.iter().filter(|(_, other)| *other == field).count(),
            1,
            "{}",
            field.name()
        );
    }
    let mut codes: Vec<_> = FIELDS.iter().map(|(code, _)| code).collect();
    codes.sort_unstable();
    codes.dedup();
    assert_eq!(codes.len(), FIELDS.len());
}

fn a_field() -> impl Strategy<Value = Field> {
    (0..Field::ALL.len()).prop_map(|index| Field::ALL[index])
}

fn a_match() -> impl Strategy<Value = (Key, Key)> {
    vec((a_field(), any::<u128>(), any::<u128>()), 0..6).prop_map(|parts| {
        let (mut key, mut mask) = (Key::default(), Key::default());
        for (field, value, bits) in parts {
            let (value, bits) = of_an_end(field, value, bits);
            key.set(field, value);
            mask.set(field, bits);
        }
        (key.masked(&mask), mask)
    })
}

/// The ends that have numbers here.
fn ends() -> Share {
    let ends = Share::new(Arc::default());
    for end in ["192.0.2.2", "2001:db8::2", "192.0.2.3"] {
        ends.name(end.parse().unwrap()).unwrap();
    }
    ends
}

/// Of a tunnel's end the number of one, or none, and all of the mask; any other field stays.
fn of_an_end(field: Field, value: u128, mask: u128) -> (u128, u128) {
    if is_end(field) { (value % 4, field.full()) } else { (value, mask) }
}

fn a_transport() -> impl Strategy<Value = Transport> {
    select(vec![
        Transport::Tcp,
        Transport::Udp,
        Transport::Sctp,
        Transport::Icmpv4,
        Transport::Icmpv6,
    ])
}

fn an_action() -> impl Strategy<Value = Action> {
    prop_oneof![
        any::<u32>().prop_map(|port| Action::Output(Output::Port(port))),
        Just(Action::Output(Output::InPort)),
        Just(Action::Output(Output::All)),
        Just(Action::Output(Output::Flood)),
        Just(Action::Output(Output::Normal)),
        any::<u16>().prop_map(|max_len| Action::Output(Output::Controller { max_len })),
        Just(Action::Output(Output::Table)),
        Just(Action::Output(Output::Local)),
        any::<u32>().prop_map(Action::Group),
        any::<u32>().prop_map(Action::SetQueue),
        any::<u16>().prop_map(Action::PushVlan),
        Just(Action::PopVlan),
        Just(Action::EnsureVlan),
        any::<u16>().prop_map(Action::PushMpls),
        any::<u16>().prop_map(Action::PopMpls),
        any::<u16>().prop_map(Action::PushPbb),
        Just(Action::PopPbb),
        (a_field(), option::of(a_transport()), any::<u128>(), any::<u128>()).prop_map(
            |(field, of, value, mask)| {
                let (value, mask) = of_an_end(field, value & field.full(), mask & field.full());
                Action::SetField { field, of, value, mask }
            }
        ),
        Just(Action::CopyTtlOut),
        Just(Action::CopyTtlIn),
        any::<u8>().prop_map(Action::SetMplsTtl),
        Just(Action::DecMplsTtl),
        any::<u8>().prop_map(Action::SetNwTtl),
        Just(Action::DecNwTtl),
    ]
}

fn instructions() -> impl Strategy<Value = Instructions> {
    let actions = || vec(an_action(), 0..5);
    let metadata = option::of((any::<u64>(), any::<u64>()));
    (
        option::of(any::<u32>()),
        actions(),
        any::<bool>(),
        actions(),
        metadata,
        option::of(any::<u8>()),
        (vec(any::<u16>(), 0..4), any::<bool>(), any::<bool>()),
    )
        .prop_map(|(meter, apply, clear, write, metadata, goto, (max_len, first, second))| {
            let (empty_apply, empty_write) =
                (first && apply.is_empty(), second && write.is_empty());
            let wording = Wording { max_len, empty_apply, empty_write };
            Instructions { meter, apply, clear, write, metadata, goto, wording }
        })
}

proptest! {
    #[test]
    fn a_rule_read_is_the_rule_written(
        table: u8, priority: u16, (key, mask) in a_match(),
        cookie: u64, idle_timeout_s: u16, hard_timeout_s: u16, (flags, note) in any::<(u16, u32)>(), age_ns in 0..u64::MAX >> 2,
        instructions in instructions(),
    ) {
        let (id, ends) = (FlowId { table, priority, key, mask }, ends());
        assert_eq!(read_id(&id_bytes(&id, &ends), &ends), Ok(id));
        let entry = FlowEntry { cookie, idle_timeout_s, hard_timeout_s, flags, age_ns, idle_ns: 0, counted: flow::Counted::default(), note, instructions };
        assert_eq!(read_entry(&entry_bytes(&entry, &ends, NOW), &ends, NOW), Ok(entry));
    }

    #[test]
    fn damaged_records_are_refused_without_a_panic(bytes in vec(any::<u8>(), 0..64)) {
        let _ = read_id(&bytes, &Share::new(Arc::default()));
        let _ = read_entry(&bytes, &Share::new(Arc::default()), NOW);
    }
}

#[test]
fn the_bytes_of_format_2_stay_as_they_are() {
    let mut id = FlowId { table: 2, priority: 10, key: Key::default(), mask: Key::default() };
    for (field, value, mask) in
        [(Field::EthType, 0x0800, 0xffff), (Field::Ipv4Dst, 0x0a00_0000, 0xff00_0000)]
    {
        id.key.set(field, value);
        id.mask.set(field, mask);
    }
    assert_eq!(
        id_bytes(&id, &Share::new(Arc::default())),
        [2, 0, 10, 6, 8, 0, 0xff, 0xff, 14, 10, 0, 0, 0, 0xff, 0, 0, 0]
    );
    let instructions = Instructions {
        apply: vec![
            Action::SetField { field: Field::VlanVid, of: None, value: 0x1005, mask: 0x1fff },
            Action::SetField {
                field: Field::TpDst,
                of: Some(Transport::Udp),
                value: 53,
                mask: 0xffff,
            },
            Action::Output(Output::Port(3)),
        ],
        goto: Some(4),
        wording: Wording { max_len: vec![0xffe5], empty_apply: false, empty_write: true },
        ..Instructions::default()
    };
    let (age_ns, note) = (0x10, 5);
    let entry = FlowEntry {
        cookie: 1,
        idle_timeout_s: 2,
        hard_timeout_s: 3,
        flags: 1,
        age_ns,
        idle_ns: 0,
        counted: flow::Counted::default(),
        note,
        instructions,
    };
    let head = [0, 0, 0, 0, 0, 0, 0, 1, 0, 2, 0, 3, 0, 1];
    let note_and_stamp =
        [0, 0, 0, 5, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0, 0, 0x30];
    let apply = [2, 0, 0, 0, 3, 18, 7, 0x10, 0x05, 0x1f, 0xff, 26, 2, 16, 0, 53, 0xff, 0xff];
    let tail = [1, 0, 0, 0, 3, 4, 0, 0, 0, 0, 6, 4, 7, 0, 0, 0, 1, 0xff, 0xe5];
    let all = [&head[..], &note_and_stamp, &apply, &tail].concat();
    assert_eq!(entry_bytes(&entry, &Share::new(Arc::default()), NOW), all);
}

#[test]
fn an_end_is_kept_as_its_address_and_has_another_number_in_another_process() {
    let (before, after) = (ends(), Share::new(Arc::default()));
    let with = |number: u128| {
        let (mut key, mut mask) = (Key::default(), Key::default());
        key.set(Field::TunSrc, number);
        mask.set(Field::TunSrc, Field::TunSrc.full());
        FlowId { table: 0, priority: 1, key, mask }
    };
    for (number, then) in [(3, 1), (2, 2), (0, 0)] {
        assert_eq!(read_id(&id_bytes(&with(number), &before), &after), Ok(with(then)));
    }
    assert_eq!(after.address(2), "2001:db8::2".parse().ok());
}
