use super::*;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// What a node of so many switches with so many ports and workers shows.
struct Shown {
    node: NodeView,
    workers: WorkersView,
    switches: Vec<SwitchView>,
    ports: Vec<PortView>,
    steering: SteerView,
    offload: OffloadView,
}

fn of<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn shown(switches: usize, ports: usize, workers: usize) -> Shown {
    let times =
        json!({"buckets": [{"from_ns": 1024, "below_ns": 1280, "frames": 7}], "sum_ns": 8000});
    let worker = |worker: usize| {
        let rung = |rung: &str| json!({"rung": rung, "frames": 7, "bytes": 700});
        let rungs = ["port", "pattern", "uniform", "whole", "pass"].map(rung);
        json!({
            "worker": worker, "core": worker + 1, "frames": 5, "taken_over": 0, "batches": 1, "empty_polls": 2, "sleeps": 3, "restarts": 0,
            "rungs": rungs,
            "cache": {"hits": 1, "absent": 2, "stale": 3, "compared": 4, "passed_by": 5}, "cycles_rx": 10, "cycles_pipeline": 20,
            "cycles_tx": 30, "cycles_polling": 40, "cycles_per_s": 2_000_000_000u64, "ports": [],
        })
    };
    let switch = |at: usize| {
        json!({
            "name": format!("sw{at}"), "dpid": format!("{:016x}", at + 1), "fail_mode": "secure", "controllers": [], "listen": [],
            "protocols": [], "endpoints": [], "alone": true, "fail_after_s": 15, "on_reconnect": "keep", "on_standalone": "keep",
            "echo_interval_s": 5, "aux": 0, "steering": "off", "tls": null, "max_packet_in_per_s": 1000, "management": "", "origin": "api",
            "ports": ports, "tables": 254, "flows": 2, "packet_ins": 0, "packet_outs": 0,
            "drops": [{"reason": "no_match", "frames": 3 + at}, {"reason": "meter", "frames": 4}, {"reason": "too_big", "frames": 0}],
            "connections": [], "fault": null, "latency": {"received": times, "handed": times},
        })
    };
    let port = |at: usize, number: usize| {
        json!({
            "switch": format!("sw{at}"), "name": format!("p{number}"), "number": number + 1, "type": "tap",
            "spec": {"name": format!("p{number}"), "type": "tap", "rate": "1G", "queue": [{"id": 1, "min_rate": "1M"}]},
            "interface": null, "netns": null, "peer": null, "mac": null, "mtu": 1500, "admin_up": true, "up": true, "carrier": number != 0,
            "speed_mbps": 0, "mode": "", "notes": [], "origin": "api", "queues": [], "rate": null,
            "queue": [{"id": 1, "min_rate": null, "max_rate": null, "tx_frames": 1, "tx_bytes": 60, "tx_errors": 0, "waiting": 2, "wait": times, "age_ns": 1}],
            "counters": {"rx_frames": 1, "rx_bytes": 60, "tx_frames": 2, "tx_bytes": 120, "rx_drops": [], "tx_drops": [{"reason": "tx_full", "frames": 9}]},
            "fault": null,
        })
    };
    let core = |core: usize| {
        json!({"core": core, "numa": 0, "sibling": null, "role": "allowed", "pinned": [], "load_percent": {"total": 12.5}, "spent_ns": {},
               "units": 3, "frames": 4})
    };
    let all = (0..switches).flat_map(|at| (0..ports).map(move |number| (at, number)));
    Shown {
        node: of(json!({
            "version": "0.2.0", "pid": 1, "uptime_s": 100, "config_file": null, "run_dir": "", "cores": [1], "switches": switches,
            "ports": switches * ports, "store": {"file": "", "fault": null, "set_aside": null, "left_out": 0}, "background": false,
        })),
        workers: of(
            json!({"at_ns": 1_000_000_000_000u64, "workers": (0..workers).map(worker).collect::<Vec<_>>(),
                   "latency": {"received": times, "handed": {"buckets": [], "sum_ns": 0}}, "queue_wait": times}),
        ),
        switches: (0..switches).map(|at| of(switch(at))).collect(),
        ports: all.map(|(at, number)| of(port(at, number))).collect(),
        steering: of(json!({
            "at_ns": 1, "policy": {"policy": "vse", "threshold_percent": 80, "priority_threshold_percent": 60, "cores": null, "reserved": [], "moves": true},
            "interfaces": [{"name": "eth0", "unmatched": "place", "groups": 64, "rules_max": 64, "fcf": false, "hook": "native", "note": null,
                            "adopted": false, "fault": null, "frames": {}, "frames_by_core": {"0": 5, "1": 6}, "entries": 0, "placed": 2, "moves": 8}],
            "cores": (0..workers).map(core).collect::<Vec<_>>(), "vms": [], "rules": 0,
        })),
        offload: of(json!({
            "on": true, "rungs": [{"name": "tc", "flows": 3, "moving": 0, "slots": 64, "taken": 3, "frames": 11, "bytes": 1100, "limited": 1}],
            "moves": 5, "flaps": 0, "worker_ns_per_frame": 1.0, "worker_ns_per_byte": 0.1, "policies": [],
        })),
    }
}

impl Shown {
    fn page(&self, seen: &mut Seen) -> String {
        self.detailed(Detail::default(), seen)
    }

    fn detailed(&self, detail: Detail, seen: &mut Seen) -> String {
        let snapshot = Snapshot {
            node: &self.node,
            workers: &self.workers,
            switches: &self.switches,
            ports: &self.ports,
            steering: Some(&self.steering),
            offload: Some(&self.offload),
            revision: 42,
        };
        page(&snapshot, detail, seen)
    }
}

/// Reads a page back, slowly, and holds it to the format: series and their values.
fn read(page: &str) -> BTreeMap<String, f64> {
    let (mut series, mut families, mut family) = (BTreeMap::new(), BTreeSet::new(), String::new());
    let (mut lines, mut is_histogram) = (page.lines().peekable(), false);
    while let Some(line) = lines.next() {
        if let Some(head) = line.strip_prefix("# HELP ") {
            let (name, help) = head.split_once(' ').unwrap();
            assert!(help.ends_with('.') && families.insert(name.to_owned()), "{line}");
            let kind = lines.next().unwrap().strip_prefix("# TYPE ").unwrap();
            let kind = kind.strip_prefix(name).unwrap().trim();
            is_histogram = kind == "histogram";
            assert_eq!(kind == "counter", name.ends_with("_total"), "{name} is a {kind}");
            family = name.to_owned();
            assert!(!lines.peek().unwrap().starts_with('#'), "{name} has no series");
            continue;
        }
        let (key, value) = line.rsplit_once(' ').unwrap();
        let name = key.split('{').next().unwrap();
        let parts = ["_bucket", "_sum", "_count"];
        let part = parts.iter().find_map(|part| name.strip_suffix(part).filter(|_| is_histogram));
        assert_eq!(part.unwrap_or(name), family, "{line}");
        assert_eq!(part.is_some(), is_histogram, "{line}");
        assert!(series.insert(key.to_owned(), value.parse().unwrap()).is_none(), "{key} twice");
    }
    series
}

#[test]
fn three_hundred_switches_of_four_ports_and_eight_workers_have_less_than_ten_thousand_series() {
    let series = read(&shown(300, 4, 8).page(&mut Seen::default()));
    assert!((9000..10_000).contains(&series.len()), "{}", series.len());
}

#[test]
fn what_a_node_shows_has_its_value_under_its_name() {
    let series = read(&shown(2, 2, 2).page(&mut Seen::default()));
    for (key, value) in [
        ("suiro_build_info{version=\"0.2.0\"}", 1.0),
        ("suiro_start_time_seconds", 900.0),
        ("suiro_revision", 42.0),
        ("suiro_port_frames_total{switch=\"sw1\",port=\"p1\",direction=\"tx\"}", 2.0),
        ("suiro_port_drops_total{switch=\"sw1\",port=\"p1\",direction=\"tx\"}", 9.0),
        ("suiro_port_down{switch=\"sw0\",port=\"p0\",cause=\"carrier\"}", 1.0),
        ("suiro_drops_total{switch=\"sw1\",reason=\"no_match\"}", 4.0),
        ("suiro_queue_waiting_frames{switch=\"sw0\",port=\"p1\",queue=\"1\"}", 2.0),
        ("suiro_rung_frames_total{worker=\"1\",rung=\"pattern\"}", 7.0),
        ("suiro_rung_frames_total{worker=\"\",rung=\"tc\"}", 11.0),
        ("suiro_worker_cycles_total{worker=\"0\",core=\"1\",stage=\"pipeline\"}", 20.0),
        ("suiro_steer_frames_total{interface=\"eth0\",core=\"1\"}", 6.0),
        ("suiro_core_load_ratio{core=\"0\",stage=\"total\"}", 0.125),
        ("suiro_sojourn_seconds_bucket{class=\"received\",le=\"0.000001024\"}", 0.0),
        ("suiro_sojourn_seconds_bucket{class=\"received\",le=\"0.000002048\"}", 7.0),
        ("suiro_sojourn_seconds_sum{class=\"received\"}", 0.000_008),
        ("suiro_sojourn_seconds_count{class=\"handed\"}", 0.0),
        ("suiro_queue_wait_seconds_bucket{le=\"+Inf\"}", 7.0),
        ("suiro_offload_flows{rung=\"tc\"}", 3.0),
        ("suiro_faults{kind=\"port\"}", 0.0),
    ] {
        assert_eq!(series.get(key), Some(&value), "{key}");
    }
    assert!(
        !series.keys().any(|key| key.contains("too_big")),
        "a reason without a drop has no line"
    );
}

#[test]
fn a_page_of_one_switch_has_its_times_and_those_of_its_queues() {
    let one = shown(1, 2, 1);
    let detail = Detail { latency: true, ..Detail::default() };
    let series = read(&one.detailed(detail, &mut Seen::all()));
    for key in [
        "suiro_sojourn_seconds_count{switch=\"sw0\",class=\"handed\"}",
        "suiro_queue_wait_seconds_count{switch=\"sw0\",port=\"p1\",queue=\"1\"}",
    ] {
        assert!(series.contains_key(key), "{key}");
    }
    assert!(!series.contains_key("suiro_sojourn_seconds_count{class=\"handed\"}"), "counted twice");
}

#[test]
fn beyond_the_bounds_all_is_in_the_sum_and_a_series_stays() {
    let (few, many) = (shown(200, 1, 1), shown(600, 1, 1));
    let mut seen = Seen::default();
    let (first, then) = (read(&few.page(&mut seen)), read(&many.page(&mut seen)));
    let sum = |series: &BTreeMap<String, f64>, family: &str| -> f64 {
        series.iter().filter(|(key, _)| key.starts_with(family)).map(|(_, value)| value).sum()
    };
    let dropped = many.switches.iter().flat_map(|switch| &switch.drops).map(|one| one.frames);
    assert_eq!(sum(&then, "suiro_drops_total"), dropped.sum::<u64>() as f64);
    assert_eq!(sum(&then, "suiro_queue_frames_total"), 600.0);
    assert!(then.contains_key("suiro_drops_total{switch=\"other\",reason=\"other\"}"));
    assert!(
        then.contains_key(
            "suiro_queue_frames_total{switch=\"other\",port=\"other\",queue=\"other\"}"
        )
    );
    assert!(first.keys().all(|key| then.contains_key(key)), "a series stays");
    assert!(read(&many.page(&mut Seen::all())).len() > then.len());
}
