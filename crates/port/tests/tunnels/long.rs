//! Frames that are too long for the path, offers of TCP that would be, and bursts.

use super::*;
use port::testing::Decapsulator;
use wire::build::Ipv6;

/// What an answer to the frame says: the MTU, behind that many bytes of IP and ICMP headers.
fn told(port: &mut OpenPort, frame: &[u8]) -> u32 {
    let (frames, drops) = received(port, 1);
    let [answer] = &frames[..] else { panic!("{} answers", frames.len()) };
    assert!(drops.is_empty());
    let mtu = if frame[12] == 0x86 { 14 + 44 } else { 14 + 24 };
    let mtu = u32::from_be_bytes(answer[mtu..mtu + 4].try_into().expect("four bytes"));
    assert_eq!(wire::too_big::answer(frame, mtu as usize + 14).as_ref(), Some(answer));
    mtu
}

#[test]
fn the_sender_of_a_frame_that_is_too_long_is_told_what_the_path_takes_now() {
    let Some(lab) = hosts("told") else { return };
    let mut near = end(&lab, "s", 7);
    let too_long = [(DropReason::TooBig, 1)];
    let v6 = Frame::ethernet([2; 6], [4; 6]).ipv6(Ipv6::default()).udp(1, 2);
    let v6 = v6.payload(&[0; 1403]).finish();
    for frame in [udp(1423, 0), v6] {
        assert_eq!(lost(&send(&mut near, &frame, Offload::default())), too_long);
        assert_eq!(told(&mut near, &frame), 1450);
    }
    for mtu in [1400, 1390] {
        lab.ip("s", &format!("route replace {FAR}/32 dev portb mtu {mtu}"));
        let frame = udp(1400, 0);
        assert_eq!(lost(&send(&mut near, &frame, Offload::default())), too_long);
        assert!(near.control.has_news());
        assert_eq!(near.control.facts().expect("facts").mtu, mtu - 50);
        assert_eq!(told(&mut near, &frame), mtu - 50);
        assert!(!near.control.has_news());
    }
    near.control.set_mtu(1200).expect("any");
    assert_eq!(lost(&send(&mut near, &udp(1173, 0), Offload::default())), too_long);
    assert_eq!(told(&mut near, &udp(1173, 0)), 1200);
    assert!(send(&mut near, &udp(1172, 0), Offload::default()).is_empty());
}

#[test]
fn segments_that_would_be_too_long_are_too() {
    let Some(lab) = hosts("told-cut") else { return };
    let mut near = end(&lab, "s", 7);
    let frame = Frame::ethernet([2; 6], [4; 6]).ipv4(Ipv4::default()).tcp(Tcp::default());
    let (frame, checksum) = frame.payload(&[7; 30_000]).finish_partial().expect("TCP");
    let offload =
        Offload { checksum: Some(checksum), gso: Gso::TcpV4, gso_size: 1460, ..Offload::default() };
    assert_eq!(lost(&send(&mut near, &frame, offload)), [(DropReason::TooBig, 1)]);
    assert_eq!(told(&mut near, &frame), 1450);
}

#[test]
fn many_frames_that_are_too_long_are_not_all_answered() {
    let Some(lab) = hosts("told-many") else { return };
    let mut near = end(&lab, "s", 7);
    let frame = udp(1423, 0);
    for _ in 0..1000 {
        assert!(!send(&mut near, &frame, Offload::default()).is_empty());
    }
    let (answers, _) = received(&mut near, 50);
    assert!(answers.len() <= 64, "{} answers", answers.len());
    let rx = near.rx[0].as_mut();
    assert!(rx.arm(), "nothing more is to come");
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    let ready = poll(&mut [PollFd::from_borrowed_fd(rx.readiness(), PollFlags::IN)], Some(&now));
    assert_eq!(ready, Ok(0), "a worker may sleep");
}

#[test]
fn a_syn_offers_what_the_path_carries_on_both_ends_of_a_tunnel_that_clamps() {
    let Some(lab) = hosts("mss") else { return };
    let clamped = |place| {
        port::open(&with(&spec(&lab, place, 7), json!({"mss_clamp": true})), 1).expect("a tunnel")
    };
    let syn = |mss: u16| {
        let [high, low] = mss.to_be_bytes();
        let header = Tcp { flags: 2, options: &[2, 4, high, low], ..Tcp::default() };
        Frame::ethernet([2; 6], [4; 6]).ipv4(Ipv4::default()).tcp(header)
    };
    lab.ip("s", &format!("route replace {FAR}/32 dev portb mtu 1400"));
    let (mut near, mut far) = (clamped("s"), end(&lab, "b", 7));
    let plain = Offload::default();
    let (partial, checksum) = syn(1460).finish_partial().expect("TCP");
    let left = Offload { checksum: Some(checksum), ..plain };
    for (frame, offload) in [(syn(1460).finish(), plain), (partial, left)] {
        assert!(send(&mut near, &frame, offload).is_empty());
        assert_eq!(received(&mut far, 1).0, [syn(1310).finish()]);
    }
    assert!(send(&mut far, &syn(1460).finish(), plain).is_empty());
    assert_eq!(received(&mut near, 1).0, [syn(1310).finish()]);
}

#[test]
fn a_burst_comes_out_whole_and_each_flow_in_order() {
    let Some(lab) = hosts("burst") else { return };
    let (mut near, mut far) = (end(&lab, "s", 7), end(&lab, "b", 7));
    let frame = |number: usize| {
        let flow = Frame::ethernet([2; 6], [4; 6]).ipv4(Ipv4::default()).udp(number as u16 % 5, 2);
        let len = if number % 7 == 3 { 300 } else { 60 + number / 50 * 1300 };
        flow.payload(&vec![number as u8; len])
    };
    let whole: Vec<_> = (0..100).map(|number| frame(number).finish()).collect();
    let partial: Vec<_> = (0..100).map(|number| frame(number).finish_partial().unwrap()).collect();
    let tx = |number: usize| {
        let (bytes, checksum) = match number % 2 {
            0 => (&whole[number], None),
            _ => (&partial[number].0, Some(partial[number].1)),
        };
        let (head, body) = bytes.split_at(bytes.len().min(wire::HEAD_MAX));
        let offload = Offload { checksum, ..Offload::default() };
        TxFrame { head, body: Body::private(body), offload, tunnel_id: 0, tun_dst: 0 }
    };
    let burst: Vec<_> = (0..100).map(tx).collect();
    let mut drops = Drops::default();
    assert_eq!(near.tx[0].tx(&burst, &mut drops).frames, 100);
    assert!(drops.is_empty());
    let (came, _) = received(&mut far, 100);
    let of_flow = |frames: &[Vec<u8>], flow: u8| -> Vec<Vec<u8>> {
        frames.iter().filter(|frame| frame[35] == flow).cloned().collect()
    };
    (0..5).for_each(|flow| assert_eq!(of_flow(&came, flow), of_flow(&whole, flow), "flow {flow}"));
}

#[test]
fn of_a_burst_that_is_too_long_each_frame_is_counted_and_what_fits_leaves() {
    let Some(lab) = hosts("burst-long") else { return };
    let (mut near, mut far) = (end(&lab, "s", 7), end(&lab, "b", 7));
    let (long, short) = (udp(1423, 0), udp(1422, 0));
    let tx = |bytes| {
        let (head, body) = <[u8]>::split_at(bytes, wire::HEAD_MAX);
        TxFrame {
            head,
            body: Body::private(body),
            offload: Offload::default(),
            tunnel_id: 0,
            tun_dst: 0,
        }
    };
    let mut drops = Drops::default();
    let burst = [tx(&long), tx(&long), tx(&short), tx(&short), tx(&long)];
    assert_eq!(near.tx[0].tx(&burst, &mut drops).frames, 2);
    assert_eq!(lost(&drops), [(DropReason::TooBig, 3)]);
    assert_eq!(received(&mut far, 2).0, [&short[..], &short]);
}

#[test]
fn a_datagram_that_ends_inside_its_header_is_not_read_on_into_the_next() {
    let header = Vxlan { vni: 7 }.emit();
    let mut end = Decapsulator::new(7, 1450);
    let (frames, drops) = end.frames_of(&[header, header].concat(), 5, 0);
    assert_eq!((frames, lost(&drops)), (vec![], vec![(DropReason::BadSource, 4)]));
}
