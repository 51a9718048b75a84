//! Frames one by one: pings between all interfaces, VLANs, and frames that are larger than what a driver has room for.

use crate::Suite;
use crate::rig::{JUMBO, LONG, Link, Machine, NICS, Rig, to_tap};

/// Pings from `a` to `b`, ten a second; every one must be answered. `size` is the length of the payload.
#[track_caller]
pub fn ping(rig: &Rig, from: Machine, to: &str, (count, size): (u32, u16)) {
    let said = rig.run(from, &format!("ping -q -c {count} -i 0.1 -W 5 -s {size} {to}"));
    assert!(said.contains(&format!(" {count} packets received")), "{said}\n{}", rig.lab.log());
}

pub fn cases(suite: &mut Suite) {
    suite.case("talk::every_interface_reaches_every_other_whatever_their_features", |rig| {
        for link in Link::all() {
            ping(rig, Machine::A, &link.address(Machine::B), (2, 56));
            ping(rig, Machine::B, &link.address(Machine::A), (2, 1472));
        }
    });
    suite.case("talk::every_interface_reaches_the_guest_on_a_tap", |rig| {
        for (machine, nic) in Machine::ALL.into_iter().flat_map(|m| (0..NICS).map(move |n| (m, n)))
        {
            ping(rig, machine, &to_tap(machine, nic)[1], (2, 1472));
        }
    });
    suite.case("talk::what_was_agreed_with_the_drivers_is_shown", |rig| {
        let shown = [0, 1, 2].map(|nic| rig.shown(Machine::A, nic)["guest"].clone());
        for guest in &shown {
            assert_eq!(
                (guest["state"].as_str(), &guest["last_error"]),
                (Some("ready"), &serde_json::Value::Null)
            );
        }
        assert_eq!(
            [0, 1, 2].map(|nic: usize| shown[nic]["ring_kind"].as_str().unwrap()),
            ["split", "packed", "split"]
        );
        let has = |nic: usize, name: &str| {
            shown[nic]["features"].as_array().unwrap().iter().any(|feature| feature == name)
        };
        for name in [
            "VERSION_1",
            "CSUM",
            "GUEST_CSUM",
            "HOST_TSO4",
            "GUEST_TSO6",
            "MRG_RXBUF",
            "EVENT_IDX",
            "INDIRECT_DESC",
        ] {
            assert!(has(0, name) && has(1, name), "{name}: {shown:?}");
        }
        assert!(
            has(0, "MTU") && has(1, "MQ") && !has(2, "CSUM") && !has(2, "MRG_RXBUF"),
            "{shown:?}"
        );
        for (nic, entries) in [256, LONG, LONG].into_iter().enumerate() {
            let rings = shown[nic]["rings"].as_array().unwrap();
            assert!(
                !rings.is_empty() && rings.iter().all(|ring| ring["size"] == entries),
                "{nic}: {shown:?}"
            );
        }
        let running =
            shown[1]["rings"].as_array().unwrap().iter().filter(|ring| ring["state"] == "running");
        assert_eq!(running.count(), 4, "{shown:?}");
    });
    suite.case("talk::frames_of_9000_bytes_pass_where_both_ends_have_room", |rig| {
        for link in [Link(0, 0), Link(0, 1), Link(1, 0), Link(1, 1)] {
            rig.set_mtu(link, JUMBO);
            ping(rig, Machine::A, &link.address(Machine::B), (3, JUMBO - 28));
            rig.set_mtu(link, 1500);
        }
    });
    suite.case("talk::a_frame_larger_than_the_drivers_buffers_is_dropped_under_a_reason_and_the_next_one_passes", |rig| {
        let link = Link(0, 2);
        let drops = |rig: &Rig| rig.shown(Machine::B, 2)["counters"]["tx_drops"].clone();
        let before = drops(rig);
        rig.run(Machine::A, "ip link set eth0 mtu 9000");
        let said = rig.run(Machine::A, &format!("ping -q -c 2 -i 0.1 -W 1 -s 8000 {}; true", link.address(Machine::B)));
        assert!(said.contains(" 0 packets received"), "{said}");
        assert_ne!(drops(rig), before, "{}", drops(rig));
        rig.run(Machine::A, "ip link set eth0 mtu 1500");
        ping(rig, Machine::A, &link.address(Machine::B), (2, 1472));
    });
    suite.case("talk::vlans_pass_and_stay_apart", |rig| {
        for nic in 0..NICS {
            let (here, there) = (format!("10.2.{nic}.1"), format!("10.2.{nic}.2"));
            add_vlan(rig, Machine::A, (nic, 5), &here);
            add_vlan(rig, Machine::B, (nic, 5), &there);
            ping(rig, Machine::A, &there, (3, 1472));
            rig.run(Machine::B, "ip link del v5");
            add_vlan(rig, Machine::B, (nic, 6), &there);
            let said = rig.run(Machine::A, &format!("ping -q -c 2 -i 0.1 -W 1 {there}; true"));
            assert!(said.contains(" 0 packets received"), "{said}");
            rig.run(Machine::B, "ip link del v6");
            rig.run(Machine::A, "ip link del v5");
        }
    });
}

/// An interface `v<id>` of a machine for frames of this VLAN.
pub fn add_vlan(rig: &Rig, machine: Machine, (nic, id): (usize, u16), address: &str) {
    rig.run(
        machine,
        &format!(
            "ip link add link eth{nic} name v{id} type vlan id {id} && ip addr add {address}/24 dev v{id} && ip link set v{id} up"
        ),
    );
}
