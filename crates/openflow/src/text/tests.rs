use super::{
    no_names, no_ports, parse_actions, parse_filter, parse_flow, parse_group, parse_meter,
    print_actions, print_flow_mod, print_group, print_group_stats, print_match, print_meter,
    print_meter_stats,
};
use crate::*;
use proptest::prelude::*;

fn add(text: &str) -> Result<FlowMod, text::TextError> {
    parse_flow(text, FlowModCommand::Add, &no_ports)
}

/// Word and problem of the error that adding `text` gives.
fn refusal(text: &str) -> (String, &'static str) {
    let error = add(text).expect_err(text);
    assert_eq!(
        &text[error.at..error.at + error.word.len()],
        error.word,
        "the error points at its word"
    );
    assert!(!error.remedy.is_empty());
    (error.word, error.problem)
}

#[test]
fn errors_name_place_word_problem_and_remedy() {
    let error = add("priority=5,tcp,tp_dst=70000,actions=drop").unwrap_err();
    let text = "column 23: \"70000\": not a number that fits; give a number from 0 to 65535";
    assert_eq!(error.to_string(), text);
    assert_eq!(
        refusal("tcp_dst=80,actions=drop"),
        ("tcp_dst=80".into(), "its protocol is not matched")
    );
    assert_eq!(refusal("tp_dst=80,actions=drop").0, "tp_dst=80");
    assert_eq!(
        refusal("reg0=1,actions=drop"),
        ("reg0=1".into(), "not a match field of OpenFlow 1.3")
    );
    for (field, instead) in
        [("reg0", "metadata"), ("ct_state", "controller"), ("nw_frag", "steer flow add")]
    {
        let error = add(&format!("ip,{field}=1,actions=drop")).unwrap_err();
        assert_eq!(error.word, format!("{field}=1"));
        assert!(error.remedy.contains(instead), "{field}: {}", error.remedy);
    }
    assert_eq!(refusal("in_port=eth0,actions=drop").0, "eth0");
    assert_eq!(refusal("ip,tcp,nw_src=10.0.0,actions=drop").0, "10.0.0");
    assert_eq!(refusal("tcp,udp,actions=drop"), ("udp".into(), "a second value for one field"));
    assert_eq!(
        refusal("tcp,tp_src=16/0xf0,actions=drop").1,
        "OpenFlow 1.3 has no mask for this field"
    );
    assert_eq!(refusal("vlan_vid=10,actions=drop").1, "a VLAN id without the bit 0x1000");
    assert_eq!(refusal("vlan_tci=0x6000/0xe000,actions=drop").1, "a priority without a tag");
    assert_eq!(refusal("priority=,actions=drop").1, "a value is missing");
    assert_eq!(refusal("tcp=5,actions=drop").1, "this word takes no value");
    assert_eq!(refusal("ip"), ("ip".into(), "no actions"));
    assert_eq!(refusal("table=255,actions=drop").1, "a flow in all tables");
    assert_eq!(refusal("cookie=1/1,actions=drop").1, "a cookie mask in an addition");
}

#[test]
fn errors_in_actions_point_at_the_action() {
    assert_eq!(
        refusal("actions=output:1,resubmit(,2)"),
        ("resubmit(,2)".into(), "not an action of OpenFlow 1.3")
    );
    assert_eq!(
        refusal("actions=set_field:80->tcp_dst").1,
        "a set-field that the match does not allow"
    );
    assert_eq!(
        refusal("actions=set_field:5->vlan_vid").1,
        "a VLAN id without the present bit 0x1000"
    );
    assert_eq!(refusal("actions=set_field:5->in_port").1, "a field that cannot be set");
    assert_eq!(refusal("actions=set_field:5").1, "no field is named");
    assert_eq!(refusal("actions=mod_tp_dst:5").1, "no protocol says which ports are meant");
    assert_eq!(
        refusal("actions=push_vlan:0x0800").1,
        "an Ethernet type that this header cannot have"
    );
    assert_eq!(refusal("actions=output:1,drop").1, "drop beside other actions");
    assert_eq!(refusal("actions=goto_table:1,goto_table:2").1, "an instruction twice");
    assert_eq!(refusal("table=3,actions=goto_table:3").1, "goto_table to no later table");
    assert_eq!(refusal("actions=write_actions(write_actions(drop))").0, "write_actions(drop)");
    assert_eq!(refusal("actions=write_actions(output:1").1, "a parenthesis is not closed");
    assert_eq!(refusal("actions=controller(id=5)"), ("id=5".into(), "not in OpenFlow 1.3"));
    assert_eq!(refusal("actions=meter:0").1, "no meter has this number");
    assert_eq!(refusal("actions=TABLE").1, "a port that nothing can be sent to");
    assert_eq!(refusal("actions=output:1:2").0, "1:2");
}

#[test]
fn beyond_ovs_ofctl_the_rest_of_openflow_1_3_is_read_and_printed() {
    for text in [
        "mpls actions=copy_ttl_out,copy_ttl_in,set_mpls_ttl(64),output:1",
        "actions=push_pbb:0x88e7,set_field:0x5->pbb_isid,output:1",
        "dl_type=0x88e7,pbb_isid=0x5 actions=pop_pbb,output:1",
        "in_port=5,in_phy_port=6 actions=drop",
        "ipv6,ipv6_exthdr=0x3/0x7 actions=drop",
        "actions=set_field:0x64/0xff->tun_id,output:1",
        "ip actions=set_field:10.0.0.0/8->ip_dst,output:1",
        "actions=meter:3,output:1,clear_actions,write_actions(group:3),write_metadata:0x5,goto_table:9",
    ] {
        assert_eq!(print_flow_mod(&add(text).unwrap(), &no_names), text);
    }
    let applied = add("actions=apply_actions(output:1,output:2),goto_table:2").unwrap();
    assert_eq!(print_flow_mod(&applied, &no_names), "actions=output:1,output:2,goto_table:2");
}

#[test]
fn deletions_and_modifications_have_their_own_defaults() {
    let delete =
        parse_flow("ip,out_port=3,out_group=2,cookie=5/-1", FlowModCommand::Delete, &no_ports)
            .unwrap();
    assert_eq!(
        (delete.table, delete.out_port, delete.out_group),
        (TableId::ALL, PortNo(3), GroupId(2))
    );
    assert_eq!((delete.cookie, delete.cookie_mask), (5, u64::MAX));
    let modify =
        parse_flow("cookie=1/3,ip,actions=drop", FlowModCommand::Modify, &no_ports).unwrap();
    assert_eq!((modify.table, modify.cookie, modify.cookie_mask), (TableId(0), 1, 3));
    assert!(parse_flow("cookie=5", FlowModCommand::Delete, &no_ports).is_err());
    assert!(parse_flow("ip,actions=drop", FlowModCommand::Delete, &no_ports).is_err());
}

#[test]
fn filters_are_read() {
    let filter = parse_filter("table=2,cookie=0x5/0xff,tcp,out_port=LOCAL", &no_ports).unwrap();
    assert_eq!((filter.table, filter.cookie, filter.cookie_mask), (TableId(2), 5, 0xff));
    assert_eq!(
        (filter.out_port, print_match(&filter.fields, &no_names).as_str()),
        (PortNo::LOCAL, "tcp")
    );
    assert_eq!(parse_filter("", &no_ports).unwrap(), FlowStatsRequest::default());
    assert!(parse_filter("actions=drop", &no_ports).is_err());
}

#[test]
fn ports_have_names_both_ways() {
    let number = |name: &str| (name == "veth0").then_some(PortNo(7));
    let name = |port: PortNo| (port == PortNo(7)).then(|| "veth0".to_owned());
    let flow = parse_flow("in_port=veth0,actions=veth0,output:veth0", FlowModCommand::Add, &number)
        .unwrap();
    assert_eq!(print_flow_mod(&flow, &name), "in_port=veth0 actions=output:veth0,output:veth0");
    assert_eq!(print_flow_mod(&flow, &no_names), "in_port=7 actions=output:7,output:7");
}

#[test]
fn a_packet_out_may_send_through_the_tables() {
    let actions = parse_actions("set_field:5->tcp_dst,TABLE", &no_ports).unwrap();
    assert_eq!(print_actions(&actions, &no_names), "set_field:5->tcp_dst,TABLE");
    assert_eq!(parse_actions("drop", &no_ports).unwrap(), []);
}

/// Text as typed and as `ovs-ofctl dump-groups` prints the group (Open vSwitch 3.1.0, recorded).
const GROUPS: &[(&str, &str)] = &[
    (
        "group_id=1,type=all,bucket=output:1,bucket=output:2",
        "group_id=1,type=all,bucket=actions=output:1,bucket=actions=output:2",
    ),
    (
        "group_id=2,type=select,bucket=weight:10,output:1,bucket=weight=20,actions=output:2,set_queue:3",
        "group_id=2,type=select,bucket=weight:10,actions=output:1,bucket=weight:20,actions=output:2,set_queue:3",
    ),
    (
        "group_id=3,type=indirect,bucket=set_field:00:11:22:33:44:55->eth_dst,output:1",
        "group_id=3,type=indirect,bucket=actions=set_field:00:11:22:33:44:55->eth_dst,output:1",
    ),
    (
        "group_id=4,type=ff,bucket=watch_port:1,output:1,bucket=watch_port=2,watch_group=3,actions=output:2",
        "group_id=4,type=ff,bucket=watch_port:1,actions=output:1,bucket=watch_port:2,watch_group:3,actions=output:2",
    ),
    ("group_id=6,type=all", "group_id=6,type=all"),
    (
        "group_id=7 type=select bucket=actions=output:1",
        "group_id=7,type=select,bucket=actions=output:1",
    ),
    (
        "group_id=8,type=select,bucket=output:1,weight:5",
        "group_id=8,type=select,bucket=weight:5,actions=output:1",
    ),
    ("group_id=9,type=all,bucket=actions=drop", "group_id=9,type=all,bucket=actions=drop"),
    ("group_id=10,type=all,bucket=actions=", "group_id=10,type=all,bucket=actions=drop"),
];

#[test]
fn groups_are_read_and_printed_as_ovs_ofctl_does() {
    for (typed, printed) in GROUPS {
        for text in [typed, printed] {
            let group = parse_group(text, GroupModCommand::Add, &no_ports)
                .unwrap_or_else(|e| panic!("{text}: {e}"));
            let desc = GroupDesc { kind: group.kind, id: group.id, buckets: group.buckets };
            assert_eq!(print_group(&desc, &no_names), *printed);
        }
    }
}

#[test]
fn groups_are_refused_with_the_word() {
    let word =
        |text: &str| parse_group(text, GroupModCommand::Add, &no_ports).expect_err(text).word;
    assert_eq!(word("group_id=1,type=any"), "any");
    assert_eq!(word("group_id=1,type=all,bucket=bucket_id:1,actions=output:1"), "bucket_id:1");
    assert_eq!(word("group_id=1,type=all,colour=red"), "colour=red");
    assert_eq!(word("group_id=1,type=all,bucket=output:1,learn()"), "learn()");
    assert_eq!(word("type=all"), "type=all");
    assert_eq!(word("group_id=1,type=indirect"), "group_id=1,type=indirect");
}

#[test]
fn every_meter_that_openflow_takes_reads_back_in_one_line() {
    let band = |burst_size| MeterBand { kind: BandKind::Drop, rate: 9, burst_size };
    for bits in (0..16).filter(|bits| bits & 3 != 3) {
        for bands in [vec![], vec![band(0)], vec![band(7)], vec![band(7), band(0)]] {
            let flags = MeterFlags::from_bits_retain(bits);
            let meter = MeterConfig { flags, id: MeterId(3), bands };
            let line = print_meter(&meter).replace('\n', " ");
            let read = parse_meter(&line, MeterModCommand::Add).expect(&line);
            let read = MeterConfig { flags: read.flags, id: read.id, bands: read.bands };
            assert_eq!(read, meter, "{line}");
        }
    }
}

#[test]
fn meters_are_read_and_printed_as_ovs_ofctl_does() {
    for (typed, printed) in [
        (
            "meter=1,kbps,burst,stats,bands=type=drop,rate=1000,burst_size=100",
            "meter=1 kbps burst stats bands=\ntype=drop rate=1000 burst_size=100\n",
        ),
        ("meter=2,pktps,band=type=drop,rate=5", "meter=2 pktps bands=\ntype=drop rate=5\n"),
        (
            "meter=3 kbps bands=type=dscp_remark,rate=100,prec_level=1,type=drop,rate=200",
            "meter=3 kbps bands=\ntype=dscp_remark rate=100 prec_level=1\ntype=drop rate=200\n",
        ),
        (
            "meter=controller,pktps,band=type=drop,rate=5",
            "meter=controller pktps bands=\ntype=drop rate=5\n",
        ),
    ] {
        for text in [typed, printed] {
            let meter =
                parse_meter(text, MeterModCommand::Add).unwrap_or_else(|e| panic!("{text}: {e}"));
            let config = MeterConfig { flags: meter.flags, id: meter.id, bands: meter.bands };
            assert_eq!(print_meter(&config), printed);
        }
    }
}

#[test]
fn meters_are_refused_with_a_reason() {
    let problem = |text: &str| parse_meter(text, MeterModCommand::Add).expect_err(text).problem;
    assert_eq!(problem("meter=1,bands=type=drop,rate=5"), "rates without a unit");
    assert_eq!(problem("meter=1,kbps"), "a meter without bands");
    assert_eq!(problem("kbps,bands=type=drop,rate=5"), "no meter number");
    assert_eq!(
        problem("meter=1,kbps,burst,bands=type=drop,rate=5"),
        "burst and burst_size go together"
    );
    assert_eq!(problem("meter=1,kbps,rate=5"), "not part of a meter");
    assert_eq!(
        problem("meter=1,kbps,bands=type=drop,rate=5,prec_level=1"),
        "only dscp_remark has a level"
    );
    assert_eq!(problem("meter=0,kbps,bands=type=drop,rate=5"), "a number that no meter can have");
}

#[test]
fn counters_are_printed_as_ovs_ofctl_does() {
    let counter = |packets, bytes| Counter { packets, bytes };
    let group = GroupStats {
        id: GroupId(7),
        ref_count: 2,
        total: counter(10, 1000),
        duration_s: 5,
        duration_ns: 250_000_000,
        buckets: vec![counter(1, 2), counter(3, 4)],
    };
    let text = "group_id=7,duration=5.250s,ref_count=2,packet_count=10,byte_count=1000,\
                bucket0:packet_count=1,byte_count=2,bucket1:packet_count=3,byte_count=4";
    assert_eq!(print_group_stats(&group), text);
    let meter = MeterStats {
        id: MeterId(3),
        flow_count: 2,
        input: counter(10, 1000),
        duration_s: 5,
        duration_ns: 250_000_000,
        bands: vec![counter(1, 2)],
    };
    let text = "meter:3 flow_count:2 packet_in_count:10 byte_in_count:1000 duration:5.250s bands:\n\
                0: packet_count:1 byte_count:2\n";
    assert_eq!(print_meter_stats(&meter), text);
}

/// Words that flows are made of, so that arbitrary texts are often valid.
const WORDS: &[&str] = &[
    "ip",
    "tcp",
    "udp6",
    "icmp",
    "icmp6",
    "arp",
    "mpls",
    "sctp",
    "in_port=1",
    "dl_vlan=5",
    "dl_vlan=0xffff",
    "dl_vlan_pcp=3",
    "vlan_tci=0x1000/0x1000",
    "vlan_tci=0xb002/0xf003",
    "nw_src=10.0.0.0/8",
    "ipv6_dst=fe80::/10",
    "tp_src=5",
    "icmp_type=135",
    "nd_target=::1",
    "tcp_flags=+syn-ack",
    "metadata=1/3",
    "tun_id=7",
    "nw_tos=4",
    "dl_src=1:2:3:4:5:6/ff:ff:ff:00:00:00",
    "arp_op=1",
    "mpls_label=5",
    "priority=7",
    "cookie=9",
    "send_flow_rem",
    "idle_timeout=3",
    "table=2",
    "dl_type=0x88e7",
    "pbb_isid=1",
    "ipv6_label=1/3",
    "nw_proto=6",
    "no_byte_counts",
];
const ACTIONS: &[&str] = &[
    "output:1",
    "2",
    "controller:5",
    "flood",
    "group:3",
    "set_queue:2",
    "push_vlan:0x88a8",
    "pop_vlan",
    "mod_vlan_vid:5",
    "mod_vlan_pcp:2",
    "push_mpls:0x8847",
    "pop_mpls:0x0800",
    "dec_ttl",
    "set_mpls_ttl:5",
    "mod_dl_src:1:2:3:4:5:6",
    "mod_nw_dst:1.2.3.4",
    "mod_tp_dst:5",
    "set_field:1/3->metadata",
    "set_field:2/6->tun_id",
    "goto_table:9",
    "meter:4",
    "clear_actions",
    "write_metadata:3/7",
    "write_actions(output:3,set_field:fe80::1->ipv6_src)",
    "apply_actions(5)",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn parse_is_the_inverse_of_print(
        words in prop::collection::vec(prop::sample::select(WORDS), 0..6),
        actions in prop::collection::vec(prop::sample::select(ACTIONS), 0..6),
    ) {
        let text = format!("{} actions={}", words.join(","), actions.join(","));
        if let Ok(flow) = add(&text) {
            prop_assert_eq!(flow.check(), Ok(()));
            let printed = print_flow_mod(&flow, &no_names);
            prop_assert_eq!(add(&printed), Ok(flow), "{}", printed);
        }
    }

    #[test]
    fn arbitrary_text_is_read_or_refused_without_panic(text in ".*") {
        let _ = add(&text);
        let _ = parse_group(&text, GroupModCommand::Add, &no_ports);
        let _ = parse_meter(&text, MeterModCommand::Add);
        let _ = parse_filter(&text, &no_ports);
    }
}

#[test]
fn the_fields_of_steering_are_read_and_printed() {
    for text in [
        "ip,fcf=0x3",
        "ipv6,fcf=0x1/0x1",
        "vm_id=7",
        "ip_frag=not_later",
        "ip_frag=0x2",
        "tun_id=0x2a,tun_src=192.0.2.0/24,tun_dst=192.0.2.1",
        "tun_ipv6_src=fd00::/8,tun_ipv6_dst=::1",
    ] {
        let fields = parse_filter(text, &no_ports).unwrap().fields;
        assert_eq!(print_match(&fields, &no_names), text);
    }
    let fields = parse_filter("tun_ipv4_src=10.0.0.1,nw_frag=first", &no_ports).unwrap().fields;
    assert_eq!(print_match(&fields, &no_names), "tun_src=10.0.0.1,ip_frag=first");
    let flow = parse_flow(
        "ip,fcf=2,actions=set_field:0x1/0x1->fcf,output:2",
        FlowModCommand::Add,
        &no_ports,
    );
    assert_eq!(
        print_flow_mod(&flow.unwrap(), &no_names),
        "ip,fcf=0x2 actions=set_field:0x1/0x1->fcf,output:2"
    );
}

#[test]
fn tunnels_addresses_are_read_and_printed_and_masks_of_them_refused() {
    for text in [
        "in_port=1 actions=set_field:0x7->tun_id,set_field:192.0.2.2->tun_dst,output:2",
        "tun_id=0x7,tun_src=192.0.2.2 actions=output:1",
        "tun_ipv6_src=2001:db8::2,in_port=1 actions=set_field:2001:db8::2->tun_ipv6_dst,output:2",
        "tun_src=0.0.0.0,tun_dst=192.0.2.2 actions=drop",
    ] {
        let flow = add(&text.replace(" actions", ",actions")).unwrap();
        assert_eq!(print_flow_mod(&flow, &no_names), text);
        let message = Message::FlowMod(flow);
        let bytes = message.encode(Version::V1_3, 1).unwrap();
        assert_eq!(Message::decode(&bytes).unwrap().1, message, "{text}");
    }
    for text in [
        "tun_src=192.0.2.0/24,actions=drop",
        "tun_src=192.0.2.2,tun_ipv6_src=2001:db8::2,actions=drop",
        "tun_ipv6_dst=::,actions=drop",
        "actions=set_field:192.0.2.2->tun_src,output:1",
        "actions=set_field:192.0.2.2/255.255.255.0->tun_dst,output:1",
    ] {
        let refused = add(text).unwrap_err();
        assert!(
            refused.problem.contains("tun") || refused.problem.contains("cannot be set"),
            "{text}: {refused}"
        );
    }
}

#[test]
fn what_is_for_steering_alone_is_refused_in_flows_by_name() {
    let error = |text| parse_flow(text, FlowModCommand::Add, &no_ports).unwrap_err();
    let place = error("actions=place(core=auto)");
    assert_eq!((place.at, &*place.remedy), (8, "write suiro steer flow add"));
    for text in
        ["vm_id=1,actions=drop", "ip,nw_frag=first,actions=drop", "ip,ip_frag=1,actions=drop"]
    {
        let refused = error(text);
        assert!(refused.problem.contains("steering rules"), "{text}: {refused}");
        assert!(refused.remedy.contains("suiro steer flow add"), "{text}: {}", refused.remedy);
    }
    assert!(error("ip,fcf=1,nw_tos=4,actions=drop").problem.contains("twice"));
}
