//! What Prometheus reads of a node: held to promtool, scraped by a real Prometheus, asked for by the dashboard that ships.

use super::life::two_guests;
use acceptance::{Place, privileged, request, sh, until};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

const DASHBOARD: &str = include_str!("../../../../share/grafana/suiro.json");

/// The page, by the API's socket.
fn page(place: &Place, query: &str) -> String {
    let mut stream = UnixStream::connect(place.socket()).unwrap();
    stream.write_all(request("GET", &format!("/metrics{query}"), "").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, _) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.contains("text/plain; version=0.0.4"), "{answer}");
    answer
}

/// A program that exits with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn needs(program: &str) {
    let found = Command::new(program).arg("--version").output();
    assert!(
        found.is_ok(),
        "{program} is missing: run scripts/setup test (Debian package prometheus)"
    );
}

/// A Prometheus in the node's namespace that scrapes it each second.
fn prometheus(place: &Place) -> Running {
    let file = place.path("prometheus.yml");
    let config = "scrape_configs: [{job_name: suiro, scrape_interval: 1s, static_configs: [{targets: ['127.0.0.1:9091']}]}]\n";
    std::fs::write(&file, config).unwrap();
    let option = |name: &str, path: &Path| format!("--{name}={}", path.display());
    let mut command = Command::new("ip");
    command.args([
        "netns",
        "exec",
        &place.netns,
        "prometheus",
        "--web.listen-address=127.0.0.1:9092",
    ]);
    command
        .arg(option("config.file", &file))
        .arg(option("storage.tsdb.path", &place.path("series")));
    let log = std::fs::File::create(place.path("prometheus.log")).unwrap();
    Running(command.stderr(log).stdout(Stdio::null()).spawn().unwrap())
}

/// What Prometheus answers to a question: the values.
fn asked(place: &Place, expression: &str) -> Vec<f64> {
    let mut command = Command::new("ip");
    command.args([
        "netns",
        "exec",
        &place.netns,
        "curl",
        "-s",
        "-G",
        "http://127.0.0.1:9092/api/v1/query",
    ]);
    let said = command.arg("--data-urlencode").arg(format!("query={expression}")).output().unwrap();
    let Ok(answer) = serde_json::from_slice::<serde_json::Value>(&said.stdout) else {
        return Vec::new();
    };
    assert_ne!(answer["status"], "error", "{expression}: {answer}");
    let value = |one: &serde_json::Value| one["value"][1].as_str().unwrap().parse().unwrap();
    answer["data"]["result"].as_array().unwrap().iter().map(value).collect()
}

/// A node that has something of everything: guests, drops, a queue, a steered interface.
fn busy_node() -> Place {
    let mut place = Place::new(&["g1", "g2", "far"]).with_hosts_mounts();
    place.configure("metrics = \"127.0.0.1:9091\"\n");
    sh(&["ip", "-n", &place.netns, "link", "set", "lo", "up"]);
    let far = place.guest("far");
    sh(&[
        "ip",
        "-n",
        &place.netns,
        "link",
        "add",
        "near",
        "type",
        "veth",
        "peer",
        "name",
        "far",
        "netns",
        &far,
    ]);
    for (netns, interface) in [(place.netns.clone(), "near"), (far, "far")] {
        sh(&["ip", "-n", &netns, "link", "set", interface, "up"]);
    }
    place.start();
    two_guests(&place);
    place.suiro(&["port", "mod", "sw0", "g2", "--rate", "1G"]);
    place.suiro(&["queue", "add", "sw0", "g2", "1", "--min-rate", "1M"]);
    place.suiro(&["flow", "add", "sw0", "priority=9,udp,actions=drop"]);
    place.suiro(&["steer", "attach", "near"]);
    place
}

#[test]
fn prometheus_reads_a_node_and_every_panel_of_the_dashboard_has_data() {
    privileged();
    needs("prometheus");
    let place = busy_node();
    let _prometheus = prometheus(&place);
    let send = "import socket,time\ns=socket.socket(socket.AF_INET,socket.SOCK_DGRAM)\nfor n in range(400):\n  s.sendto(b'x',('10.0.0.2',9)); time.sleep(.02)";
    let mut sender = Command::new("ip");
    sender.args(["netns", "exec", &place.guest("g1"), "python3", "-c", send]);
    let _sender = Running(sender.spawn().unwrap());
    sh(&[
        "ip",
        "netns",
        "exec",
        &place.guest("g1"),
        "ping",
        "-q",
        "-c",
        "3",
        "-i",
        "0.2",
        "10.0.0.2",
    ]);

    until("Prometheus has scraped the node", || asked(&place, "up") == [1.0]);
    let dashboard: serde_json::Value = serde_json::from_str(DASHBOARD).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().unwrap());
    let expressions: Vec<_> = targets
        .map(|target| {
            let text = target["expr"].as_str().unwrap();
            text.replace("$__rate_interval", "20s").replace("$switch", ".*")
        })
        .collect();
    assert!(panels.len() >= 13 && expressions.len() >= panels.len());
    for expression in &expressions {
        until(&format!("{expression} has data"), || !asked(&place, expression).is_empty());
    }
    until("the drop is seen", || {
        asked(&place, "suiro_drops_total{switch=\"sw0\",reason=\"by_rule\"}")
            .iter()
            .any(|&n| n > 0.0)
    });
    assert_eq!(asked(&place, "suiro_switch_flows{switch=\"sw0\"}"), [1.0]);
    let stayed = asked(&place, "suiro_sojourn_seconds_count{class=\"received\"}");
    assert!(stayed[0] > 0.0, "{stayed:?}");
    let shown = place.suiro(&["switch", "show", "sw0"]);
    assert!(shown.contains("frames received stayed: p50 "), "{shown}");
    place.suiro(&["steer", "detach", "near"]);
}

#[test]
fn top_flow_times_the_stages_of_frames_that_match_and_of_no_others() {
    privileged();
    let place = busy_node();
    let (g1, flood) = (place.guest("g1"), ["ping", "-q", "-i", "0.01", "10.0.0.2"]);
    let mut sender = Command::new("ip");
    sender.args(["netns", "exec", &g1]).args(flood).stdout(Stdio::null());
    let _sender = Running(sender.spawn().unwrap());
    let timed = |matching: &str| -> serde_json::Value {
        let said = place.suiro(&["--json", "top", "flow", "sw0", matching, "--once"]);
        serde_json::from_str(&said).unwrap()
    };
    until("frames are timed", || timed("in_port=g1,icmp")["frames"].as_u64() > Some(0));
    let seen = timed("in_port=g1,icmp");
    let stages: Vec<&str> = seen["stages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|stage| stage["stage"].as_str().unwrap())
        .collect();
    assert_eq!(stages, ["receive", "tables", "send", "all"], "{seen}");
    let sum = |stage: usize| seen["stages"][stage]["stayed"]["sum_ns"].as_u64().unwrap();
    assert_eq!(sum(0) + sum(1) + sum(2), sum(3), "{seen}");
    assert_eq!(timed("tcp,tp_dst=443")["frames"], 0, "none of them came");
    let page = place.suiro(&["top", "flow", "sw0", "icmp", "--once"]);
    assert!(page.contains("STAYED P99") && page.contains("\nall "), "{page}");
    place.suiro(&["steer", "detach", "near"]);
}

#[test]
fn the_page_passes_promtool_narrows_to_a_switch_and_names_what_is_not_there() {
    privileged();
    needs("promtool");
    let place = busy_node();
    place.suiro(&["switch", "add", "sw1"]);
    let whole = page(&place, "");
    let (_, body) = whole.split_once("\r\n\r\n").unwrap();
    let mut tool = Command::new("promtool");
    tool.args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut tool = tool.spawn().unwrap();
    tool.stdin.take().unwrap().write_all(body.as_bytes()).unwrap();
    let said = tool.wait_with_output().unwrap();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));

    let narrow = page(&place, "?switch=sw1");
    assert!(narrow.contains("suiro_switch_flows{switch=\"sw1\"}"));
    assert!(!narrow.contains("sw0") && whole.contains("sw0"));
    assert!(narrow.contains("suiro_sojourn_seconds_count{switch=\"sw1\",class=\"received\"} 0"));
    place.suiro(&["steer", "detach", "near"]);
}
