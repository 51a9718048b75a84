//! Frames from port to port of one switch.

use crate::line::{Fault, Wired};
use crate::rig::{Rig, at, from, output, set, udp};
use flow::{Action, Miss, Output};
use wire::build::{Frame, Ipv4, Tcp};
use wire::{DropReason, Field, Gso, Offload};

#[test]
fn frames_leave_by_the_ruled_port_whole_and_in_order() {
    let mut rig = Rig::new(1);
    rig.switch(1, &[1, 2, 3], &[from(1, vec![output(2)])]);
    let frames: Vec<_> =
        (0..200u8).map(|i| udp(u16::from(i % 7), i, usize::from(i) * 40)).collect();
    rig.datapath.set_mtu(at(1, 2), 9000);
    rig.line(1, 1).pass(frames.clone());
    assert_eq!(rig.line(1, 2).take_bytes(), frames);
    assert!(rig.line(1, 3).take().is_empty());
    let bytes: u64 = frames.iter().map(|frame| frame.len() as u64).sum();
    let (rx, tx) = (
        rig.datapath.port_counters(at(1, 1)).unwrap(),
        rig.datapath.port_counters(at(1, 2)).unwrap(),
    );
    assert_eq!((rx.rx_frames, rx.rx_bytes, tx.tx_frames, tx.tx_bytes), (200, bytes, 200, bytes));
}

#[test]
fn frames_of_one_way_fare_alike_unseen_seen_and_where_others_are_changed() {
    let ipv4 = (10, vec![(Field::EthType, 0x800)], vec![output(2)]);
    let arp = (9, vec![(Field::EthType, 0x806)], vec![set(Field::EthSrc, 1), output(2)]);
    let other = (
        9,
        vec![(Field::EthType, 0x800), (Field::IpProto, 17), (Field::TpDst, 1)],
        vec![output(2)],
    );
    let rig = |rules: &[_]| {
        let mut rig = Rig::new(1);
        rig.switch(1, &[1, 2], rules);
        rig
    };
    let unseen = rig(&[from(1, vec![output(2)])]);
    let others = [
        rig(std::slice::from_ref(&ipv4)),
        rig(&[ipv4.clone(), arp.clone()]),
        // A rule that looks at ports: frames are seen.
        rig(&[ipv4.clone(), other.clone()]),
        rig(&[ipv4, other, arp]),
    ];
    // Runts, frames that are too long, and batches without either.
    let long = |n: u16| if n.is_multiple_of(150) { 1500 } else { usize::from(n) * 3 };
    let mut frames: Vec<_> = (1..=400).map(|n| udp(n % 7, n as u8, long(n))).collect();
    frames.insert(210, vec![0; 13]);
    let outcome = |rig: &Rig| {
        rig.line(1, 1).pass(frames.clone());
        let counters = [1, 2].map(|port| rig.datapath.port_counters(at(1, port)).unwrap());
        (rig.line(1, 2).take_bytes(), counters)
    };
    let (sent, [rx, tx]) = outcome(&unseen);
    let fitting = frames.iter().filter(|frame| (14..=1514).contains(&frame.len()));
    assert_eq!(sent, fitting.cloned().collect::<Vec<_>>());
    assert_eq!((rx.rx_frames, tx.tx_frames), (400, 398));
    assert_eq!(
        (rx.rx_drops.clone(), tx.tx_drops.clone()),
        (vec![(DropReason::Runt, 1)], vec![(DropReason::TooBig, 2)])
    );
    for rig in &others {
        assert_eq!(outcome(rig), (sent.clone(), [rx.clone(), tx.clone()]));
    }
}

#[test]
fn frames_that_are_edited_fare_alike_together_in_their_places_and_one_by_one() {
    let edits = || vec![set(Field::EthDst, 7), set(Field::EthSrc, 8), Action::DecNwTtl];
    let rig = |edits: &[Action], others: &[_]| {
        let rule = |flow: u128| {
            let udp = [(Field::EthType, 0x800), (Field::IpProto, 17)];
            let fields = udp.into_iter().chain([(Field::TpSrc, 1000 + flow)]);
            (10, fields.collect::<Vec<_>>(), edits.iter().copied().chain([output(2)]).collect())
        };
        let mut rig = Rig::new(1);
        let rules: Vec<_> = (0..7).map(rule).chain(others.iter().cloned()).collect();
        rig.switch(1, &[1, 2], &rules);
        rig
    };
    // It has nothing to do here, but nobody knows that beforehand.
    let longer: Vec<_> = edits().into_iter().chain([Action::CopyTtlIn]).collect();
    let tagged = (9, vec![(Field::EthType, 0x806)], vec![Action::PushVlan(0x8100), output(2)]);
    let rigs = [rig(&edits(), &[]), rig(&longer, &[]), rig(&longer, &[tagged])];
    // Runts, frames that are too long, and batches without either.
    let long = |n: u16| if n.is_multiple_of(150) { 1500 } else { usize::from(n) * 3 };
    let mut frames: Vec<_> = (1..=400).map(|n| udp(n % 7, n as u8, long(n))).collect();
    frames.insert(210, vec![0; 13]);
    let [together, others @ ..] = rigs.map(|rig| {
        rig.line(1, 1).pass(frames.clone());
        let counters = [1, 2].map(|port| rig.datapath.port_counters(at(1, port)).unwrap());
        (rig.line(1, 2).take_bytes(), counters)
    });
    let (sent, [rx, tx]) = &together;
    assert_eq!((rx.rx_frames, tx.tx_frames, sent.len()), (400, 398, 398));
    assert_eq!(tx.tx_drops, [(DropReason::TooBig, 2)]);
    let edited =
        |frame: &Vec<u8>| frame[..12] == [0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 8] && frame[22] == 63;
    assert!(sent.iter().all(edited));
    assert_eq!(others, [together.clone(), together]);
}

#[test]
fn a_flood_leaves_by_every_other_port() {
    let mut rig = Rig::new(1);
    let ports: Vec<u32> = (1..=40).chain([5000, 0xffff_fe00]).collect();
    rig.switch(1, &ports, &[(1, vec![], vec![Action::Output(Output::Flood)])]);
    let frames: Vec<_> = (0..100).map(|i| udp(i, 0, 10)).collect();
    rig.line(1, 7).pass(frames.clone());
    for &port in &ports {
        let expected = if port == 7 { &[][..] } else { &frames };
        assert_eq!(rig.line(1, port).take_bytes(), expected, "port {port}");
    }
}

#[test]
fn an_output_before_an_edit_sends_the_frame_as_it_was() {
    let mut rig = Rig::new(1);
    let actions = vec![
        output(2),
        Action::PushVlan(0x8100),
        set(Field::VlanVid, 0x1000 | 7),
        output(3),
        set(Field::EthDst, 0x0200_0000_0099),
        output(4),
    ];
    rig.switch(1, &[1, 2, 3, 4], &[from(1, actions)]);
    let frames: Vec<_> = (0..500).map(|i| udp(i, i as u8, 400)).collect();
    rig.line(1, 1).pass(frames.clone());
    let tagged = |frame: &Vec<u8>| [&frame[..12], &[0x81, 0, 0, 7], &frame[12..]].concat();
    let readdressed = |frame: &Vec<u8>| [&[2, 0, 0, 0, 0, 0x99], &tagged(frame)[6..]].concat();
    assert_eq!(rig.line(1, 2).take_bytes(), frames);
    assert_eq!(rig.line(1, 3).take_bytes(), frames.iter().map(tagged).collect::<Vec<_>>());
    assert_eq!(rig.line(1, 4).take_bytes(), frames.iter().map(readdressed).collect::<Vec<_>>());
}

#[test]
fn more_copies_than_spare_heads_leave_all_the_same() {
    let mut rig = Rig::new(1);
    let steps = 40u32; // 32 frames × 40 copies: more than twice the spare heads
    let actions = (0..steps)
        .flat_map(|i| [set(Field::EthSrc, i.into()), output(2 + i % 2)])
        .collect::<Vec<_>>();
    rig.switch(1, &[1, 2, 3], &[from(1, actions)]);
    let frames: Vec<_> = (0..64).map(|i| udp(i, 0, 300)).collect();
    rig.line(1, 1).pass(frames.clone());
    for port in [2, 3] {
        let sent = rig.line(1, port).take_bytes();
        assert_eq!(sent.len(), frames.len() * steps as usize / 2);
        for i in (port - 2..steps).step_by(2) {
            let source = [0, 0, 0, 0, 0, i as u8];
            let with_source: Vec<_> = sent.iter().filter(|frame| frame[6..12] == source).collect();
            let expected: Vec<_> =
                frames.iter().map(|f| [&f[..6], &source, &f[12..]].concat()).collect();
            assert_eq!(
                with_source,
                expected.iter().collect::<Vec<_>>(),
                "copy {i} keeps the frames' order"
            );
        }
    }
}

#[test]
fn a_frame_longer_than_the_mtu_is_dropped_and_tags_do_not_count() {
    let mut rig = Rig::new(1);
    rig.switch(
        1,
        &[1, 2, 3],
        &[
            (
                20,
                vec![(Field::InPort, 1), (Field::TpSrc, 1001)],
                vec![Action::PushVlan(0x8100), output(2)],
            ),
            from(1, vec![output(2)]),
        ],
    );
    let (fits, too_big) = (udp(0, 0, 1500 - 28), udp(0, 0, 1500 - 27));
    rig.line(1, 1).pass([fits.clone(), too_big.clone(), udp(1, 0, 1500 - 28)]);
    assert_eq!(
        rig.line(1, 2).take().iter().map(|frame| frame.bytes.len()).collect::<Vec<_>>(),
        [1514, 1518]
    );
    assert_eq!(rig.drops(1, DropReason::TooBig), 1);
    rig.datapath.set_mtu(at(1, 2), 1501);
    rig.line(1, 1).pass([too_big.clone()]);
    assert_eq!(rig.line(1, 2).take_bytes(), [too_big]);
}

#[test]
fn a_large_frame_passes_whole_if_its_segments_fit() {
    let mut rig = Rig::new(1);
    rig.switch(1, &[1, 2], &[from(1, vec![output(2)])]);
    let frame = Frame::ethernet([2; 6], [4; 6])
        .ipv4(Ipv4::default())
        .tcp(Tcp::default())
        .payload(&[7; 20_000]);
    let (bytes, checksum) = frame.finish_partial().unwrap();
    let large = |gso_size| Wired {
        bytes: bytes.clone(),
        offload: Offload {
            checksum: Some(checksum),
            gso: Gso::TcpV4,
            gso_size,
            ..Offload::default()
        },
    };
    rig.line(1, 1).pass([large(1460), large(1461)]);
    assert_eq!(rig.line(1, 2).take(), [large(1460)]);
    assert_eq!(rig.drops(1, DropReason::TooBig), 1);
}

#[test]
fn every_drop_has_its_reason() {
    let mut rig = Rig::new(1);
    rig.switch(
        1,
        &[1, 2, 3],
        &[
            (20, vec![(Field::InPort, 1), (Field::TpSrc, 1001)], vec![]),
            (20, vec![(Field::InPort, 1), (Field::TpSrc, 1002)], vec![output(99)]),
            (20, vec![(Field::InPort, 1), (Field::TpSrc, 1003)], vec![output(1)]),
            (20, vec![(Field::InPort, 1), (Field::TpSrc, 1004)], vec![output(2)]),
            (20, vec![(Field::InPort, 1), (Field::TpSrc, 1005)], vec![output(3)]),
        ],
    );
    rig.datapath.set_up(at(1, 2), false);
    rig.line(1, 3).set_fault(Some(Fault::TxFull));
    rig.line(1, 1).pass((0..=5).map(|flow| udp(flow, 0, 0)).chain([vec![0; 13]]));
    rig.line(1, 2).pass([udp(0, 0, 0)]);
    for reason in [
        DropReason::NoMatch,
        DropReason::ByRule,
        DropReason::NoPort,
        DropReason::NoDestination,
        DropReason::TxFull,
        DropReason::Runt,
    ] {
        assert_eq!(rig.drops(1, reason), 1, "{}", reason.name());
    }
    assert_eq!(rig.drops(1, DropReason::PortDown), 2, "one into it, one out of it");
    let third = rig.datapath.port_counters(at(1, 3)).unwrap();
    assert_eq!((third.tx_frames, third.tx_drops), (0, vec![(DropReason::TxFull, 1)]));
}

#[test]
fn what_a_port_is_not_to_receive_is_the_ports_loss_and_in_the_switchs_total() {
    let mut rig = Rig::new(1);
    rig.switch(1, &[1, 2], &[from(1, vec![output(9)]), from(2, vec![output(9)])]);
    rig.switch(2, &[1], &[from(9, vec![output(1)])]);
    rig.vlink(at(1, 9), at(2, 9));
    rig.set_no_recv(at(1, 1));
    rig.set_no_recv(at(2, 9));
    rig.line(1, 1).pass((0..3).map(|flow| udp(flow, 0, 0)));
    rig.line(1, 2).pass([udp(0, 0, 0)]);
    let reason = DropReason::PortNoReceive;
    for (switch, port, frames) in [(1, 1, 3), (2, 9, 1)] {
        let counters = rig.datapath.port_counters(at(switch, port)).unwrap();
        assert_eq!((counters.rx_frames, counters.rx_drops), (frames, vec![(reason, frames)]));
        assert_eq!(rig.drops(switch, reason), frames, "counted once");
    }
    assert!(rig.line(2, 1).take().is_empty());
}

#[test]
fn a_standalone_switch_that_lost_its_controller_forwards_what_it_would_ask_it_about() {
    let mut rig = Rig::new(1);
    let ask = vec![Action::Output(Output::Controller { max_len: 0xffff })];
    let blocked = (9, vec![(Field::InPort, 3)], vec![]);
    rig.switch(1, &[1, 2, 3], &[(0, vec![], ask), blocked]);
    for (miss, forwarded) in [(Miss::Drop, 0), (Miss::Orphaned, 1), (Miss::Normal, 0)] {
        rig.on_miss(1, miss);
        rig.line(1, 1).pass([udp(0, 0, 0)]);
        assert_eq!(rig.line(1, 2).take().len(), forwarded, "{miss:?}");
    }
    rig.on_miss(1, Miss::Orphaned);
    rig.line(1, 3).pass([udp(0, 0, 0)]);
    assert!(rig.line(1, 2).take().is_empty(), "other rules stay in force");
}

#[test]
fn a_standalone_switch_learns() {
    let mut rig = Rig::new(1);
    rig.switch(1, &[1, 2, 3], &[]);
    rig.on_miss(1, Miss::Normal);
    let frame = |dst: u8, src: u8| {
        Frame::ethernet([2, 0, 0, 0, 0, dst], [2, 0, 0, 0, 0, src]).payload(&[0; 50]).finish()
    };
    rig.line(1, 1).pass([frame(2, 1)]);
    assert_eq!((rig.line(1, 2).take().len(), rig.line(1, 3).take().len()), (1, 1));
    rig.line(1, 2).pass([frame(1, 2)]);
    assert_eq!((rig.line(1, 1).take().len(), rig.line(1, 3).take().len()), (1, 0));
}
