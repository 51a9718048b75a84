//! Ports as users write them, right and wrong.

use super::*;
use serde_json::json;

fn reading(keys: Value) -> Reading {
    PortSpec::read_partly(serde_json::from_value(keys).unwrap())
}

fn faulty(keys: Value) -> Vec<String> {
    reading(keys).faults.into_iter().map(|fault| fault.key).collect()
}

#[test]
fn all_faults_of_a_port_are_found_at_once() {
    let keys = json!({"type": "vlink", "interface": "eth0", "mtu": 10, "colour": "red"});
    assert_eq!(faulty(keys), ["colour", "interface", "mtu", "name", "peer"]);
    let reading = reading(json!({"type": "tap", "name": "g1", "mtu": 10, "queues": 2}));
    let spec = reading.spec.unwrap();
    assert_eq!((spec.mtu, spec.queues()), (None, Some(2)), "what is right is read");
}

#[test]
fn a_port_without_a_kind_or_of_an_unknown_one_says_which_there_are() {
    for keys in [json!({"name": "p", "peer": "a:b"}), json!({"name": "p", "type": "vhost"})] {
        let faults = reading(keys).faults;
        let [fault] = &faults[..] else { panic!("{faults:?}") };
        assert!(fault.key == "type" && fault.remedy.contains("vhost-user"), "{fault:?}");
    }
}

#[test]
fn a_vhost_user_port_needs_a_socket_and_has_no_interface() {
    let keys = json!({"name": "vm1", "type": "vhost-user", "queues": 129});
    assert_eq!(faulty(keys), ["queues", "socket"]);
    let right =
        json!({"name": "vm1", "type": "vhost-user", "queues": 128, "socket": "/run/vm1.sock"});
    let reading = reading(right);
    assert_eq!((reading.faults, reading.spec.unwrap().interface()), (Vec::new(), None));
    assert_eq!(faulty(json!({"name": "vm1", "type": "tap", "socket": "/run/s"})), ["socket"]);
}

#[test]
fn a_key_without_its_companion_is_refused_and_the_companion_named() {
    let with = |server: Value| {
        reading(json!({
            "name": "vm1", "type": "vhost-user", "socket": "/run/s", "server": server,
            "owner": "libvirt-qemu", "group": "kvm", "mode": "0660",
        }))
    };
    assert_eq!(with(true.into()).faults, []);
    for server in [Value::Null, false.into()] {
        let faults = with(server).faults;
        let [owner, group, mode] = &faults[..] else { panic!("{faults:?}") };
        assert_eq!((&*owner.key, &*group.key, &*mode.key), ("owner", "group", "mode"));
        assert_eq!(mode.cause, "`mode` means nothing without `server`");
        assert!(owner.remedy.starts_with("set `server`, too"), "{}", owner.remedy);
    }
    let plain = json!({"name": "t", "type": "vxlan", "remote": "::1", "key": 1, "seal_core": 1});
    assert_eq!(faulty(plain), ["seal_core"]);
}

#[test]
fn a_tunnel_needs_its_other_end_and_its_key() {
    assert_eq!(faulty(json!({"name": "t", "type": "vxlan", "dscp": "46"})), ["remote", "key"]);
    let keys = json!({"name": "t", "type": "vxlan", "remote": "2001:db8::2", "key": 7});
    assert_eq!(faulty(keys.clone()), [""; 0]);
    assert_eq!(reading(keys).spec.unwrap().interface(), None);
    let tap = json!({"name": "t", "type": "tap", "remote": "2001:db8::2", "key": 7});
    assert_eq!(faulty(tap), ["key", "remote"]);
}

#[test]
fn a_port_needs_only_a_name_and_an_interface_may_give_it() {
    assert_eq!(faulty(json!({"type": "tap"})), ["name"]);
    let named = reading(json!({"type": "tap", "name": "guest1", "mtu": null}));
    assert_eq!(named.faults, []);
    assert_eq!(named.spec.unwrap().interface().as_deref(), Some("guest1"));
    let by_interface = reading(json!({"type": "af_packet", "interface": "eth0"})).spec.unwrap();
    assert_eq!(&*by_interface.name, "eth0");
    assert_eq!(Value::from(by_interface.keys()), json!({"type": "af_packet", "interface": "eth0"}));
    let odd = json!({"type": "af_packet", "interface": "veth@x"});
    assert_eq!(faulty(odd), ["name"]);
    let keys = json!({"type": "af_packet", "interface": "veth@x", "name": "guest1"});
    assert_eq!(faulty(keys), [""; 0]);
}

#[test]
fn a_typing_error_and_a_key_of_another_kind_are_told_apart() {
    let faults = reading(json!({"type": "tap", "name": "g", "netsn": "a", "peer": "a:b"})).faults;
    let remedies: Vec<_> = faults.iter().map(|fault| fault.remedy.as_str()).collect();
    assert_eq!(remedies, ["did you mean `netns`?", "remove it, or make the port one of: vlink"]);
}

#[test]
fn a_port_is_written_as_it_is_read() {
    for keys in [
        json!({"name": "g1", "type": "tap", "interface": "eth0", "number": "LOCAL", "mtu": 1500}),
        json!({"name": "vm", "type": "vhost-user", "socket": "/run/s", "server": false}),
        json!({"name": "t", "type": "vxlan", "remote": "flow", "key": "flow", "dscp": "46", "seal_core": 3, "encrypt": "/k", "outer_checksum": false}),
        json!({"name": "x", "type": "af_xdp", "xdp_mode": "zero-copy", "take_over": true, "rate": "1G"}),
    ] {
        let spec = reading(keys.clone()).spec.unwrap();
        assert_eq!(Value::from(spec.keys()), keys);
    }
}
