//! Flows past the worker as their user sees them: they leave, are listed and counted, follow rules, outlive kill -9, and come back.

use acceptance::{Background, Place, privileged, sh, until};
use rustix::process::Signal;
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

/// A kind of port, and the rung that its flows take.
pub type Under = (&'static str, &'static str);
pub const TC: Under = ("af_packet", "tc");
pub const XDP: Under = ("af_xdp", "xdp");

/// A node with two containers behind ports of a kind, each with a rule that sends to the other.
pub fn place(under: Under) -> Place {
    place_as(under, &[])
}

/// The same, of a node with these options.
pub fn place_as(under: Under, options: &[&str]) -> Place {
    let mut place = wired();
    start_as(&mut place, under, options);
    place
}

/// Two containers, and no node yet.
pub fn wired() -> Place {
    // Pins must outlive a node that is killed.
    let place = Place::new(&["g1", "g2"]).with_hosts_mounts();
    for (guest, address) in [("g1", "10.0.0.1/24"), ("g2", "10.0.0.2/24")] {
        let inside = place.guest(guest);
        let host = ["ip", "-n", &place.netns];
        sh(&[
            &host[..],
            &["link", "add", guest, "type", "veth", "peer", "name", "eth0", "netns", &inside],
        ]
        .concat());
        sh(&[&host[..], &["link", "set", guest, "up"]].concat());
        sh(&["ip", "-n", &inside, "link", "set", "eth0", "up"]);
        sh(&["ip", "-n", &inside, "addr", "add", address, "dev", "eth0"]);
    }
    place
}

/// Starts the node between them.
pub fn start_as(place: &mut Place, (kind, _): Under, options: &[&str]) {
    place.start_as(options);
    place.suiro(&["switch", "add", "sw0", "--fail-mode", "secure"]);
    for guest in ["g1", "g2"] {
        place.suiro(&["port", "add", "sw0", guest, "--type", kind]);
    }
    place.suiro(&[
        "flow",
        "add",
        "sw0",
        "in_port=g1,actions=output:g2",
        "in_port=g2,actions=output:g1",
    ]);
}

/// Pings 500 times a second until it is told to end.
pub fn pings(place: &Place) -> Background {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &place.guest("g1"), "ping", "-q", "-i", "0.002", "10.0.0.2"]);
    Background::start(&mut command)
}

/// The flows of ICMP, requests and replies.
pub fn flows(place: &Place) -> Vec<Value> {
    let listed = place.json(&["flow", "list", "sw0", "icmp", "--rungs"]);
    listed.as_array().unwrap().clone()
}

pub fn are_up(place: &Place, (_, rung): Under) -> bool {
    let flows = flows(place);
    flows.len() == 2 && flows.iter().all(|flow| flow["rung"] == rung)
}

/// Packets of the rules that a filter selects.
pub fn packets(place: &Place, filter: &str) -> u64 {
    let listed = place.json(&["flow", "list", "sw0", filter]);
    listed.as_array().unwrap().iter().map(|flow| flow["packets"].as_u64().unwrap()).sum()
}

/// Ends pings; how many were sent and answered.
fn sent_and_answered(pings: Background) -> (u64, u64) {
    let said = pings.end(Signal::INT);
    let summary = said.lines().find(|line| line.contains("packets transmitted")).unwrap();
    let numbers: Vec<u64> = summary.split(' ').filter_map(|word| word.parse().ok()).collect();
    (numbers[0], numbers[1])
}

/// Ends pings; how many were sent, all of them answered.
pub fn end(pings: Background) -> u64 {
    let (sent, answered) = sent_and_answered(pings);
    // The last one may have been on its way.
    assert!(sent - answered <= 1, "{answered} of {sent} answered");
    sent
}

/// Where the node pins maps and programs.
fn root(place: &Place) -> PathBuf {
    let name = wire::checksum::crc32c(place.path("state").as_os_str().as_encoded_bytes());
    PathBuf::from(format!("/sys/fs/bpf/suiro/offload/{name:08x}"))
}

/// `suiro node --purge` takes away what is pinned.
pub fn leaves_nothing(place: &Place) {
    let said = place.node_says(&["--purge"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(!root(place).exists(), "{} is left", root(place).display());
}

#[test]
fn flows_leave_the_worker_and_come_back_and_every_packet_is_counted_once() {
    leave_and_come_back(TC);
}

#[test]
fn flows_leave_the_worker_by_xdp_and_come_back_and_every_packet_is_counted_once() {
    leave_and_come_back(XDP);
}

fn leave_and_come_back(under: Under) {
    if !privileged() {
        return;
    }
    let mut place = place(under);
    assert!(place.reaches("g1", "10.0.0.2"));
    place.suiro(&["offload", "policy", "add", "all", "--match", "icmp", "--when", "first"]);
    let before = packets(&place, "in_port=g1");
    place.suiro(&["offload", "on"]);
    let pings = pings(&place);
    until("both directions leave the worker", || are_up(&place, under));
    let past = flows(&place)[0]["offloaded_packets"].as_u64().unwrap();
    until("the rung counts", || {
        flows(&place)[0]["offloaded_packets"].as_u64().unwrap() > past + 50
    });
    top_shows_the_rung(&place, under);
    let why = place.suiro(&["offload", "why", "sw0", "in_port=g1,icmp,icmp_type=8"]);
    assert!(
        why.contains(&format!("rung      {}", under.1)) && why.contains("because   policy all"),
        "{why}"
    );

    // A rule of its own takes the requests; replies stay where they are.
    place.suiro(&["flow", "add", "sw0", "priority=50000,icmp,in_port=g1,actions=output:g2"]);
    let at_the_change = packets(&place, "in_port=g1,arp") + packets(&place, "in_port=g1");
    until("requests leave again", || are_up(&place, under));
    assert!(packets(&place, "icmp,in_port=g1") > 0 && at_the_change > 0);

    let sent = end(pings);
    place.suiro(&["offload", "off"]);
    let on_worker = flows(&place).iter().all(|flow| flow["rung"] == "worker");
    assert!(on_worker, "{:?}", flows(&place));
    let events = place.suiro(&["events", "--since", "oldest"]);
    let rose = format!("from g1: on rung {}: policy all", under.1);
    for told in [&*rose, "from g2: on the worker: "] {
        assert!(events.contains(told), "{told}: {events}");
    }
    let icmp = packets(&place, "in_port=g1") - before;
    // ARP comes between now and then.
    assert!((sent..sent + 10).contains(&icmp), "{icmp} counted, {sent} sent");
    let port = place.json(&["port", "show", "sw0", "g1"]);
    assert!(port["counters"]["rx_frames"].as_u64().unwrap() >= sent, "{port}");
    place.end(Signal::TERM);
    leaves_nothing(&place);
}

/// `suiro top` says what goes past the workers, and by which rung.
fn top_shows_the_rung(place: &Place, (_, rung): Under) {
    let top = place.json(&["top", "--once"]);
    let rungs = top["rungs"].as_array().unwrap();
    let load = rungs.iter().find(|load| load["rung"] == rung).unwrap();
    assert!(load["frames_per_s"].as_f64().unwrap() > 0.0 && load["flows"] == 2, "{top}");
    assert_eq!(rungs.last().unwrap()["rung"], "worker");
    let page = place.suiro(&["top", "--once"]);
    assert!(page.contains("% past the workers") && page.contains("SHARE %"), "{page}");
}

#[test]
fn offloaded_flows_outlive_kill_9_and_are_taken_up() {
    outlive_kill_9(TC);
}

#[test]
fn offloaded_flows_on_xdp_outlive_kill_9_and_are_taken_up() {
    outlive_kill_9(XDP);
}

fn outlive_kill_9(under: Under) {
    if !privileged() {
        return;
    }
    let mut place = place(under);
    assert!(place.reaches("g1", "10.0.0.2"));
    place.suiro(&["offload", "policy", "add", "all", "--match", "icmp", "--when", "first"]);
    place.suiro(&["offload", "on"]);
    let pings = pings(&place);
    until("both directions leave the worker", || are_up(&place, under));
    place.end(Signal::KILL);
    place.start();
    assert!(are_up(&place, under), "{:?}\n{}", flows(&place), place.log());
    assert_eq!(flows(&place)[0]["why"], "taken up from an earlier node");
    let past = flows(&place)[0]["offloaded_packets"].as_u64().unwrap();
    until("the rung goes on", || flows(&place)[0]["offloaded_packets"].as_u64().unwrap() > past);
    end(pings);
    pins_of_another_layout_make_way(&mut place, under);
    place.end(Signal::TERM);
    leaves_nothing(&place);
}

/// Which layout what is pinned has.
fn layout(place: &Place) -> PathBuf {
    let mut pins = std::fs::read_dir(root(place)).unwrap().map(|pin| pin.unwrap().path());
    let is_layout = |pin: &PathBuf| pin.to_string_lossy().contains("/layout-");
    pins.find(is_layout).unwrap()
}

/// The next version of suiro cannot read what is pinned: it says so, and its workers have the flows, which leave again.
fn pins_of_another_layout_make_way(place: &mut Place, under: Under) {
    let ours = layout(place);
    place.end(Signal::KILL);
    std::fs::remove_dir(&ours).unwrap();
    std::fs::create_dir(root(place).join("layout-of-old")).unwrap();
    place.start();
    let log = place.log();
    assert!(log.contains("in maps of another layout: they are gone"), "{log}");
    assert_eq!(layout(place), ours);
    let pings = pings(place);
    until("they leave again", || are_up(place, under));
    end(pings);
}

#[test]
fn what_a_killed_nodes_worker_should_have_had_ends_at_the_interface() {
    ends_at_the_interface(TC);
}

#[test]
fn what_a_killed_nodes_worker_should_have_had_ends_at_the_interface_by_xdp() {
    ends_at_the_interface(XDP);
}

fn ends_at_the_interface(under: Under) {
    if !privileged() {
        return;
    }
    let mut place = place(under);
    assert!(place.reaches("g1", "10.0.0.2"));
    place.suiro(&["offload", "policy", "add", "all", "--match", "icmp", "--when", "first"]);
    place.suiro(&["offload", "on"]);
    let pings = pings(&place);
    until("both directions leave the worker", || are_up(&place, under));
    place.end(Signal::KILL);
    // Who would answer, if the host had the frames.
    sh(&["ip", "-n", &place.netns, "addr", "add", "10.0.0.9/24", "dev", "g1"]);
    let asks = || {
        let ping = ["netns", "exec", &place.guest("g1"), "ping", "-q", "-c", "1", "10.0.0.9"];
        Command::new("ip").args(ping).args(["-W", "1"]).output().unwrap().status.success()
    };
    assert!(!asks(), "what is no flow's is not the host's");
    end(pings);
    leaves_nothing(&place);
    until("the interface is the host's again", asks);
    assert_eq!(program_on(&place, "g1"), "", "the interface is as it was");
}

/// What `ip` says of an interface's XDP program.
pub fn program_on(place: &Place, interface: &str) -> String {
    let words = ["-n", &place.netns, "-d", "link", "show", "dev", interface];
    let shown = Command::new("ip").args(words).output().unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    shown.lines().filter(|line| line.contains("prog/xdp")).collect()
}

#[test]
fn flows_go_on_over_a_clean_restart_and_a_stop_leaves_nothing_else() {
    restart(TC);
}

#[test]
fn flows_on_xdp_go_on_over_a_clean_restart_and_a_stop_leaves_nothing_else() {
    restart(XDP);
}

fn restart(under: Under) {
    if !privileged() {
        return;
    }
    let mut place = place(under);
    assert!(place.reaches("g1", "10.0.0.2"));
    place.suiro(&["offload", "policy", "add", "all", "--match", "icmp", "--when", "first"]);
    place.suiro(&["offload", "on"]);
    assert!(root(&place).exists());
    place.end(Signal::TERM);
    assert!(!root(&place).exists(), "no flow was on a rung: {}", root(&place).display());

    place.start();
    let pings = pings(&place);
    until("both directions leave the worker", || are_up(&place, under));
    place.end(Signal::TERM);
    assert!(place.log().contains("2 flows go on in the kernel"), "{}", place.log());
    place.start();
    assert!(are_up(&place, under), "{:?}\n{}", flows(&place), place.log());
    end(pings);
    place.suiro(&["offload", "off"]);
    place.end(Signal::TERM);
    assert!(!root(&place).exists(), "all flows are back: {}", root(&place).display());
}

/// What a file says inside a guest.
fn read(place: &Place, guest: &str, path: &str) -> String {
    let words = ["netns", "exec", &place.guest(guest), "cat", path];
    String::from_utf8(Command::new("ip").args(words).output().unwrap().stdout).unwrap()
}

/// Echo requests that a guest's stack received: untagged ones, as it has no VLAN.
fn echoes(place: &Place, guest: &str) -> u64 {
    let shown = read(place, guest, "/proc/net/snmp");
    let mut lines = shown.lines().filter_map(|line| line.strip_prefix("Icmp:"));
    let mut words = || lines.next().unwrap().split_whitespace();
    let at = words().position(|word| word == "InEchos").unwrap();
    words().nth(at).unwrap().parse().unwrap()
}

#[test]
fn frames_with_a_tag_are_in_no_untagged_flow_while_a_killed_node_starts_again() {
    if !privileged() {
        return;
    }
    let mut place = place(XDP);
    assert!(place.reaches("g1", "10.0.0.2"));
    place.suiro(&["offload", "policy", "add", "all", "--match", "icmp", "--when", "first"]);
    place.suiro(&["offload", "on"]);
    let untagged = pings(&place);
    until("both directions leave the worker", || are_up(&place, XDP));
    place.end(Signal::KILL);
    let sent = end(untagged);
    let before = echoes(&place, "g2");
    assert!(before >= sent - 1);

    // The same frames again, each with a tag that its sender leaves beside it if it may.
    let object = tagger(&place);
    let (guest, mac) = (place.guest("g1"), read(&place, "g2", "/sys/class/net/eth0/address"));
    let inside = |words: &[&str]| sh(&[&["ip", "netns", "exec", &guest], words].concat());
    inside(&["ip", "neigh", "replace", "10.0.0.2", "lladdr", mac.trim(), "dev", "eth0"]);
    inside(&["tc", "qdisc", "add", "dev", "eth0", "clsact"]);
    let filter = ["tc", "filter", "add", "dev", "eth0", "egress", "bpf", "da", "obj", &object];
    inside(&[&filter[..], &["sec", "q"]].concat());
    let mut flood = Command::new("ip");
    flood.args(["netns", "exec", &guest, "ping", "-q", "-i", "0.0002", "10.0.0.2"]);
    let tagged = Background::start(&mut flood);
    place.start();
    assert!(place.log().contains("2 flows of an earlier node go on"), "{}", place.log());
    for _ in 0..3 {
        place.end(Signal::KILL);
        place.start();
    }
    let rules = packets(&place, "in_port=g1");
    until("tagged frames go by the worker", || packets(&place, "in_port=g1") > rules + 100);
    assert_eq!(sent_and_answered(tagged).1, 0);
    assert_eq!(echoes(&place, "g2"), before, "tagged ones came untagged");
    place.end(Signal::TERM);
    leaves_nothing(&place);
}

/// A program of tc that gives frames a tag, in the way of a VLAN's interface.
fn tagger(place: &Place) -> String {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../port/tests/lab/push_tag.bpf.c");
    let include = format!("/usr/include/{}-linux-gnu", std::env::consts::ARCH);
    let object = place.path("push_tag.o").display().to_string();
    let options = ["clang", "-O2", "-target", "bpf", "-idirafter", &include, "-c", source];
    sh(&[&options[..], &["-o", &object]].concat());
    object
}

/// Packets that meters dropped past the worker.
fn limited(place: &Place) -> u64 {
    flows(place).iter().map(|flow| flow["limited_packets"].as_u64().unwrap()).sum()
}

/// The number behind a word of a meter's statistics.
fn of_meter(place: &Place, word: &str) -> u64 {
    let listed = place.json(&["meter", "list", "sw0"]);
    let stats = listed[0]["stats"].as_str().unwrap().to_owned();
    let found = stats.split([' ', ',']).find_map(|part| part.strip_prefix(word));
    found.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{word} in {stats}"))
}

#[test]
fn a_meter_holds_past_the_worker_counts_there_and_is_taken_up_after_a_kill() {
    meter_holds(TC);
}

#[test]
fn a_meter_holds_on_xdp_counts_there_and_is_taken_up_after_a_kill() {
    meter_holds(XDP);
}

fn meter_holds(under: Under) {
    if !privileged() {
        return;
    }
    let mut place = place(under);
    assert!(place.reaches("g1", "10.0.0.2"));
    place.suiro(&[
        "meter",
        "add",
        "sw0",
        "meter=1,pktps,burst,band=type=drop,rate=100,burst_size=5",
    ]);
    place.suiro(&[
        "flow",
        "add",
        "sw0",
        "priority=50000,icmp,in_port=g1,actions=meter:1,output:g2",
    ]);
    place.suiro(&["offload", "policy", "add", "all", "--match", "icmp", "--when", "first"]);
    place.suiro(&["offload", "on"]);
    let first = pings(&place);
    until("both directions leave the worker", || are_up(&place, under));
    until("the rung limits", || limited(&place) > 200);
    let (sent, answered) = sent_and_answered(first);
    let sums = (of_meter(&place, "packet_in_count:"), packets(&place, "icmp,in_port=g1"));
    assert_eq!(sums, (sent, sent), "worker and rung count each packet once");
    let dropped = of_meter(&place, "packet_count:");
    assert!(
        (sent - answered - 1..=sent - answered).contains(&dropped),
        "{dropped} of {sent}, {answered} answered"
    );

    let second = pings(&place);
    until("both directions leave the worker", || are_up(&place, under));
    place.end(Signal::KILL);
    place.start();
    assert!(are_up(&place, under), "{:?}\n{}", flows(&place), place.log());
    let before = limited(&place);
    until("the rung goes on limiting", || limited(&place) > before + 50);
    let _ = second.end(Signal::INT);
    place.end(Signal::TERM);
    leaves_nothing(&place);
}

#[test]
fn a_queues_greatest_rate_holds_over_worker_and_rung_and_every_packet_is_counted_once() {
    rate_holds(TC);
}

#[test]
fn a_queues_greatest_rate_holds_over_worker_and_xdp_and_every_packet_is_counted_once() {
    rate_holds(XDP);
}

/// A number of the only queue.
fn of_queue(place: &Place, key: &str) -> u64 {
    place.json(&["queue", "show", "sw0", "g2", "1"])[key].as_u64().unwrap()
}

/// Requests that the rung took.
fn past(place: &Place) -> u64 {
    let from_g1 = |flow: &Value| flow["in_port"] == "g1";
    let packets = |flow: &Value| flow["offloaded_packets"].as_u64().unwrap();
    flows(place).iter().filter(|flow| from_g1(flow)).map(packets).sum()
}

fn rate_holds(under: Under) {
    if !privileged() {
        return;
    }
    let mut place = place(under);
    assert!(place.reaches("g1", "10.0.0.2"));
    let limit = |place: &Place, rate: &str| {
        place.suiro(&["queue", "add", "sw0", "g2", "1", "--max-rate", rate]);
    };
    limit(&place, "20M");
    let through = "priority=50000,icmp,in_port=g1,actions=set_queue:1,output:g2";
    place.suiro(&["flow", "add", "sw0", through]);
    place.suiro(&["offload", "policy", "add", "all", "--match", "icmp", "--when", "first"]);
    place.suiro(&["offload", "on"]);
    let before = echoes(&place, "g2");
    // 4.2 Mbit/s of frames, if nothing keeps them.
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &place.guest("g1"), "ping", "-q", "-i", "0.002"]);
    let pings = Background::start(command.args(["-s", "1000", "10.0.0.2"]));
    until("below the rate they leave the worker", || past(&place) > 100);
    assert!(are_up(&place, under), "{:?}", flows(&place));

    limit(&place, "2M");
    until("one waits", || of_queue(&place, "waiting") > 0);
    let (began, from) = (Instant::now(), of_queue(&place, "tx_bytes"));
    until("a second passes", || began.elapsed() > Duration::from_secs(1));
    let bytes = of_queue(&place, "tx_bytes") - from;
    let rate = bytes as f64 * 8.0 / began.elapsed().as_secs_f64();
    // Ping waits for answers, so each frame goes by whichever side the flow is on just now. A rate that was not used saves up 10 ms.
    assert!((1e6..2.04e6).contains(&rate), "{rate} bit/s, wherever they are");

    limit(&place, "20M");
    let so_far = past(&place);
    until("when nothing waits they leave again", || past(&place) > so_far + 100);
    let (sent, _) = sent_and_answered(pings);
    until("nothing waits", || of_queue(&place, "waiting") == 0);
    let [left, lost] = ["tx_frames", "tx_errors"].map(|key| of_queue(&place, key));
    assert_eq!((left + lost, echoes(&place, "g2") - before), (sent, left), "{lost} lost");
    place.end(Signal::TERM);
    leaves_nothing(&place);
}

#[test]
fn what_no_policy_can_be_is_refused_with_its_remedy() {
    if !privileged() {
        return;
    }
    let mut place = Place::new(&["g1"]);
    place.start();
    let table: &[(&[&str], &str)] = &[
        (&["--when", "rate>=50M", "--until", "rate<45M"], "would flap"),
        (&["--when", "speed>=5"], "no comparison"),
        (&["--when", "rate>=fast"], "no number"),
        (&["--match", "tcp,port=5"], "offload policy bad"),
        (&["--rung", "gpu"], "no rung past the worker"),
    ];
    for (words, why) in table {
        let said = place.says(&[&["offload", "policy", "add", "bad"][..], words].concat());
        assert_eq!(said.code, 1, "{words:?}: {}", said.err);
        assert!(said.err.contains(why) && said.err.contains("remedy"), "{words:?}: {}", said.err);
    }
    assert_eq!(place.json(&["offload", "show"])["policies"], serde_json::json!([]));
}

/// Name, switch and owner of each policy.
fn policies(place: &Place) -> Vec<[String; 3]> {
    let listed = place.json(&["offload", "policy", "list"]);
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let row = |view: &Value| [&view["policy"]["name"], &view["switch"], &view["owner"]].map(text);
    listed.as_array().unwrap().iter().map(row).collect()
}

#[test]
fn policies_of_file_part_and_api_are_one_list_and_each_has_its_owner() {
    if !privileged() {
        return;
    }
    let mut place = Place::new(&["g1"]);
    let web = "[[node.offload_policy]]\nname = 'web'\nmatch = 'tcp,tp_dst=443'\nwhen = 'first'\n";
    place.configure(web);
    place.start();
    let part = |until: &str| {
        let path = place.path("lab.toml");
        let text = format!(
            "[[switch]]\nname = 'lab'\n[[switch.offload_policy]]\nname = 'bulk'\npriority = 200\nwhen = 'rate>=50M'\nuntil = '{until}'\nresidence_ms = 1000\n"
        );
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let wrong = place.says(&["apply", "-f", &part("rate<45M")]);
    assert!(wrong.err.contains("lab.toml:3") && wrong.err.contains("would flap"), "{}", wrong.err);
    place.suiro(&["apply", "-f", &part("rate<5M")]);
    place.suiro(&["offload", "policy", "add", "dns", "--match", "udp,tp_dst=53", "--never"]);
    let all = [["bulk", "lab", "lab"], ["dns", "-", "api"], ["web", "-", "file"]];
    assert_eq!(policies(&place), all.map(|row| row.map(str::to_owned)));
    let differs = place.suiro(&["diff", "-f", &part("rate<4M")]);
    assert!(differs.contains("~ switch lab: offload_policy"), "{differs}");

    for (words, why) in [
        (&["offload", "policy", "add", "web", "--never"][..], "configuration file"),
        (&["offload", "policy", "del", "bulk"], "part lab"),
        (&["offload", "policy", "del", "nobody"], "no policy of that name"),
    ] {
        let said = place.says(words);
        assert!(said.code == 1 && said.err.contains(why), "{words:?}: {}", said.err);
    }

    // All of it comes back, and a file that says it no longer takes it away.
    place.end(Signal::KILL);
    place.start();
    assert_eq!(policies(&place), all.map(|row| row.map(str::to_owned)));
    place.configure("");
    place.signal(Signal::HUP);
    until("the file's policy is gone", || policies(&place).len() == 2);
    place.suiro(&["part", "del", "lab"]);
    assert_eq!(policies(&place), [["dns", "-", "api"].map(str::to_owned)]);
}
