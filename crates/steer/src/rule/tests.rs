use super::*;
use place::steering::Target;
use place::{CoreId, VmId};

fn rule(text: &str) -> Rule {
    parse_rule(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn what_is_printed_reads_back_as_the_same_rule() {
    for text in [
        "ip,nw_src=10.0.0.1,vm_id=1,actions=place(core=auto,priority)",
        "priority=7,udp,nw_dst=10.1.0.0/16,tp_dst=5001,actions=place(core=3)",
        "cookie=0xbeef,ipv6,ipv6_dst=fd00::/8,ip_frag=later,actions=place(core=hash)",
        "tun_id=0x1f,tun_src=192.0.2.1,tun_dst=192.0.2.0/24,actions=place(core=auto,own)",
        "tun_src=2001:db8::/32,dl_dst=02:00:00:00:00:01,actions=place(core=7)",
        "priority=1,actions=place(core=auto)",
        "dl_vlan=7,tcp,nw_tos=32,actions=place(core=auto,priority,own)",
    ] {
        let read = rule(text);
        assert_eq!(rule(&read.to_string()), read, "{text} → {read}");
    }
}

#[test]
fn the_issues_own_example_reads_with_a_space_before_its_actions() {
    let read = rule("ip,nw_src=10.0.0.1,vm_id=1 actions=place(core=auto,priority)");
    assert_eq!(read.own.vm, VmId::new(1));
    assert_eq!(read.placing, Placing { target: Target::Auto, priority: true, own: false });
    assert_eq!(read.fields.0.len(), 2);
}

#[test]
fn a_core_is_named_by_its_number() {
    assert_eq!(rule("actions=place(core=12)").placing.target, Target::Core(CoreId(12)));
    assert_eq!(rule("actions=place(priority)").placing.target, Target::Auto, "auto unless said");
}

#[test]
fn an_error_names_the_word_its_place_and_what_to_write() {
    for (text, at, part) in [
        ("ip,nw_src=10.0.0.1", 0, "actions=place"),
        ("vm_id=0,actions=place(core=auto)", 0, "1 to 65535"),
        ("ip,vm_id=x,actions=place(core=auto)", 3, "number"),
        ("tun_src=1.2.3,actions=place(core=auto)", 0, "192.0.2.0/24"),
        ("vm_id=1,ip,nw_src=300.0.0.1,actions=place(core=auto)", 18, ""),
        ("in_port=1,actions=place(core=auto)", 0, "--on"),
        ("ip,actions=output:1", 11, "place(core="),
        ("ip,actions=place(core=fast)", 11, "place(core="),
        ("ip,actions=place(core=1,priority)", 11, "core=auto"),
        ("icmp,icmp_type=8,actions=place(core=auto)", 5, "tun_id"),
        ("tun_id=0x1000000,actions=place(core=auto)", 0, "24 bits"),
        ("tp_dst=80,actions=place(core=auto)", 0, "add tcp"),
    ] {
        let error = parse_rule(text).expect_err(text);
        assert!(error.to_string().contains(part), "{text}: {error}");
        assert_eq!(error.at, at, "{text}: {error}");
    }
}

#[test]
fn a_filter_selects_rules_at_least_as_specific() {
    let selects = |filter: &str, text: &str| parse_filter(filter).unwrap().selects(&rule(text));
    let http = "priority=9,cookie=0x5,tcp,nw_dst=10.0.0.1,tp_dst=80,vm_id=3,actions=place(core=1)";
    for filter in
        ["", "ip", "tcp,tp_dst=80", "ip,nw_dst=10.0.0.0/8", "vm_id=3", "cookie=4/4", "priority=9"]
    {
        assert!(selects(filter, http), "{filter}");
    }
    for filter in
        ["udp", "ip,nw_dst=11.0.0.0/8", "vm_id=4", "ip_frag=no", "cookie=1/-1", "tun_src=::/0"]
    {
        assert!(!selects(filter, http), "{filter}");
    }
}

#[test]
fn a_filter_obeys_each_of_its_words_or_names_it() {
    for word in ["n_packets=5", "n_bytes=5", "duration=1s", "on=eth0", "table=1", "out_port=1"] {
        assert_eq!(parse_filter(&format!("ip,{word}")).unwrap_err().word, word);
    }
    for word in ["idle_timeout=5", "send_flow_rem", "idle_age=1"] {
        assert_eq!(parse_filter(&format!("ip,{word}")).unwrap_err().word, word);
        assert!(parse_rule(&format!("ip,{word},actions=place(core=1)")).is_err());
    }
    assert!(parse_rule("on=eth0, n_packets=1, n_bytes=60, ip actions=place(core=1)").is_ok());
    let is_everything = |filter: &str| parse_filter(filter).unwrap().is_everything();
    assert!(is_everything("") && is_everything("cookie=5/0"));
    assert!(!is_everything("priority=0") && !is_everything("cookie=0/1") && !is_everything("ip"));
}

#[test]
fn only_the_exact_filter_names_one_rule() {
    let wide = rule("priority=5,ip,actions=place(core=1)");
    let exactly = |filter: &str| parse_filter(filter).unwrap().is_exactly(&wide);
    assert!(exactly("priority=5,ip"));
    assert!(!exactly("ip") && !exactly("priority=5") && !exactly("priority=5,tcp"));
}

#[test]
fn rules_are_the_same_by_priority_and_match_whatever_they_do() {
    let first = rule("priority=5,ip,vm_id=1,actions=place(core=1)");
    assert_eq!(first.key(), rule("vm_id=1,ip,priority=5,cookie=1,actions=place(core=hash)").key());
    assert_ne!(first.key(), rule("ip,priority=5,actions=place(core=1)").key());
}

/// Parts of rules, right and wrong.
const PARTS: &[&str] = &[
    "ip",
    "udp",
    "tcp6",
    "ipv6",
    "sctp",
    "nw_src=10.0.0.0/8",
    "nw_dst=10.0.0.1",
    "ipv6_dst=fd00::1/64",
    "tp_dst=53",
    "tp_src=0x10/0xfff0",
    "nw_tos=32",
    "nw_ecn=1",
    "dl_vlan=7",
    "vlan_tci=0x1000/0x1000",
    "dl_src=02:00:00:00:00:01",
    "tun_id=7",
    "tun_id=0xffffff",
    "tun_src=192.0.2.1",
    "tun_dst=2001:db8::/32",
    "tun_src=10.0.0.0/255.0.255.0",
    "vm_id=1",
    "vm_id=127",
    "ip_frag=later",
    "priority=0",
    "priority=65535",
    "cookie=0x7",
    "é",
    "=",
    "in_port=1",
    "actions=place(core=auto)",
    "actions=place(core=2)",
    "actions=place(core=hash)",
    "actions=place(core=auto,own,priority)",
    "actions=",
    "actions=place(",
    "nonsense",
];

proptest::proptest! {
    #[test]
    fn any_row_of_parts_reads_back_as_printed_or_is_refused(
        row in proptest::collection::vec(proptest::sample::select(PARTS), 0..8),
        separator in proptest::sample::select(&[",", " ", ", "][..]),
    ) {
        let text = row.join(separator);
        if let Ok(read) = parse_rule(&text) {
            let printed = read.to_string();
            let again = parse_rule(&printed);
            proptest::prop_assert_eq!(again.as_ref(), Ok(&read), "{}", printed);
            proptest::prop_assert!(parse_filter(&read.key()).is_ok_and(|filter| filter.selects(&read)));
        }
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in "\\PC{0,60}") {
        let _ = (parse_rule(&text), parse_filter(&text));
    }
}
