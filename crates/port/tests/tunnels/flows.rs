//! How flows show outside of a tunnel, and one port for many VNIs.

use super::*;

/// A second address of the host `s`.
const NEAR_TOO: &str = "192.0.2.3";

fn ip(address: &str) -> IpAddr {
    address.parse().expect("an address")
}

/// A port whose tunnel is the usual one, changed.
fn changed(lab: &Lab, place: &str, change: Value) -> PortSpec {
    with(&spec(lab, place, 7), change)
}

fn flow(port: u16) -> Vec<u8> {
    let frame = Frame::ethernet([2; 6], [4; 6]).ipv4(Ipv4::default());
    frame.udp(port, 2).payload(&[0; 18]).finish()
}

/// Sends a frame under a VNI.
fn send_by(port: &mut OpenPort, tunnel_id: u32, head: &[u8]) -> Drops {
    send_burst(port, head, &[tunnel_id])
}

/// Sends a frame under each of these VNIs, all in one call.
fn send_burst(port: &mut OpenPort, head: &[u8], tunnel_ids: &[u32]) -> Drops {
    let mut drops = Drops::default();
    let (body, offload) = (Body::default(), Offload::default());
    let frame = |&tunnel_id: &u32| TxFrame { head, body, offload, tunnel_id, tun_dst: 0 };
    let frames: Vec<_> = tunnel_ids.iter().map(frame).collect();
    let sent = port.tx[0].tx(&frames, &mut drops);
    assert_eq!(
        sent.frames + drops.iter().map(|(_, count)| count).sum::<u64>(),
        frames.len() as u64
    );
    drops
}

/// The tunnel ids of the next frames, with the frames' lengths.
fn ids(port: &mut OpenPort, count: usize) -> (Vec<(u32, usize)>, Drops) {
    let (mut ids, mut drops, mut batch) = (Vec::new(), Drops::default(), RxBatch::default());
    let rx = port.rx[0].as_mut();
    while ids.len() < count {
        let patience = Timespec { tv_sec: 5, tv_nsec: 0 };
        let ready =
            poll(&mut [PollFd::from_borrowed_fd(rx.readiness(), PollFlags::IN)], Some(&patience));
        assert_ne!(ready.expect("poll"), 0, "{} of {count} frames came", ids.len());
        batch.clear();
        rx.rx(&mut batch, &mut drops).expect("the sockets work");
        assert!(batch.has_tunnel_ids());
        ids.extend(batch.frames().iter().map(|slot| (slot.tunnel_id, slot.frame_len())));
        rx.release();
    }
    (ids, drops)
}

#[test]
fn flows_spread_over_this_ends_addresses_and_the_other_end_knows_them_all() {
    let Some(lab) = hosts("spread") else { return };
    lab.ip("s", &format!("addr add {NEAR_TOO}/24 dev portb"));
    let near = changed(&lab, "s", json!({"local": format!("{NEAR},{NEAR_TOO}")}));
    let mut near = port::open(&near, 1).expect("a tunnel");
    let plain = inside(&lab, "b", || UdpSocket::bind((FAR, 4789)).expect("a socket"));
    let mut senders = Vec::new();
    for port in (0..64).flat_map(|port| [port, port]) {
        assert!(send(&mut near, &flow(port), Offload::default()).is_empty());
        let (_, from) = datagram(&plain, &mut [0; 2048]);
        senders.push(from);
    }
    assert!(senders.chunks(2).all(|pair| pair[0] == pair[1]), "a flow has one address and port");
    let flows_of = |address| senders.iter().filter(|from| from.ip() == ip(address)).count() / 2;
    let flows = [flows_of(NEAR), flows_of(NEAR_TOO)];
    assert!(flows[0] + flows[1] == 64 && flows.iter().all(|&flows| flows >= 20), "{flows:?}");
    senders.sort_unstable();
    senders.dedup();
    assert!(senders.len() > 20, "{} addresses and ports", senders.len());
    lab.close("b", plain);
    let far = changed(&lab, "b", json!({"remote": format!("{NEAR},{NEAR_TOO}")}));
    let mut far = port::open(&far, 1).expect("a tunnel");
    for port in 0..64 {
        assert!(send(&mut near, &flow(port), Offload::default()).is_empty());
    }
    assert_eq!(received(&mut far, 64).0.len(), 64);
    lab.close("b", far);
    let mut far = end(&lab, "b", 7);
    for port in 0..64 {
        assert!(send(&mut near, &flow(port), Offload::default()).is_empty());
    }
    assert_eq!(received(&mut far, flows[0]).0.len(), flows[0]);
    let notes = far.control.facts().expect("facts").notes;
    let strays = format!("{} datagrams came", flows[1]);
    assert!(notes.iter().any(|note| note.starts_with(&strays)), "{strays}: {notes:?}");
}

#[test]
fn a_port_without_a_vni_tells_each_frames_and_sends_the_one_it_is_told() {
    let Some(lab) = hosts("many") else { return };
    let any = |place| port::open(&changed(&lab, place, json!({"key": "flow"})), 1);
    let (mut near, mut far) = (any("s").expect("a tunnel"), any("b").expect("a tunnel"));
    assert!(near.facts.mode.ends_with("vni of each flow"), "{}", near.facts.mode);
    for (len, id) in [(1, 7), (2, 0), (3, 0xff_ffff), (4, 7)] {
        assert!(send_by(&mut near, id, &udp(len, 0)).is_empty());
    }
    let (frames, drops) = ids(&mut far, 4);
    let told: Vec<_> = frames.iter().map(|&(id, len)| (id, len - udp(0, 0).len())).collect();
    assert_eq!(told, [(7, 1), (0, 2), (0xff_ffff, 3), (7, 4)]);
    assert!(drops.is_empty());
    let burst = [7, 8, 7, 1 << 24, 8, u32::MAX, 7];
    let too_long = send_burst(&mut near, &udp(5, 0), &burst);
    assert_eq!(lost(&too_long), [(DropReason::TunnelId, 2)]);
    let mut told: Vec<u32> = ids(&mut far, 5).0.iter().map(|&(id, _)| id).collect();
    told.sort_unstable();
    assert_eq!(told, [7, 7, 7, 8, 8]);
}

#[test]
fn equal_flows_of_two_vnis_leave_from_two_source_ports() {
    let Some(lab) = hosts("twins") else { return };
    let near = changed(&lab, "s", json!({"key": "flow"}));
    let mut near = port::open(&near, 1).expect("a tunnel");
    let plain = inside(&lab, "b", || UdpSocket::bind((FAR, 4789)).expect("a socket"));
    let mut port = |id| {
        assert!(send_by(&mut near, id, &flow(1)).is_empty());
        datagram(&plain, &mut [0; 2048]).1.port()
    };
    assert_ne!(port(7), port(8));
    assert_eq!(port(7), port(7));
}

#[test]
fn a_port_without_a_vni_gets_what_no_other_port_has_and_only_one_can() {
    let Some(lab) = hosts("rest") else { return };
    let opener = port::Opener::new(1);
    let any = changed(&lab, "b", json!({"key": "flow"}));
    let mut rest = opener.open(&any).expect("a tunnel");
    let mut seven = opener.open(&spec(&lab, "b", 7)).expect("a tunnel of one VNI beside it");
    let twice = opener.open(&any).map(drop).expect_err("the rest is taken");
    assert!(twice.to_string().contains("another port has every other VNI"), "{twice}");
    let socket = inside(&lab, "s", || UdpSocket::bind((NEAR, 0)).expect("a socket"));
    for (vni, len) in [(8, 1), (7, 2), (0, 3)] {
        let datagram = [&Vxlan { vni }.emit()[..], &udp(len, 0)].concat();
        socket.send_to(&datagram, (FAR, 4789)).expect("sent");
    }
    let short = udp(0, 0).len();
    assert_eq!(ids(&mut rest, 2).0, [(8, short + 1), (0, short + 3)]);
    assert_eq!(ids(&mut seven, 1).0, [(7, short + 2)]);
    drop(rest);
    opener.open(&any).expect("the rest is free again");
}

#[test]
fn of_a_run_of_many_vnis_a_port_gets_those_that_are_its_own() {
    let Some(lab) = hosts("mixed") else { return };
    let opener = port::Opener::new(1);
    let mut seven = opener.open(&spec(&lab, "b", 7)).expect("a tunnel");
    let mut rest = opener.open(&changed(&lab, "b", json!({"key": "flow"}))).expect("the rest");
    // What begins a run says whose it is to the kernel.
    send_run(&lab, &[8, 8, 9, 7, 8]);
    let (frames, drops) = ids(&mut rest, 4);
    let vnis: Vec<_> = frames.iter().map(|&(vni, _)| vni).collect();
    assert_eq!((vnis, lost(&drops)), (vec![8, 8, 9, 8], vec![(DropReason::BadSource, 1)]));
    send_run(&lab, &[7, 8, 7]);
    let (frames, drops) = ids(&mut seven, 2);
    assert_eq!((frames[0].0, frames[1].0, lost(&drops)), (7, 7, vec![(DropReason::BadSource, 1)]));
}

/// From `s`, a run of datagrams that the kernel keeps together (`UDP_SEGMENT`), each under a VNI.
fn send_run(lab: &Lab, vnis: &[u32]) {
    let datagram = |&vni: &u32| [&Vxlan { vni }.emit()[..], &udp(50, 0)].concat();
    let run: Vec<u8> = vnis.iter().flat_map(datagram).collect();
    let hex: String = run.iter().map(|byte| format!("{byte:02x}")).collect();
    let script = format!(
        "import socket\ns=socket.socket(socket.AF_INET,socket.SOCK_DGRAM)\ns.setsockopt(17,103,{})\ns.sendto(bytes.fromhex('{hex}'),('{FAR}',4789))",
        run.len() / vnis.len()
    );
    let status = std::process::Command::new("ip")
        .args(["netns", "exec", lab.netns("s"), "python3", "-c", &script])
        .status();
    assert!(status.expect("python3 runs").success());
}

#[test]
fn as_an_identity_the_field_is_shown_outside_and_nothing_but_ecn_comes_inside() {
    let Some(lab) = hosts("identity") else { return };
    for (flow_id, mark, inner) in [("dscp", 3, 0x0a << 2 | 3), ("tos", 3, 0x0a << 2 | 2)] {
        let mut near =
            port::open(&changed(&lab, "s", json!({"flow_id": flow_id})), 1).expect("a tunnel");
        let raw = inside(&lab, "b", || {
            let flags = SocketFlags::CLOEXEC;
            socket_with(AddressFamily::INET, SocketType::RAW, flags, Some(ipproto::UDP))
        });
        let raw = raw.expect("root may see IP headers");
        let mut far =
            port::open(&changed(&lab, "b", json!({"flow_id": flow_id})), 1).expect("a tunnel");
        let frame = udp(18, 0x0a << 2 | 2);
        assert!(send(&mut near, &frame, Offload::default()).is_empty());
        let mut packet = [0; 2048];
        recv(&raw, &mut packet[..], RecvFlags::empty()).expect("a packet");
        assert_eq!(packet[1], 0x0a << 2 | 2, "{flow_id}: outside as inside");
        assert_eq!(received(&mut far, 1).0, [&frame[..]]);
        // On the way another DSCP was written, and congestion marked.
        let socket = inside(&lab, "s", || UdpSocket::bind((NEAR, 0)).expect("a socket"));
        rustix::net::sockopt::set_ip_tos(&socket, 0x3c << 2 | mark).expect("a ToS");
        let datagram = [&Vxlan { vni: 7 }.emit()[..], &frame].concat();
        socket.send_to(&datagram, (FAR, 4789)).expect("sent");
        assert_eq!(received(&mut far, 1).0, [udp(18, inner)], "{flow_id}");
        let notes = far.control.facts().expect("facts").notes;
        let breaks_ecn = notes.iter().any(|note| note.contains("flow_id tos"));
        assert_eq!(breaks_ecn, flow_id == "tos", "{notes:?}");
        lab.close("s", (socket, near));
        lab.close("b", far);
    }
}
