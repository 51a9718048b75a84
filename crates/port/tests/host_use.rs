//! What the host uses is not taken from it without a question.

mod lab;

use api::{PortKind, PortSpec};
use lab::{Lab, with};
use port::{HostUse, OpenError};
use serde_json::json;

/// What an AF_XDP port says that the host would lose; empty when it opens.
fn lost(spec: &PortSpec) -> String {
    match port::open(spec, 1) {
        Ok(_) => String::new(),
        Err(OpenError::HostUse { uses, .. }) => uses.to_string(),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn an_interface_with_an_address_or_a_route_is_refused_until_it_may_be_taken_over() {
    let Some(lab) = Lab::new("host-use") else { return };
    lab.veth("a");
    lab.ip("s", "link set porta up");
    let spec = lab.spec(PortKind::AfXdp, "a");
    assert_eq!(lost(&spec), "", "a link-local address is none");
    for (add, remove, named) in [
        ("addr add 192.0.2.1/24 dev porta", "addr del 192.0.2.1/24 dev porta", "192.0.2.1/24"),
        (
            "addr add 2001:db8::1/64 dev porta nodad",
            "addr del 2001:db8::1/64 dev porta",
            "2001:db8::1/64",
        ),
        ("route add default dev porta", "route del default dev porta", "default route"),
        (
            "route add 198.51.100.7 dev porta",
            "route del 198.51.100.7 dev porta",
            "route to 198.51.100.7/32",
        ),
        (
            "-6 route add default via fe80::1 dev porta",
            "-6 route del default via fe80::1 dev porta",
            "default route via fe80::1",
        ),
    ] {
        lab.ip("s", add);
        assert_eq!(lost(&spec), named);
        let allowed = with(&spec, json!({"take_over": true}));
        let port = port::open(&allowed, 1).expect("it may");
        let says = |note: &String| note.starts_with("taken over") && note.ends_with(named);
        assert!(port.facts.notes.iter().any(says), "{:?}", port.facts.notes);
        drop(port);
        lab.ip("s", remove);
    }
    assert_eq!(lost(&spec), "", "nothing is left");
}

#[test]
fn addresses_of_what_stands_on_an_interface_are_its_own() {
    let Some(lab) = Lab::new("host-above") else { return };
    lab.veth("a");
    lab.ip("s", "link set porta up");
    lab.ip("s", "link add link porta name above type macvlan mode bridge");
    lab.ip("s", "link set above up");
    lab.ip("s", "addr add 192.0.2.1/24 dev above");
    let uses = HostUse::of(&lab.spec(PortKind::AfXdp, "a")).expect("the kernel tells");
    assert_eq!(uses.to_string(), "192.0.2.1/24 on above");
}
