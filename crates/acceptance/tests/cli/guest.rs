//! Guests: programs that a part declares in networks of their own, which outlive the node and leave nothing.

use acceptance::{Place, privileged, until};
use rustix::process::Signal;
use std::path::Path;
use std::process::Command;

/// Two guests on one switch, the first with limits; their namespaces.
fn pair(place: &Place, command: &str) -> (String, [String; 2]) {
    let netns = ["one", "two"].map(|name| place.guest(name));
    let mut text = "[[switch]]\nname = 'sw0'\n".to_owned();
    for (number, netns) in (1..).zip(&netns) {
        text += &format!(
            "[[switch.port]]\nname = 'p{number}'\ntype = 'tap'\ninterface = 'eth0'\nnetns = '{netns}'\n"
        );
    }
    for (number, netns) in (1..).zip(&netns) {
        text += &format!(
            "[[guest]]\nname = 'h{number}'\nnetns = '{netns}'\ncommand = {command}\ncpu_milli = 300\nmemory = 67108864\npids = 40\nfiles = {{ 'a.txt' = 'a file' }}\nhosts = {{ other = ['10.0.0.{}'] }}\n[[guest.interface]]\nname = 'eth0'\naddresses = ['10.0.0.{number}/24', '2001:db8::{number}/64']\n",
            3 - number
        );
    }
    (text, netns)
}

fn apply(place: &Place, text: &str) -> String {
    let file = place.path("lab.toml");
    std::fs::write(&file, text).unwrap();
    place.suiro(&["apply", "-f", &file.display().to_string()])
}

fn condition(place: &Place, guest: &str) -> (String, u64, u64) {
    let view = place.json(&["guest", "show", guest]);
    let number = |key: &str| view[key].as_u64().unwrap_or(0);
    (view["condition"].as_str().unwrap().into(), number("pid"), number("restarts"))
}

fn runs(place: &Place, guest: &str) -> u64 {
    until(&format!("{guest} runs"), || condition(place, guest).0 == "running");
    condition(place, guest).1
}

/// What a program in a guest says.
fn exec(place: &Place, guest: &str, command: &[&str]) -> acceptance::Said {
    place.says(&[&["guest", "exec", guest, "--"], command].concat())
}

fn is_alive(pid: u64) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.starts_with(" Z"))
}

#[test]
fn guests_of_a_part_reach_each_other_and_are_told_nothing_of_the_host() {
    if !privileged() {
        return;
    }
    let mut place = Place::new(&[]).with_hosts_mounts();
    place.start();
    let (text, netns) = pair(&place, "['sh', '-c', 'cat /files/a.txt; exec sleep 1000']");
    let told = apply(&place, &text);
    assert!(told.contains("+ guest h1\n") && told.contains("+ guest h2\n"), "{told}");
    let pids = ["h1", "h2"].map(|guest| runs(&place, guest));
    for to in ["other", "10.0.0.2", "2001:db8::2"] {
        let said = exec(&place, "h1", &["ping", "-q", "-c", "1", "-W", "5", to]);
        assert_eq!(said.code, 0, "{to}: {}{}", said.out, said.err);
    }
    assert_eq!(place.suiro(&["guest", "logs", "h1"]), "a file");
    let shown = place.suiro(&["guest", "show", "h1"]);
    for line in ["of 300 thousandths of a core", "of 65536 KiB", "of 40", "10.0.0.1/24"] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    let said = exec(&place, "h1", &["sh", "-c", "echo to the errors >&2; exit 7"]);
    assert_eq!((said.code, said.err.as_str()), (7, "to the errors\n"));
    // Whatever is tried, nothing of the host's or the node's is touched.
    let home = place.path("");
    let socket = place.socket().display().to_string();
    for attempt in [
        "cat /etc/shadow".into(),
        "touch /usr/it".into(),
        "touch /files/it".into(),
        "touch /etc/it".into(),
        "mount -t tmpfs none /mnt".into(),
        "mknod /tmp/sda b 8 0".into(),
        "chroot /tmp true".into(),
        "hostname it".into(),
        "dmesg".into(),
        "unshare --mount true".into(),
        "nsenter --target 1 --net true".into(),
        "su root -c true".into(),
        "echo 1 > /proc/sys/kernel/panic".into(),
        "echo 0 > /sys/fs/cgroup/cpu/cgroup.procs".into(),
        format!("ls {}", home.display()),
        format!("ls {socket}"),
        "ls /run/netns/".into(),
        "ls /root/".into(),
        "ls /home/".into(),
    ] {
        let said = exec(&place, "h1", &["sh", "-c", &attempt]);
        assert_ne!(said.code, 0, "{attempt}: {}", said.out);
    }
    let groups = std::fs::read_to_string(format!("/proc/{}/cgroup", pids[0])).unwrap();
    let group = groups.lines().find_map(|line| Some(line.split_once("/suiro/")?.1)).unwrap();
    let group = format!("*/suiro/{group}");
    let told = apply(&place, "");
    assert!(told.contains("- guest h1; its processes are stopped\n"), "{told}");
    for (pid, netns) in pids.into_iter().zip(&netns) {
        assert!(!is_alive(pid) && !Path::new("/run/netns").join(netns).exists());
    }
    let left = Command::new("find").args(["/sys/fs/cgroup", "-path", &group]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&left.stdout), "");
    for directory in ["run/guests", "state/guests"] {
        assert_eq!(std::fs::read_dir(place.path(directory)).unwrap().count(), 0, "{directory}");
    }
}

#[test]
fn guests_outlive_the_node_and_are_adopted_or_removed() {
    if !privileged() {
        return;
    }
    let mut place = Place::new(&[]).with_hosts_mounts();
    place.start();
    let (text, _) = pair(&place, "['sleep', '1000']");
    apply(&place, &text);
    let before = ["h1", "h2"].map(|guest| runs(&place, guest));
    place.end(Signal::KILL);
    place.start();
    assert_eq!(["h1", "h2"].map(|guest| runs(&place, guest)), before);
    until("they reach each other again", || {
        exec(&place, "h1", &["ping", "-q", "-c", "1", "-W", "1", "other"]).code == 0
    });
    // Limits change while it runs; another command is another process.
    let slower = text.replacen("cpu_milli = 300", "cpu_milli = 100", 1);
    assert!(apply(&place, &slower).contains("~ guest h1: cpu_milli 300 → 100"));
    assert_eq!(runs(&place, "h1"), before[0]);
    let other = slower.replacen("'1000'", "'2000'", 1);
    assert!(apply(&place, &other).contains("-/+ guest h1: command"));
    assert_ne!(runs(&place, "h1"), before[0]);
    assert!(!is_alive(before[0]));
    // Killed, it comes again; and what the next node does not want, goes.
    let pid = runs(&place, "h1");
    let holder = rustix::process::Pid::from_raw(pid as i32).unwrap();
    rustix::process::kill_process(holder, Signal::KILL).unwrap();
    until("it was started again", || condition(&place, "h1").2 == 1);
    assert_ne!(runs(&place, "h1"), pid);
    let pid = runs(&place, "h2");
    place.end(Signal::KILL);
    std::fs::remove_dir_all(place.path("state")).unwrap();
    place.start();
    assert_eq!(place.json(&["guest", "list"]), serde_json::json!([]));
    assert!(!is_alive(pid));
}

#[test]
fn a_switch_calls_a_controller_that_is_a_guest() {
    if !privileged() {
        return;
    }
    let mut place = Place::new(&[]).with_hosts_mounts();
    place.start();
    let netns = place.guest("ctl");
    let program = "import socket\ns = socket.socket()\ns.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\ns.bind(('127.0.0.1', 6653))\ns.listen()\nwhile True:\n    c, _ = s.accept()\n    print('hello', c.recv(8)[:2].hex(), flush=True)\n";
    let text = format!(
        "[[switch]]\nname = 'sw0'\ncontrollers = ['tcp:127.0.0.1:6653']\nsession_netns = '{netns}'\n[[guest]]\nname = 'ctl'\nnetns = '{netns}'\ncommand = ['python3', '-u', '/files/ctl.py']\n[guest.files]\n'ctl.py' = '''{program}'''\n"
    );
    apply(&place, &text);
    runs(&place, "ctl");
    // OpenFlow 1.3's hello.
    until("the switch said hello", || {
        place.suiro(&["guest", "logs", "ctl"]).contains("hello 0400")
    });
    let shown = place.suiro(&["switch", "show", "sw0"]);
    assert!(shown.contains(&format!("sessions in   {netns}")), "{shown}");
    apply(&place, "");
}

#[test]
fn parts_share_a_switch_that_one_declares() {
    if !privileged() {
        return;
    }
    let mut place = Place::new(&[]).with_hosts_mounts();
    place.start();
    let file = |name: &str, text: &str| {
        let path = place.path(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let land = file(
        "land.toml",
        "[[switch]]\nname = 'K'\nfail_mode = 'secure'\n[[switch.port]]\nname = 'up'\ntype = 'tap'\ninterface = 'k-up'\n",
    );
    let red = file(
        "red.toml",
        "[[switch]]\nname = 'K'\ndeclared_by = 'land'\nflows = ['in_port=red,actions=output:up', 'in_port=up,tun_id=7,actions=output:red']\n[[switch.port]]\nname = 'red'\ntype = 'tap'\ninterface = 'k-red'\n",
    );
    let said = place.says(&["apply", "-f", &red]);
    assert!(
        said.code == 1 && said.err.contains("part land does not declare it yet"),
        "{}",
        said.err
    );
    place.suiro(&["apply", "-f", &land]);
    let told = place.suiro(&["apply", "-f", &red]);
    assert!(told.contains("+ port red of switch K\n") && !told.contains("switch K:  "), "{told}");
    let flows = |place: &Place| place.suiro(&["flow", "list", "K"]).matches("output:").count();
    assert_eq!(flows(&place), 2);
    assert!(place.suiro(&["apply", "-f", &land]).contains("nothing to do"));
    assert!(place.suiro(&["apply", "-f", &red]).contains("nothing to do"));
    place.end(Signal::KILL);
    place.start();
    assert_eq!((flows(&place), place.suiro(&["port", "list", "K"]).contains("red")), (2, true));
    place.suiro(&["part", "del", "red"]);
    assert_eq!((flows(&place), place.suiro(&["port", "list", "K"]).contains("red")), (0, false));
    assert!(place.suiro(&["port", "list", "K"]).contains("up"));
}

/// A node as another user, with what guests need and no more, and a guest of it: prints who the guest is.
const NOT_ROOT: &str = r#"
set -e
mkdir -p /run/netns && mount -t tmpfs none /run/netns && mount -t tmpfs none /tmp
cd /tmp && mkdir run state && chown 65533 run state
caps=+net_admin,+net_raw,+sys_admin,+sys_ptrace,+dac_override,+setuid,+setgid,+setpcap,+kill,+sys_chroot,+net_bind_service
printf '[[guest]]\nname = "h1"\nnetns = "not-root-h1"\ncommand = ["sleep", "1000"]\n' >lab.toml
setpriv --reuid 65533 --regid 65533 --clear-groups --inh-caps=$caps --ambient-caps=$caps "$SUIRO" node --run-dir run --state-dir state 2>log & node=$!
export SUIRO_API=/tmp/run/api.sock
timeout 20 sh -c 'until "$SUIRO" status >/dev/null 2>&1; do sleep 0.05; done' || cat log
"$SUIRO" apply -f lab.toml >/dev/null
timeout 20 sh -c 'until "$SUIRO" guest exec h1 -- id -un 2>/dev/null; do sleep 0.05; done' || { "$SUIRO" guest show h1; "$SUIRO" guest logs h1; }
"$SUIRO" part del lab >/dev/null
kill $node && wait $node
"#;

#[test]
fn a_guest_starts_under_a_node_that_is_not_root() {
    if !privileged() {
        return;
    }
    let mut host = Command::new("unshare");
    host.args(["--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]);
    let run = host.args(["sh", "-c", NOT_ROOT]).env("SUIRO", acceptance::suiro()).output().unwrap();
    let said = String::from_utf8_lossy(&run.stdout);
    assert_eq!(said.trim(), "nobody", "{}", String::from_utf8_lossy(&run.stderr));
}
