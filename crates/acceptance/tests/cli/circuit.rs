//! Circuits: links to another node, whose ports have no link before probes pass both ways and at full size, nor when they pass no more.

use acceptance::{Place, privileged, sh, until_within};
use std::time::Duration;

/// Two nodes, joined by a pair of interfaces; on each a switch `K` that carries circuits and a switch `U` with a guest.
struct Land {
    places: [Place; 2],
}

const NAMES: [&str; 2] = ["t1", "o1"];
/// What a fault may take until it is found (domain.md D11, row 3: 30 s in life).
const FOUND: Duration = Duration::from_secs(30);

impl Land {
    fn new(ids: [u32; 2]) -> Self {
        let places = [0, 1].map(|_| Place::new(&["g"]).with_hosts_mounts());
        let [t1, o1] = &places;
        sh(&[
            "ip", "-n", &t1.netns, "link", "add", "wan", "mtu", "9000", "type", "veth", "peer",
            "name", "wan", "mtu", "9000", "netns", &o1.netns,
        ]);
        let mut land = Self { places };
        for (at, id) in [0, 1].into_iter().zip(ids) {
            let place = &mut land.places[at];
            let address = format!("192.0.2.{}/24", at + 1);
            sh(&["ip", "-n", &place.netns, "addr", "add", &address, "dev", "wan"]);
            sh(&["ip", "-n", &place.netns, "link", "set", "wan", "up"]);
            sh(&["ip", "-n", &place.netns, "link", "set", "lo", "up"]);
            place.start();
            land.apply(at, id);
            land.places[at].address("g", "g", &format!("10.0.0.{}/24", at + 1));
        }
        land
    }

    /// What a node has; frames and probes take this id.
    fn apply(&self, at: usize, id: u32) {
        let place = &self.places[at];
        let address = |id: u32| {
            let [_, a, b, c] = id.to_be_bytes();
            format!("02:73:75:{a:02x}:{b:02x}:{c:02x}")
        };
        let [near, far] = [NAMES[at], NAMES[1 - at]];
        let (own, probes, netns) = (90210, id | 1, place.guest("g"));
        let text = format!(
            "[[switch]]
name = 'K'
fail_mode = 'secure'
flows = ['in_port=c,actions=set_field:{id}->tun_id,output:way',
         'in_port=way,tun_id={own},actions=output:c',
         'in_port=probe,dl_dst={to},actions=set_field:{probes}->tun_id,output:way',
         'in_port=way,tun_id=90211,actions=set_field:{to}->eth_dst,output:probe',
         'in_port=way,tun_id=90213,actions=set_field:{other}->eth_dst,output:probe']
[[switch.port]]
name = 'probe'
type = 'tap'
interface = 'su-probe'
mtu = 9000
[[switch.port]]
name = 'way'
type = 'vxlan'
remote = '192.0.2.{peer}'
key = 'flow'
[[switch.port]]
name = 'c'
type = 'vlink'
peer = 'U:w'
[[switch]]
name = 'U'
[[switch.port]]
name = 'w'
type = 'vlink'
peer = 'K:c'
[[switch.port]]
name = 'g'
type = 'tap'
netns = '{netns}'
[[circuit]]
link = 'a'
port = 'U:w'
id = {own}
near = '{near}'
far = '{far}'
mtu = 1500
",
            to = address(own),
            other = address(90212),
            peer = 2 - at,
        );
        let file = place.path("land.toml");
        std::fs::write(&file, text).unwrap();
        place.suiro(&["apply", "-f", &file.display().to_string()]);
    }

    /// State and reason at an end.
    fn says(&self, at: usize) -> (String, String) {
        let views = self.places[at].json(&["circuit", "list"]);
        let why = ["there", "back"].map(|way| views[0][way]["why"].as_str().unwrap_or_default());
        (views[0]["state"].as_str().unwrap_or_default().to_owned(), why.join("|"))
    }

    fn is_up(&self) -> bool {
        [0, 1].iter().all(|&at| self.says(at).0 == "up")
    }

    #[track_caller]
    fn comes_up(&self) {
        until_within(Duration::from_secs(30), "it is up", || self.is_up());
    }

    /// Waits until an end is down and says this.
    #[track_caller]
    fn is_told(&self, at: usize, why: &str) {
        until_within(FOUND, why, || {
            let (state, says) = self.says(at);
            state == "down" && says.contains(why)
        });
    }

    fn port_has_link(&self, at: usize) -> bool {
        let port = self.places[at].json(&["port", "show", "U", "w"]);
        port["carrier"] == true
    }

    /// Drops what comes from the other node where this classic BPF program says 2 (`TC_ACT_SHOT`).
    fn drop_at(&self, at: usize, program: &str) {
        self.tc(at, &["qdisc", "add", "dev", "wan", "clsact"]);
        let filter = ["filter", "add", "dev", "wan", "ingress", "bpf", "da", "bytecode", program];
        self.tc(at, &filter);
    }

    fn mend(&self, at: usize) {
        self.tc(at, &["qdisc", "del", "dev", "wan", "clsact"]);
    }

    fn tc(&self, at: usize, words: &[&str]) {
        let netns = &self.places[at].netns;
        sh(&[&["ip", "netns", "exec", netns, "tc"], words].concat());
    }
}

#[test]
fn a_circuit_is_up_when_both_ways_are_proved_and_each_fault_in_life_is_named_by_its_way() {
    if !privileged() {
        return;
    }
    let land = Land::new([90210, 90210]);
    land.comes_up();
    assert!(land.port_has_link(0) && land.places[0].reaches("g", "10.0.0.2"));
    for (program, why) in [
        ("1,6 0 0 2", "|no probe arrives"),
        (
            "4,128 0 0 0,37 0 1 1450,6 0 0 2,6 0 0 4294967295",
            "|frames of 1500 bytes are lost, and short ones arrive",
        ),
    ] {
        land.drop_at(0, program);
        land.is_told(0, why);
        until_within(FOUND, "both ends have no link", || !(0..2).any(|at| land.port_has_link(at)));
        land.mend(0);
        land.comes_up();
    }
    // A tenth, at random.
    land.drop_at(0, "4,32 0 0 4294963256,53 0 1 429496729,6 0 0 4294967295,6 0 0 2");
    let is_lossy = || {
        let (state, why) = land.says(0);
        state == "lossy" && why.contains("% of frames are lost")
    };
    until_within(FOUND, "losses are told", is_lossy);
    assert!(land.port_has_link(0), "a bad cable has a link");
}

#[test]
fn a_circuit_whose_ids_are_exchanged_is_never_up() {
    if !privileged() {
        return;
    }
    // t1 sends what is of link a by the id of another link, as a rule that went wrong has it.
    let land = Land::new([90212, 90210]);
    land.is_told(0, "a tunnel id that is no link's: the tag is wrong|");
    assert!(!land.is_up());
    assert!(!land.places[0].reaches("g", "10.0.0.2"), "a port without a link carries nothing");
    land.apply(0, 90210);
    land.comes_up();
}
