//! One file with every kind of error, and the message that each one gives.

use super::*;

fn host() -> Host {
    Host { cores: vec![0, 1], node_id: "test-node".into(), copied_from: None }
}

/// Compares the messages for a file of `testdata` with those kept beside it.
#[track_caller]
fn assert_messages(name: &str) {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/src/config/testdata");
    let read = |kind: &str| {
        std::fs::read_to_string(format!("{directory}/{name}.{kind}")).unwrap_or_default()
    };
    let message =
        Config::parse(&read("toml"), &format!("{name}.toml"), &host()).unwrap_err().to_string()
            + "\n";
    if message != read("expected") {
        if std::env::var_os("SUIRO_UPDATE").is_some() {
            return std::fs::write(format!("{directory}/{name}.expected"), message).unwrap();
        }
        panic!(
            "run with SUIRO_UPDATE=1 and review the change; the messages for {name}.toml are now:\n{message}"
        );
    }
}

#[test]
fn every_error_is_reported_in_one_run_with_line_thing_cause_and_remedy() {
    assert_messages("bad");
}

#[test]
fn a_syntax_error_hides_neither_the_next_one_nor_a_wrong_value() {
    assert_messages("syntax");
}

/// What a file declares, as the API and the store write it.
fn as_json(config: &Config) -> serde_json::Value {
    let texts = |list: &[Located<String>]| -> Vec<String> {
        list.iter().map(|text| text.value.clone()).collect()
    };
    let switch = |switch: &SwitchConfig| {
        let ports: Vec<_> = switch.ports.iter().map(|port| &port.value).collect();
        serde_json::json!({
            "switch": switch.spec,
            "ports": ports,
            "flows": texts(&switch.flows),
            "groups": texts(&switch.groups),
            "meters": texts(&switch.meters),
        })
    };
    // Rungs change what a frame costs, not what a store or a client reads.
    let NodeConfig { run_dir, state_dir, cores, spin, flows_per_table, log, tls, .. } =
        &config.node;
    serde_json::json!({
        "node": {
            "run_dir": run_dir,
            "state_dir": state_dir,
            "cores": cores,
            "spin_us": spin.map(|spin| spin.as_micros()),
            "flows_per_table": flows_per_table,
            "log": log,
            "tls": tls,
        },
        "switches": config.switches.iter().map(switch).collect::<Vec<_>>(),
    })
}

#[test]
fn every_kind_and_key_of_a_file_becomes_the_json_that_it_always_was() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/src/config/testdata");
    let text = std::fs::read_to_string(format!("{directory}/rich.toml")).unwrap();
    let config = Config::parse(&text, "rich.toml", &host()).map_err(|all| all.to_string()).unwrap();
    let now = serde_json::to_string_pretty(&as_json(&config)).unwrap() + "\n";
    let kept = std::fs::read_to_string(format!("{directory}/rich.json")).unwrap();
    assert_eq!(now, kept, "rich.toml means something else now: stores and clients would too");
    for port in config.switches.iter().flat_map(|switch| &switch.ports) {
        let json = serde_json::to_string(&port.value).unwrap();
        assert_eq!(serde_json::from_str::<PortSpec>(&json).unwrap(), port.value, "{json}");
    }
}

#[test]
fn the_annotated_example_is_accepted() {
    let text = include_str!("../../../../docs/reference/node.example.toml");
    let config = Config::parse(text, "node.example.toml", &host())
        .unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(config.switches.len(), 2);
}

#[test]
fn every_key_that_the_example_shows_commented_out_is_accepted_too() {
    let text = include_str!("../../../../docs/reference/node.example.toml");
    let uncommented: String = text
        .lines()
        .map(|line| line.strip_prefix("#: ").unwrap_or(line).to_owned() + "\n")
        .collect();
    assert_ne!(uncommented, text);
    Config::parse(&uncommented, "node.example.toml", &host())
        .unwrap_or_else(|problems| panic!("{problems}"));
}

#[test]
fn nothing_written_is_an_empty_node_with_defaults() {
    assert_eq!(Config::parse("", "empty", &host()).unwrap(), Config::empty(&host()));
    assert_eq!(Config::empty(&host()).node.cores, [1]);
}

#[test]
fn switches_without_a_listen_of_their_own_count_up_from_the_nodes() {
    let text = "[node]\nlisten = 'ptcp:7000'\n[[switch]]\nname = 'a'\n[[switch]]\nname = 'b'\nlisten = ['ptcp:9']\n[[switch]]\nname = 'c'";
    let config = Config::parse(text, "", &host()).unwrap();
    let listens: Vec<_> =
        config.switches.iter().map(|switch| switch.spec.listen[0].to_string()).collect();
    assert_eq!(listens, ["ptcp:7000:127.0.0.1", "ptcp:9:127.0.0.1", "ptcp:7002:127.0.0.1"]);
}

#[test]
fn bounds_have_keys_and_what_is_no_bound_is_refused_by_its_name() {
    let of = |bounds: &str| {
        let text = format!("[node]\nbounds = {{ {bounds} }}");
        Config::parse(&text, "", &host()).map(|config| config.node.bounds)
    };
    let defaults = BoundsSpec::default();
    assert_eq!(of("").unwrap(), defaults);
    let some = of("connections = 1024, guest_memory = 2199023255552").unwrap();
    assert_eq!(some, BoundsSpec { connections: 1024, guest_memory: 2 << 40, ..defaults });
    for (bounds, what) in [("connections = 7", "8 to 65536"), ("calls = 1", "calls")] {
        let refused = of(bounds).unwrap_err().to_string();
        assert!(refused.contains(what), "{refused}");
    }
}

#[test]
fn protocols_are_versions_of_openflow_and_all_of_them_when_left_out() {
    let of = |line: &str| {
        let text = format!("[[switch]]\nname = 'a'\n{line}");
        let config = Config::parse(&text, "", &host());
        config.map(|config| config.switches[0].spec.protocols.clone())
    };
    assert_eq!(of("protocols = ['1.0']").unwrap(), ["1.0".parse().unwrap()]);
    assert_eq!(of("").unwrap(), api::Protocol::all());
    assert_eq!(of("protocols = []").unwrap(), api::Protocol::all());
    let refused = of("protocols = ['1.5']").unwrap_err().to_string();
    assert!(refused.contains("1.0 or 1.3"), "{refused}");
}

#[test]
fn a_tunnel_has_its_ends_its_key_and_what_its_outer_packets_carry() {
    let tunnel = |keys: &str| {
        let text =
            format!("[[switch]]\nname = 'a'\n[[switch.port]]\nname = 't'\ntype = 'vxlan'\n{keys}");
        Config::parse(&text, "", &host()).map_err(|problems| problems.to_string())
    };
    let config = tunnel(
        "remote = '2001:db8::2'\nlocal = '2001:db8::1,2001:db8::3'\nkey = 7\nflow_id = 'underlay'\nudp_port = 4790\ndscp = 46\nttl = 9\nmss_clamp = true\nouter_checksum = false\nforwarding = 'own'\nencrypt = '/etc/suiro/t.keys'\nseal_core = 1",
    );
    let shown = serde_json::to_value(&config.unwrap().switches[0].ports[0].value).unwrap();
    let wanted = [
        ("remote", "2001:db8::2".into()),
        ("local", "2001:db8::1,2001:db8::3".into()),
        ("key", 7.into()),
        ("flow_id", "underlay".into()),
        ("udp_port", 4790.into()),
        ("dscp", serde_json::json!("46")),
        ("ttl", 9.into()),
        ("mss_clamp", true.into()),
        ("outer_checksum", false.into()),
        ("forwarding", "own".into()),
        ("encrypt", "/etc/suiro/t.keys".into()),
        ("seal_core", 1.into()),
    ];
    wanted
        .iter()
        .for_each(|(key, value): &(&str, serde_json::Value)| assert_eq!(shown[key], *value));
    let refused = tunnel("remote = 'host2'\nkey = 16777216\ndscp = 64").unwrap_err();
    for words in ["\"host2\" is not a tunnel's other end", "a VNI from 0 to 16777215", "not a DSCP"]
    {
        assert!(refused.contains(words), "{refused}");
    }
    let many = tunnel("remote = '192.0.2.2'\nkey = 'flow'\nflow_id = 'tos'").unwrap();
    let shown = serde_json::to_value(&many.switches[0].ports[0].value).unwrap();
    assert_eq!((&shown["key"], &shown["flow_id"]), (&"flow".into(), &"tos".into()));
    let refused = tunnel("remote = '192.0.2.2'\nkey = 'flow'\nforwarding = 'own'").unwrap_err();
    assert!(refused.contains("one other end and one VNI"), "{refused}");
    let refused = tunnel("remote = '192.0.2.2'\nkey = 'flow'\nflow_id = 'tso'").unwrap_err();
    assert!(refused.contains("did you mean \"tos\"?"), "{refused}");
}

#[test]
fn a_ports_queues_have_rates_as_text_or_as_numbers() {
    let text = "[[switch]]\nname = 'a'\n[[switch.port]]\nname = 'x'\ntype = 'tap'\nrate = '1G'\n[[switch.port.queue]]\nid = 7\nmin_rate = 64_000\nmax_rate = '2.5M'\n[[switch.port.queue]]\nid = 0";
    let config = Config::parse(text, "", &host()).unwrap();
    let port = &config.switches[0].ports[0].value;
    let shown = serde_json::to_value(port).unwrap();
    assert_eq!(shown["rate"], "1G");
    let wanted = serde_json::json!([{"id": 7, "min_rate": "64k", "max_rate": "2500k"}, {"id": 0}]);
    assert_eq!(shown["queue"], wanted);
}

#[test]
fn rungs_are_all_when_left_out_and_pass_is_always_among_them() {
    let of = |line: &str| {
        Config::parse(&format!("[node]\n{line}"), "f", &host()).map(|config| config.node.rungs)
    };
    assert_eq!(of("").unwrap(), Rungs::ALL);
    assert_eq!(of("rungs = []").unwrap(), Rungs::PASS);
    let found: Vec<_> = of("rungs = ['uniform', 'port']").unwrap().iter().collect();
    assert_eq!(found, [Rung::Port, Rung::Uniform, Rung::Pass]);
    let refused = of("rungs = ['port',\n'patern']").unwrap_err().to_string();
    let wanted = "f:3: node: rungs = \"patern\" is unknown\n    remedy: did you mean \"pattern\"? choose one of: port, pattern, uniform, whole, pass";
    assert!(refused.starts_with(wanted), "{refused}");
}
