//! Slices: from a declared file to a ping over three sites, by what a user types.

use acceptance::{Said, privileged, suiro, until};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

const SLICE: &str = r#"suiro: slice/1
tenant: red
name: demo
switches:
  s1: {site: tokyo, dpid: "0x1", fail_mode: standalone}
  s2: {site: osaka, dpid: "0x2", fail_mode: standalone}
  s3: {site: sendai, dpid: "0x3", fail_mode: standalone}
guests:
  h1: {kind: process, site: tokyo, ports: {eth0: {to: "s1:1", addresses: [10.0.0.1/24]}}}
  h3: {kind: process, site: sendai, ports: {eth0: {to: "s3:1", addresses: [10.0.0.3/24]}}}
links:
  a: {between: ["s1:2", "s2:2"], rate: 100M}
  b: {between: ["s2:3", "s3:3"], rate: 100M}
"#;

/// Another guest, and slower links.
const GUEST: &str = "  h2: {kind: process, site: osaka, command: [sh, -c, 'echo here is h2; exec sleep 600'], ports: {eth0: {to: \"s2:1\", addresses: [10.0.0.2/24]}}}\nlinks:";

/// Three sites of one node each, in namespaces, and what a user types at them.
struct Domain {
    name: String,
    files: tempfile::TempDir,
}

impl Domain {
    fn up(letter: char) -> Self {
        let name = format!("{letter}{:x}", std::process::id());
        let domain = Self { name, files: tempfile::tempdir().unwrap() };
        domain.lab("up");
        domain
    }

    #[track_caller]
    fn lab(&self, verb: &str) -> String {
        let mut words = vec!["lab", "domain", verb, "--name", &self.name];
        if verb == "up" {
            words.extend(["--sites", "3", "--nodes", "1"]);
        }
        let said = self.says(&words);
        assert_eq!(said.code, 0, "{verb}: {}{}", said.out, said.err);
        said.out
    }

    fn says(&self, words: &[&str]) -> Said {
        Said::of(self.command(&[&[suiro()][..], words].concat()).output().unwrap())
    }

    fn command(&self, words: &[&str]) -> Command {
        let socket = format!("/run/suiro-{}/ctl/run/api.sock", self.name);
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).env("SUIRO_CONTROL", socket);
        command
    }

    /// With that as its standard input.
    fn typed(&self, input: &str, words: &[&str]) -> Said {
        self.fed(self.command(&[&[suiro()][..], words].concat()), input)
    }

    /// A line of shell at a terminal of its own, with these keys.
    fn at_terminal(&self, line: &str, keys: &str) -> Said {
        self.fed(self.command(&["script", "-qec", line, "/dev/null"]), keys)
    }

    fn fed(&self, mut command: Command, input: &str) -> Said {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        Said::of(child.wait_with_output().unwrap())
    }

    #[track_caller]
    fn suiro(&self, words: &[&str]) -> String {
        let said = self.says(words);
        assert_eq!(said.code, 0, "suiro {}: {}{}", words.join(" "), said.out, said.err);
        said.out
    }

    fn file(&self, text: &str) -> String {
        let path: PathBuf = self.files.path().join("demo.yaml");
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    fn pings(&self, from: &str, to: &str) -> bool {
        let ping = ["ping", "-c1", "-w2", to];
        self.says(&[&["slice", "exec", "red/demo", from, "--"][..], &ping].concat()).code == 0
    }

    fn kill(&self, who: &str) {
        let status = self.lab("status");
        let line = status.lines().find(|line| line.split_whitespace().next() == Some(who));
        let pid = line.and_then(|line| line.split_whitespace().nth(4)?.parse().ok()).unwrap();
        let pid = rustix::process::Pid::from_raw(pid).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        until("it has ended", || rustix::process::test_kill_process(pid).is_err());
    }
}

impl Drop for Domain {
    fn drop(&mut self) {
        let said = self.says(&["lab", "domain", "down", "--name", &self.name]);
        if said.code != 0 && !std::thread::panicking() {
            panic!("down: {}{}", said.out, said.err);
        }
    }
}

#[test]
fn a_slices_file_becomes_guests_that_ping_over_three_sites_and_only_the_difference_moves() {
    if !privileged() {
        return;
    }
    let domain = Domain::up('d');
    let file = domain.file(SLICE);
    let plan = domain.suiro(&["diff", "-f", &file]);
    assert!(plan.contains("+ link a at t1–o1"), "{plan}");
    assert!(domain.suiro(&["slice", "list"]).lines().count() <= 1, "a plan makes nothing");
    domain.suiro(&["apply", "-f", &file, "--wait"]);
    until("h1 reaches h3 over two links", || domain.pings("h1", "10.0.0.3"));

    let again = domain.suiro(&["apply", "-f", &file, "--wait"]);
    assert!(again.contains("nothing to do (generation 1)"), "{again}");

    let file = domain.file(&SLICE.replace("links:", GUEST).replace("100M", "50M"));
    let plan = domain.suiro(&["apply", "-f", &file, "--wait"]);
    assert!(plan.contains("1 come, 2 change (generation 2)"), "{plan}");
    assert!(plan.contains("~ link a at t1–o1: rate 100M → 50M"), "{plan}");
    until("the new guest reaches the others", || domain.pings("h2", "10.0.0.1"));
    until("its command's words are in its log", || {
        domain.suiro(&["slice", "logs", "red/demo", "h2"]) == "here is h2\n"
    });
    // Guests with a command and without one, by pipes and at a terminal.
    let typed = "read word; echo $word of $(id -un); echo wrong >&2; exit 7";
    for guest in ["h1", "h2"] {
        let said =
            domain.typed("input\n", &["slice", "exec", "red/demo", guest, "--", "sh", "-c", typed]);
        assert_eq!((said.code, &*said.out, &*said.err), (7, "input of nobody\n", "wrong\n"));
        let console = format!("stty rows 33 cols 101; {} slice console red/demo {guest}", suiro());
        let keys = "stty size; tty -s && echo a t''ty; exit 5\n";
        let said = domain.at_terminal(&console, keys);
        assert_eq!(said.code, 5, "{}", said.out);
        assert!(said.out.contains("33 101\r\n") && said.out.contains("a tty\r\n"), "{}", said.out);
    }
    let left = domain.at_terminal(
        &format!("{} slice console red/demo h1 -- sleep 1000; stty | grep -c -e -icanon", suiro()),
        "\u{1d}",
    );
    assert!(left.out.ends_with("0\r\n"), "the terminal is as it was: {}", left.out);
    let said = domain.says(&["slice", "console", "red/demo", "h1"]);
    assert_eq!(said.code, 2, "{}", said.err);
    assert!(domain.suiro(&["domain", "audit"]).contains("guests/h2/exec sh -c read word"));
    let said = domain.says(&["slice", "logs", "red/demo", "h9"]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("guest h9 of slice red/demo"), "{}", said.err);
    assert!(said.err.contains("it has: h1, h2, h3"), "{}", said.err);

    let file = domain.file(&SLICE.replace("site: osaka, dpid", "site: osaca, dpid"));
    let said = domain.says(&["apply", "-f", &file]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("demo.yaml:6: site \"osaca\""), "{}", said.err);
    assert!(said.err.contains("did you mean osaka?"), "{}", said.err);

    domain.suiro(&["slice", "rollback", "red/demo"]);
    until("h2 has gone", || !domain.suiro(&["slice", "show", "red/demo"]).contains("h2"));
    domain.suiro(&["slice", "del", "red/demo", "--wait"]);
    assert!(!domain.suiro(&["slice", "list"]).contains("red/demo"));
}

#[test]
fn a_switch_of_a_slice_shows_its_rules_and_a_packets_way_over_all_nodes_or_what_loses_it() {
    if !privileged() {
        return;
    }
    let domain = Domain::up('w');
    let file = domain.file(SLICE);
    domain.suiro(&["apply", "-f", &file, "--wait"]);
    let shown = domain.suiro(&["slice", "switch", "red/demo", "s1"]);
    for line in ["switch s1", "0000000000000001", " p1 ", " p2 "] {
        assert!(shown.contains(line), "{line}:\n{shown}");
    }
    assert_eq!(domain.suiro(&["slice", "flows", "red/demo", "s1"]), "");

    let packet = "in_port=1,icmp,nw_src=10.0.0.1,nw_dst=10.0.0.3,dl_src=02:00:00:00:00:01,dl_dst=ff:ff:ff:ff:ff:ff";
    let way = domain.suiro(&["slice", "why", "red/demo", "s1", packet]);
    for told in [
        "AT s1:1, node t1",
        "s1 p2 tx    by link a",
        "GOES ON from s1:2 by link a to s2:2, node o1",
        "AT s2:2 by link a, node o1",
        "GOES ON from s2:3 by link b to s3:3, node s1",
        "GOES ON from s3:1 by port eth0 of guest h3 to h3:eth0, node s1",
        "ARRIVES",
    ] {
        assert!(way.contains(told), "{told}:\n{way}");
    }
    for hidden in ["tun_id", "vxlan", "192.0.2.", "red.demo", "K "] {
        assert!(!way.contains(hidden), "{hidden}:\n{way}");
    }

    // A rule of the tenant's controller, as its switch has it at the far end.
    let socket = format!("/run/suiro-{}/s1/run/api.sock", domain.name);
    let mut node =
        domain.command(&[suiro(), "flow", "add", "red.demo.s3", "priority=7,icmp,actions=drop"]);
    let said = Said::of(node.env("SUIRO_API", &socket).output().unwrap());
    assert_eq!(said.code, 0, "{}", said.err);
    let flows = domain.suiro(&["slice", "flows", "red/demo", "s3", "icmp"]);
    assert!(flows.contains("priority=7,icmp actions=drop"), "{flows}");
    let said = domain.says(&["slice", "why", "red/demo", "s1", packet]);
    assert_eq!(said.code, 4, "{}{}", said.out, said.err);
    assert!(said.out.contains("DROPPED by_rule at s3 table 0"), "{}", said.out);

    let said = domain.says(&["slice", "flows", "red/demo", "s1", "tabel=1"]);
    assert!(said.code == 1 && said.err.contains("switch s1 of slice red/demo"), "{}", said.err);
    let said = domain.says(&["slice", "switch", "red/demo", "s9"]);
    assert!(said.code == 1 && said.err.contains("it has: s1, s2, s3"), "{}", said.err);
}

#[test]
fn a_slice_begins_and_ends_at_its_times_over_a_restart_and_a_clash_says_when_it_would_fit() {
    if !privileged() {
        return;
    }
    let domain = Domain::up('t');
    let now = || std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs() as i64;
    let (from, until) = (now() + 3, now() + 12);
    let at = |from: i64, until: i64| {
        let times = format!("from: {}\nuntil: {}\nswitches:", moment(from), moment(until));
        SLICE.replace("switches:", &times)
    };
    let file = domain.file(&at(from, until));
    domain.suiro(&["apply", "-f", &file]);
    let listed = domain.suiro(&["slice", "show", "red/demo"]);
    assert!(listed.contains("slice red/demo: scheduled, generation 1"), "{listed}");
    assert!(listed.contains(&format!("from {}", moment(from))), "{listed}");
    let calendar = domain.suiro(&["slice", "calendar"]);
    assert!(calendar.contains(&moment(until)), "{calendar}");
    assert!(domain.suiro(&["slice", "calendar", "--ical"]).contains("SUMMARY:slice red/demo\r\n"));
    let said = domain.says(&["slice", "switch", "red/demo", "s1"]);
    assert!(said.code == 1 && said.err.contains("its time has not come"), "{}", said.err);

    // All memory of a node for an hour, while the first slice has some of it; and when that is over.
    let whole = |from: i64| {
        let socket = format!("/run/suiro-{}/ctl/run/api.sock", domain.name);
        let ask = ["-s", "--unix-socket", &socket, "http://control/v1/sites"];
        let sites = Command::new("curl").args(ask).output().unwrap().stdout;
        let sites: serde_json::Value = serde_json::from_slice(&sites).unwrap();
        let all = sites["sites"]["tokyo"]["memory"]["all"].as_u64().unwrap() >> 20;
        let named = at(from, from + 3600).replace("name: demo", "name: whole");
        named.replace("h1: {kind: process,", &format!("h1: {{kind: process, memory: {all}M,"))
    };
    let other = domain.file(&whole(from));
    let said = domain.says(&["apply", "-f", &other]);
    assert_eq!(said.code, 1, "{}", said.out);
    let fits = format!("from: {}, until: {}", moment(until), moment(until + 3600));
    assert!(said.err.contains(&fits), "{fits}: {}", said.err);
    let other = domain.file(&whole(until));
    domain.suiro(&["apply", "-f", &other]);
    domain.suiro(&["slice", "del", "red/whole", "--wait"]);

    // The controller is away when the time comes, and when it is over.
    domain.kill("ctl");
    domain.lab("up");
    let file = domain.file(&at(from, until));
    domain.suiro(&["apply", "-f", &file, "--wait"]);
    assert!((from..until).contains(&now()));
    assert!(domain.pings("h1", "10.0.0.3"));
    until_gone(&domain, until);
}

fn until_gone(domain: &Domain, until_s: i64) {
    until("its time is over", || !domain.suiro(&["slice", "list"]).contains("red/demo"));
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs() as i64;
    assert!(now >= until_s, "{now} {until_s}");
}

/// A second as files say it.
fn moment(unix_s: i64) -> String {
    let date = ["-u", "-d", &format!("@{unix_s}"), "+%FT%TZ"];
    let said = Said::of(Command::new("date").args(date).output().unwrap());
    said.out.trim().to_owned()
}

#[test]
fn guests_go_on_talking_while_controller_and_nodes_are_killed_and_come_back() {
    if !privileged() {
        return;
    }
    let domain = Domain::up('k');
    let file = domain.file(SLICE);
    domain.suiro(&["apply", "-f", &file, "--wait"]);
    until("h1 reaches h3", || domain.pings("h1", "10.0.0.3"));
    let shown = domain.suiro(&["slice", "show", "red/demo"]);
    let namespace = shown.split_whitespace().find(|word| word.ends_with("-h1")).unwrap().to_owned();

    domain.kill("ctl");
    let ping = ["netns", "exec", &namespace, "ping", "-c1", "-w2", "10.0.0.3"];
    assert!(Command::new("ip").args(ping).output().unwrap().status.success(), "no controller");

    domain.kill("o1");
    domain.lab("up");
    assert!(domain.suiro(&["slice", "list"]).contains("red/demo"), "the controller knows it still");
    until("h1 reaches h3 again", || domain.pings("h1", "10.0.0.3"));

    domain.lab("down");
    let namespaces = Command::new("ip").args(["netns", "list"]).output().unwrap().stdout;
    let namespaces = String::from_utf8(namespaces).unwrap();
    assert!(!namespaces.contains(&namespace), "{namespaces}");
    assert!(!namespaces.contains(&format!("{}-", domain.name)), "{namespaces}");
}

/// What is planted, with the words by which it must be found.
fn planted(namespace: &str) -> Vec<(Vec<String>, &'static str)> {
    let words = |text: &str| text.split_whitespace().map(String::from).collect::<Vec<_>>();
    let at_node = |text: &str| {
        let mut command = vec![suiro().to_owned(), "--api".into(), "SOCKET".into()];
        command.extend(words(text));
        command
    };
    vec![
        (
            at_node("flow add K in_port=probe,priority=7,actions=drop"),
            "no part declares flow table=0,priority=7,in_port=probe",
        ),
        (at_node("meter add K meter=99,kbps,band=type=drop,rate=1"), "no part declares meter 99"),
        (
            at_node("port add K odd --type tap --interface odd0"),
            "port odd of switch K: no part declares it",
        ),
        (
            words(&format!("ip -n {namespace} addr del 10.0.0.1/24 dev eth0")),
            "interface eth0 lacks 10.0.0.1/24",
        ),
        (
            words(&format!("ip -n {namespace} link add odd1 type veth peer name odd2")),
            "nobody declares its interface odd1",
        ),
    ]
}

#[test]
fn an_audit_finds_each_difference_that_was_planted_and_nothing_where_all_is_as_declared() {
    if !privileged() {
        return;
    }
    let domain = Domain::up('a');
    let file = domain.file(SLICE);
    domain.suiro(&["apply", "-f", &file, "--wait"]);
    until("all is as declared", || domain.says(&["audit", "--deep"]).code == 0);
    assert_eq!(domain.suiro(&["audit", "--deep"]), "");
    let shown = domain.suiro(&["slice", "show", "red/demo"]);
    let namespace = shown.split_whitespace().find(|word| word.ends_with("-h1")).unwrap();
    let socket = format!("/run/suiro-{}/t1/run/api.sock", domain.name);
    for (command, wanted) in planted(namespace) {
        let words: Vec<_> =
            command.iter().map(|word| if word == "SOCKET" { &socket } else { word }).collect();
        let planted = Command::new(words[0]).args(&words[1..]).output().unwrap();
        assert!(
            planted.status.success(),
            "{words:?}: {}",
            String::from_utf8_lossy(&planted.stderr)
        );
        let said = domain.says(&["audit", "--deep"]);
        assert_eq!(said.code, 4, "{words:?}: {}{}", said.out, said.err);
        let line = said.out.lines().find(|line| line.contains(wanted));
        assert!(line.is_some_and(|line| line.starts_with("t1: ")), "{words:?}: {}", said.out);
    }
    let rules = domain.says(&["--api", &socket, "flow", "list", "K"]).out;
    let rule = rules
        .lines()
        .find_map(|line| line.split_whitespace().find(|it| it.starts_with("tun_id=0x")));
    let declared = rule.expect("K has a rule of a circuit").trim_end_matches(',').to_owned();
    let gone = domain.says(&["--api", &socket, "flow", "del", "K", &declared]);
    assert_eq!(gone.code, 0, "{declared}: {}", gone.err);
    let said = domain.says(&["audit", "--deep"]);
    assert!(said.out.contains("of switch K of slice red/demo: it is not there"), "{}", said.out);
    assert!(said.out.contains("    remedy: "), "{}", said.out);
    domain.kill("o1");
    until("o1 is away", || domain.says(&["audit"]).out.contains("o1: node: it is away"));
}

/// `suiro lab domain VERB`, which makes a lab of its own; nothing of it may stay.
fn show(letter: char, verb: &[&str]) -> String {
    let name = format!("{letter}{:x}", std::process::id());
    let mut command = Command::new(suiro());
    command.args(["lab", "domain"]).args(verb).args(["--name", &name]);
    let said = Said::of(command.env("SUIRO_PYTHON", acceptance::python()).output().unwrap());
    let left = [format!("/run/suiro-{name}"), format!("/var/lib/suiro-{name}-osken")];
    assert_eq!(said.code, 0, "{verb:?}: {}{}", said.out, said.err);
    assert!(left.iter().all(|path| !PathBuf::from(path).exists()), "something stays of {left:?}");
    said.out
}

#[test]
fn links_that_are_broken_on_purpose_are_never_up_and_are_named_by_way_and_cause() {
    if privileged() {
        let told = show('v', &["prove", "--short"]);
        assert!(told.contains("4 of 4 faults found; no link was up with one"), "{told}");
    }
}

#[test]
fn a_ring_under_the_tenants_own_controller_is_found_by_lldp_and_all_pairs_ping() {
    if privileged() {
        let told = show('r', &["demo"]);
        assert!(
            told.contains("os-ken found 3 switches, 3 links: 1:2-2:2 1:3-3:4 2:3-3:3"),
            "{told}"
        );
        assert!(told.contains("6 of 6 pairs answer"), "{told}");
    }
}

#[test]
fn random_edits_touch_only_what_their_plans_name_and_links_beside_notice_nothing() {
    if privileged() {
        let told = show('e', &["edit", "--edits", "8"]);
        assert!(told.contains("datagrams to and fro over links a and b: 0 lost, 0 late"), "{told}");
        assert!(told.contains("suiro audit --deep: nothing"), "{told}");
    }
}

#[test]
fn a_slice_is_a_real_network_to_its_ends_and_its_controller_and_nothing_of_it_is_seen_outside() {
    if privileged() {
        let told = show('n', &["real", "--short"]);
        assert!(told.contains("all 23 as in a real network"), "{told}");
    }
}

/// Round trips are this machine's matter too, so the table is looked at and not the exit code.
#[test]
fn beside_a_storming_tenant_another_ones_datagrams_are_answered() {
    if privileged() {
        let name = format!("w{:x}", std::process::id());
        let words = ["lab", "domain", "storm", "--seconds", "1", "--name", &name];
        let said = Said::of(Command::new(suiro()).args(words).output().unwrap());
        let rows: Vec<&str> = said.out.lines().filter(|line| line.contains(" % ")).collect();
        assert_eq!(rows.len(), 6, "{}{}", said.out, said.err);
        assert!(!said.out.contains("MISSED: answered"), "{}", said.out);
        assert!(rows[2].contains("blue.storm.deaf: packet_in_full"), "{rows:?}");
        assert!(rows[5].contains("blue.storm.b"), "{rows:?}");
    }
}

#[test]
fn controller_and_nodes_are_killed_in_turn_and_all_is_as_declared_afterwards() {
    if privileged() {
        let told = show('q', &["kill", "--rounds", "2"]);
        assert!(told.contains("1: kill -9 ctl") && told.contains("2: kill -9 t1"), "{told}");
        assert!(told.contains("2 rounds; the longest gap between guests was"), "{told}");
    }
}

#[test]
fn a_slice_reaches_an_outside_network_by_a_door_that_it_alone_has() {
    if !privileged() {
        return;
    }
    let domain = Domain::up('x');
    // The door is in Tokyo, the switch in Sendai.
    let external = "externals:\n  campus: {use: campus, to: \"s3:9\"}\n";
    let with_door = SLICE.replace("10.0.0.3/24", "10.0.0.3/24, 198.51.100.3/24") + external;
    let file = domain.file(&with_door);
    let plan = domain.suiro(&["apply", "-f", &file, "--wait"]);
    assert!(plan.contains("+ external campus at t1–s1"), "{plan}");
    until("h3 reaches the host outside", || domain.pings("h3", "198.51.100.1"));

    for (other, what) in [
        (with_door.replace("name: demo", "name: other"), "which slice red/demo has"),
        (with_door.replace("tenant: red", "tenant: blue"), "is unknown"),
    ] {
        let said = domain.says(&["apply", "-f", &domain.file(&other)]);
        assert_eq!(said.code, 1);
        assert!(said.err.contains(what), "{}", said.err);
    }

    // Datapath ids are its own controllers' alone: another slice has switches of the same ones on the same nodes.
    domain.suiro(&[
        "apply",
        "-f",
        &domain.file(&SLICE.replace("name: demo", "name: twin")),
        "--wait",
    ]);
    let twin = ["slice", "exec", "red/twin", "h1", "--", "ping", "-c1", "-w2"];
    until("h1 reaches h3 of its own slice", || {
        domain.says(&[&twin[..], &["10.0.0.3"]].concat()).code == 0
    });
    assert_ne!(domain.says(&[&twin[..], &["198.51.100.1"]].concat()).code, 0, "the door is demo's");

    let outside = format!("{}-outside", domain.name);
    let cut = |state: &str| {
        let words = ["-n", &outside, "link", "set", "to0", state];
        assert!(Command::new("ip").args(words).status().unwrap().success());
    };
    cut("down");
    until("the slice says what is wrong", || {
        domain.suiro(&["slice", "why", "red/demo"]).contains("external campus: ")
    });
    cut("up");
    until("it is well again", || domain.pings("h3", "198.51.100.1"));
}

#[test]
fn what_happens_in_a_domain_is_told_once_and_in_order_over_a_restart_of_its_controller() {
    if !privileged() {
        return;
    }
    let domain = Domain::up('t');
    let events = |since: &str| domain.suiro(&["domain", "events", "--since", since]);
    let has = |words: &'static str| until(words, || events("oldest").contains(words));
    has("state node t1: here");
    let file = domain.file(SLICE);
    domain.suiro(&["apply", "-f", &file, "--wait"]);
    has("added slice red/demo: generation 1");
    has("state slice red/demo: ready");
    let number = |line: &str| line.split_whitespace().next().unwrap().parse::<u64>().unwrap();
    let before: Vec<u64> = events("oldest").lines().map(number).collect();
    assert!(before.windows(2).all(|two| two[1] == two[0] + 1), "{before:?}");
    let last = *before.last().unwrap();

    domain.kill("o1");
    until("the slice is not well", || events(&last.to_string()).contains("red/demo: degraded"));
    has("state node o1: away");
    domain.kill("ctl");
    domain.lab("up");
    until("it is well again", || events("oldest").contains("state slice red/demo: ready"));
    let after: Vec<u64> = events("oldest").lines().map(number).collect();
    assert!(after.iter().all(|number| *number > last), "{after:?}");
    let said = domain.says(&["domain", "events", "--since", &last.to_string()]);
    assert!(said.out.starts_with("events up to"), "{}", said.out);
}
