//! A state file of the format before.

use super::*;
use flow::{Transport, Wording};
use openflow::{Action as OfAction, BandKind, Bucket, MeterBand, Oxm, OxmField, PortNo};

/// Made by the last release that wrote format 1:
///
/// ```text
/// suiro switch add sw0 --fail-mode secure --dpid 00000000000000aa
/// suiro meter add sw0 'meter=3,kbps,burst,bands=type=drop,rate=100,burst_size=50'
/// suiro group add sw0 'group_id=5,type=select,bucket=weight:3,output:2,bucket=weight:1,mod_vlan_vid:7,output:3'
/// suiro flow add sw0 'table=1,priority=7,cookie=0x1234,tcp,nw_dst=10.0.0.0/8,tp_dst=80,hard_timeout=60000,idle_timeout=600,send_flow_rem,actions=meter:3,mod_nw_tos:32,controller(max_len=77),group:5'
/// suiro flow add sw0 'priority=100,tun_src=192.0.2.7,actions=set_field:2001:db8::9->tun_ipv6_dst,output:1,goto_table:1'
/// ```
const FORMAT_1: &[u8] = include_bytes!("format-1.redb");

#[test]
fn a_file_of_format_1_is_read_whole_and_is_of_format_2_then() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join(FILE_NAME), FORMAT_1).unwrap();
    for age in [0, 50] {
        let (store, kept) = open_at(home.path(), Nanos(100 + age));
        assert_eq!(kept.switches().unwrap()[0].name, sw("sw0"));
        let mut found = Vec::new();
        kept.changes(&sw("sw0"), |change| found.push(change)).unwrap();
        assert_eq!(found[..2], [Change::MeterSet(meter(), age), Change::GroupSet(group(), age)]);
        check_rules(&found[2..], age, &kept.ends);
        assert_eq!((store.left_out(), &kept.set_aside), (0, &None));
    }
}

fn meter() -> MeterConfig {
    let band = MeterBand { kind: BandKind::Drop, rate: 100, burst_size: 50 };
    MeterConfig { flags: MeterFlags::KBPS | MeterFlags::BURST, id: MeterId(3), bands: vec![band] }
}

fn group() -> GroupDesc {
    let bucket = |weight, actions| Bucket {
        weight,
        watch_port: PortNo::ANY,
        watch_group: GroupId::ANY,
        actions,
    };
    let tag = Oxm::exact(OxmField::VlanVid, 0x1007);
    // Format 1 kept a conditional push as a push.
    let tagged =
        vec![OfAction::PushVlan(0x8100), OfAction::SetField(tag), OfAction::output(PortNo(3))];
    let buckets = vec![bucket(3, vec![OfAction::output(PortNo(2))]), bucket(1, tagged)];
    GroupDesc { kind: GroupType::Select, id: GroupId(5), buckets }
}

fn check_rules(found: &[Change], age_ns: u64, ends: &Ends) {
    let [Change::FlowSet(first, tunnel), Change::FlowSet(second, limited)] = found else {
        panic!("{found:?}")
    };
    let end = ends.number("192.0.2.7".parse().unwrap()).unwrap();
    assert_eq!((first.table, first.priority), (0, 100));
    assert_eq!(first.key.get(Field::TunSrc), u128::from(end));
    assert_eq!((tunnel.instructions.goto, tunnel.age_ns), (Some(1), age_ns));
    assert_eq!((second.table, second.priority), (1, 7));
    assert_eq!(second.key.get(Field::TpDst), 80);
    assert_eq!(second.mask.get(Field::Ipv4Dst), 0xff00_0000);
    let set = |field, value, mask| Action::SetField { field, of: None::<Transport>, value, mask };
    let apply = vec![
        set(Field::IpDscp, 8, 0x3f),
        Action::Output(Output::Controller { max_len: 77 }),
        Action::Group(5),
    ];
    let wording = Wording::default();
    let instructions = Instructions { meter: Some(3), apply, wording, ..Default::default() };
    let expected = FlowEntry {
        cookie: 0x1234,
        idle_timeout_s: 600,
        hard_timeout_s: 60000,
        flags: 1,
        age_ns,
        idle_ns: 0,
        counted: flow::Counted::default(),
        note: 0,
        instructions,
    };
    assert_eq!(*limited, expected);
}
