//! Made, shown, refused.

use super::guest::{PATIENCE, frame, talk};
use super::{Guests, Ofctl, privileged};
use testbed::driver::frontend::Shape;
use testbed::driver::ring::Kind;

#[test]
fn a_port_without_its_guest_says_what_it_waits_for_and_has_no_link() {
    if !privileged() {
        return;
    }
    let guests = Guests::called(0);
    let made = guests.add(1, &["--queues", "2", "--mtu", "9000"]);
    assert!(made.contains("made, number 1: vhost-user client at"), "{made}");
    let shown = guests.lab.suiro(&["port", "show", "sw0", "vm1"]);
    for line in [
        "  state       no link\n",
        "  guest       waiting, socket ",
        "  MTU         9000\n",
        "does not exist yet: start the guest",
    ] {
        assert!(shown.contains(line), "{line:?} is missing in:\n{shown}");
    }
    assert_eq!(shown.matches(" idle ").count(), 4, "{shown}");
    let described = Ofctl::management(&guests.lab, "sw0").run("dump-ports-desc", &[]);
    assert!(described.contains("1(vm1): addr:02:"), "{described}");
    assert!(described.contains("LINK_DOWN"), "{described}");
}

#[test]
fn a_guest_brings_the_link_up_and_its_end_takes_it_down() {
    if !privileged() {
        return;
    }
    let guests = Guests::called(1);
    let watcher = Ofctl::management(&guests.lab, "sw0").monitor();
    // What happens before the switch knows of the watcher is not told to it; it is asked after every five seconds.
    super::until("the watcher is connected", || watcher.output().contains("ECHO_REQUEST"));
    let guest = guests.connect(1, Shape { ring: Kind::Packed, ..Shape::default() });
    guests.until(1, "ready");
    let shown = guests.lab.suiro(&["port", "show", "sw0", "vm1"]);
    for line in [
        "  state       up\n",
        "  rings       packed\n",
        "VERSION_1",
        "IN_ORDER",
        "REPLY_ACK",
        "iB at guest address 0x0",
        "running",
    ] {
        assert!(shown.contains(line), "{line:?} is missing in:\n{shown}");
    }
    drop(guest);
    // The socket is still there: the node is back before anyone looks.
    guests.until(1, "connected");
    super::until("controllers saw the link go up and down", || {
        let said = watcher.output();
        said.contains(" LIVE") && said.contains("LINK_DOWN")
    });
}

#[test]
fn frames_of_every_length_pass_between_guests_unchanged() {
    if !privileged() {
        return;
    }
    let guests = Guests::called(2);
    for ring in [Kind::Split, Kind::Packed] {
        let shape = Shape { ring, frame: 9000, buffer: 2048, ..Shape::default() };
        let (mut one, mut other) = (guests.connect(1, shape), guests.connect(2, shape));
        guests.until(1, "ready");
        guests.until(2, "ready");
        for len in [0_usize, 60, 61, 127, 128, 255, 256, 257, 1500, 2048, 4096, 8900] {
            let mut sent = frame(1, "");
            sent.extend((0..len).map(|at| (at * 7 + len) as u8));
            one.send(&sent, PATIENCE).unwrap();
            let got = other
                .receive(PATIENCE)
                .unwrap()
                .unwrap_or_else(|| panic!("{len} bytes came in time"));
            assert!(got.bytes == sent, "{len} bytes by {ring:?}");
        }
    }
}

#[test]
fn a_rule_that_looks_at_nothing_counts_every_frame_and_loses_only_what_is_too_long() {
    if !privileged() {
        return;
    }
    let mut guests = Guests::called(0);
    for index in 1..=2 {
        guests.listen(index);
        guests.add(index, &["--mtu", "1500"]);
    }
    let ofctl = Ofctl::management(&guests.lab, "sw0");
    ofctl.run("del-flows", &[]);
    ofctl.run("add-flow", &["in_port=1,actions=output:2"]);
    for ring in [Kind::Split, Kind::Packed] {
        let shape = Shape { ring, frame: 9000, buffer: 2048, ..Shape::default() };
        let (mut one, mut other) = (guests.connect(1, shape), guests.connect(2, shape));
        guests.until(1, "ready");
        guests.until(2, "ready");
        let before = [1, 2].map(|index| counters(&guests, index));
        for (number, len) in [60_usize, 1514, 1515, 60, 3000, 256].into_iter().enumerate() {
            let mut sent = frame(1, &format!("frame {number}"));
            sent.resize(len, number as u8);
            one.send(&sent, PATIENCE).unwrap();
            if len <= 1514 {
                let got = other.receive(PATIENCE).unwrap().expect("the frame comes in time");
                assert!(got.bytes == sent, "frame {number} by {ring:?}");
            }
        }
        let after = [1, 2].map(|index| counters(&guests, index));
        let grown = |index: usize, what: &str| {
            after[index][what].as_u64().unwrap() - before[index][what].as_u64().unwrap()
        };
        assert_eq!((grown(0, "rx_frames"), grown(0, "rx_bytes")), (6, 6405));
        assert_eq!((grown(1, "tx_frames"), grown(1, "tx_bytes")), (4, 1890));
    }
    let flows = ofctl.run("dump-flows", &[]);
    assert!(flows.contains("n_packets=12, n_bytes=12810"), "{flows}");
    let lost = counters(&guests, 2)["tx_drops"].clone();
    assert_eq!(lost, serde_json::json!([{ "reason": "too_big", "frames": 4 }]));
}

#[test]
fn rules_on_addresses_part_frames_and_count_them_whatever_is_alike() {
    if !privileged() {
        return;
    }
    let guests = Guests::called(3);
    let ofctl = guests.part_by_address();
    for ring in [Kind::Split, Kind::Packed] {
        let shape = Shape { ring, ..Shape::default() };
        let mut source = guests.connect(1, shape);
        let mut exits = [guests.connect(2, shape), guests.connect(3, shape)];
        (1..=3).for_each(|index| guests.until(index, "ready"));
        let mut expected = [Vec::new(), Vec::new()];
        for number in 0..300_usize {
            // Long runs of one kind, both in turn, and frames that find nothing.
            let net = if number < 200 { number / 40 % 2 } else { number % 3 };
            let mut sent = frame(1, "");
            sent.resize([42, 60, 64, 300, 1514][number % 5], number as u8);
            sent[12..20].copy_from_slice(&[8, 0, 0x45, 0, 0, 28, 0, number as u8]);
            sent[17] = (sent.len() - 14) as u8;
            sent[16] = ((sent.len() - 14) >> 8) as u8;
            sent[30..34].copy_from_slice(&[10 + net as u8, 1, 2, number as u8]);
            source.send(&sent, PATIENCE).unwrap();
            if let Some(expected) = expected.get_mut(net) {
                expected.push(sent);
            }
        }
        for (exit, expected) in exits.iter_mut().zip(expected) {
            for sent in expected {
                let got = exit.receive(PATIENCE).unwrap().expect("the frame comes in time");
                assert!(got.bytes == sent, "by {ring:?}");
            }
        }
    }
    let flows = ofctl.run("dump-flows", &[]);
    let counts = ["n_packets=306", "n_packets=226"];
    println!("{flows}");
    assert!(counts.iter().all(|count| flows.contains(count)), "{flows}");
}

/// What was counted at a port.
fn counters(guests: &Guests, index: usize) -> serde_json::Value {
    guests.lab.json(&["port", "show", "sw0", &format!("vm{index}")])["counters"].clone()
}

#[test]
fn a_port_is_removed_under_its_guest_and_made_again() {
    if !privileged() {
        return;
    }
    let guests = Guests::called(2);
    let [mut one, other] = guests.pair();
    guests.lab.suiro(&["port", "del", "sw0", "vm2"]);
    one.send(&frame(1, "to nobody"), PATIENCE).unwrap();
    drop(other);
    guests.add(2, &[]);
    let mut pair = [one, guests.connect(2, Shape::default())];
    guests.until(2, "ready");
    talk(&mut pair, "made again");
}

#[test]
fn mistakes_are_refused_with_a_remedy() {
    if !privileged() {
        return;
    }
    let guests = Guests::called(1);
    let taken = guests.path(1).display().to_string();
    let cases: [(&[&str], &str, &str); 8] = [
        (&["vm2", "--type", "vhost-user"], "needs the socket", "add socket = "),
        (
            &["vm2", "--type", "vhost-user", "--socket", &taken],
            "is already taken by port vm1",
            "choose another path",
        ),
        (
            &["vm2", "--type", "vhost-user", "--socket", "/x", "--queues", "129"],
            "129 is outside 1 to 128",
            "choose a number from 1 to 128",
        ),
        (
            &["vm2", "--type", "vhost-user", "--socket", "/x", "--interface", "eth0"],
            "`interface` means nothing",
            "remove it",
        ),
        (
            &["vm2", "--type", "vhost-user", "--socket", "/x", "--mode", "0600"],
            "`mode` means nothing without `server`",
            "set `server`, too",
        ),
        (
            &[
                "vm2",
                "--type",
                "vhost-user",
                "--socket",
                "/x",
                "--server",
                "--owner",
                "nobody-here",
            ],
            "there is no user nobody-here",
            "getent passwd",
        ),
        (
            &["vm2", "--type", "tap", "--socket", "/x"],
            "`socket` means nothing on a port of type tap",
            "vhost-user",
        ),
        (
            &["vm2", "--type", "tap", "--server"],
            "`server` means nothing on a port of type tap",
            "vhost-user",
        ),
    ];
    for (words, cause, remedy) in cases {
        let said = guests.lab.says(&[&["port", "add", "sw0"], words].concat());
        assert_eq!(said.code, 1, "{words:?}");
        assert!(said.err.contains(cause) && said.err.contains(remedy), "{words:?}: {}", said.err);
    }
    let said = guests.lab.says(&[
        "port",
        "add",
        "sw0",
        "vm2",
        "--type",
        "vhost-user",
        "--socket",
        "vm2.sock",
    ]);
    assert_eq!(said.code, 2);
    assert!(said.err.contains("an absolute path of at most 107 bytes"), "{}", said.err);
}
