//! Every reason of the closed list is captured: with the frame that was lost, or as a number where nobody has it at hand.

use crate::line::Fault;
use crate::rig::{Rig, at, controller, from, output, udp};
use datapath::{BitRate, Captured, Filter, Point, PortQueues, QueueRates, Share, Wanted, What};
use flow::{Action, GroupKind, GroupMod, Nanos, Output};
use wire::{DropReason, Field};

/// Who loses frames for a reason, and what a capture shows of them.
enum Cause {
    /// A switch or its workers, which have the frame: a rig is made to lose what comes in by port 1.
    Here(fn(&mut Rig)),
    /// A port, a group of workers or the program that edits: each with the frame.
    Frame,
    /// The kernel, another thread, or a worker that failed: they tell how many.
    Number,
}

/// A reason without a row does not compile.
fn cause(reason: DropReason) -> Cause {
    use DropReason as Why;
    match reason {
        Why::NoMatch => Cause::Here(|_| {}),
        Why::ByRule => Cause::Here(|rig| rig.rules(1, &[from(1, vec![])])),
        Why::NoPort => Cause::Here(|rig| rig.rules(1, &[from(1, vec![output(9)])])),
        Why::NoDestination => Cause::Here(|rig| rig.rules(1, &[from(1, vec![output(1)])])),
        Why::NoBucket => Cause::Here(|rig| {
            let (id, kind, buckets) = (7, GroupKind::FastFailover, Vec::new());
            let group = GroupMod::Add { id, kind, buckets };
            rig.pipeline(1, |tables| tables.group_mod(group, Nanos(1)).map(drop)).unwrap();
            rig.rules(1, &[from(1, vec![Action::Group(7)])]);
        }),
        Why::TtlExpired => Cause::Here(|rig| {
            let expires = vec![Action::SetNwTtl(1), Action::DecNwTtl, output(2)];
            let fields = vec![(Field::InPort, 1), (Field::EthType, 0x800)];
            rig.rules(1, &[(10, fields, expires)]);
        }),
        Why::PortNoReceive => Cause::Here(|rig| rig.set_no_recv(at(1, 1))),
        Why::PortDown => Cause::Here(|rig| {
            rig.rules(1, &[from(1, vec![output(2)])]);
            rig.datapath.set_up(at(1, 2), false);
        }),
        Why::TooBig => Cause::Here(|rig| {
            rig.rules(1, &[from(1, vec![output(2)])]);
            rig.datapath.set_mtu(at(1, 2), 300);
        }),
        Why::TxFull => Cause::Here(|rig| {
            rig.rules(1, &[from(1, vec![output(2)])]);
            rig.line(1, 2).set_fault(Some(Fault::TxFull));
        }),
        Why::QueueFull => Cause::Here(|rig| {
            rig.rules(1, &[from(1, vec![output(2)])]);
            let queue = QueueRates { id: 0, min: None, max: BitRate::new(8_000) };
            let queues = PortQueues { rate: None, queues: vec![queue] };
            rig.datapath.set_queues(at(1, 2), &queues).unwrap();
            // It is full then.
            rig.line(1, 1).pass((0..1000).map(|n| udp(n, 0, 1000)));
            rig.line(1, 1).pass(frames());
        }),
        Why::PacketInFull => Cause::Here(|rig| {
            rig.rules(1, &[from(1, vec![controller(60)])]);
            rig.publisher(1).set_packet_in_rate(1, 1);
            rig.line(1, 1).pass([udp(0, 0, 0)]);
        }),
        Why::ReservedAddress => Cause::Here(|rig| {
            let reserved = vec![(Field::EthDst, 0x0180_c200_000e)];
            let normal = Action::Output(Output::Normal);
            let to = Action::SetField {
                field: Field::EthDst,
                of: None,
                value: 0x0180_c200_000e,
                mask: Field::EthDst.full(),
            };
            rig.rules(1, &[(20, reserved, vec![normal]), from(1, vec![to, normal])]);
        }),
        Why::VlinkLoop => Cause::Here(|rig| {
            rig.switch(2, &[], &[(1, vec![], vec![output(2)])]);
            rig.switch(3, &[], &[(1, vec![], vec![output(2)])]);
            rig.vlink(at(1, 9), at(2, 1));
            rig.vlink(at(2, 2), at(3, 1));
            rig.vlink(at(3, 2), at(1, 8));
            rig.rules(1, &[(1, vec![], vec![output(9)])]);
        }),
        Why::Storm => Cause::Here(|rig| {
            rig.ports(1, &[3]);
            rig.bridge(1, 0);
        }),
        Why::Runt
        | Why::BadEdit
        | Why::BadOffload
        | Why::PortNoForward
        | Why::TxError
        | Why::Meter
        | Why::Fragment
        | Why::TooManyCopies
        | Why::BadSource
        | Why::HandoverFull
        | Why::HoldFull
        | Why::Ecn
        | Why::TunnelId
        | Why::TunnelEnd
        | Why::EspExhausted => Cause::Frame,
        Why::WorkerFault
        | Why::RxFull
        | Why::SealFull
        | Why::EspSpi
        | Why::EspReplay
        | Why::EspOld
        | Why::EspIcv
        | Why::EspMalformed
        | Why::Plaintext => Cause::Number,
    }
}

/// What is lost: reason, how many, and what lies behind the IPv4 header, which no edit of these rules changes.
fn losses(cause: &Cause, reason: DropReason) -> Vec<(What, Vec<u8>)> {
    let mut rig = Rig::new(1);
    rig.switch(1, &[1, 2], &[]);
    match cause {
        Cause::Here(lose) => lose(&mut rig),
        Cause::Frame => {
            rig.rules(1, &[from(1, vec![output(2)])]);
            rig.line(1, 2).set_fault(Some(Fault::Loses(reason)));
        }
        Cause::Number => {}
    }
    let points = [Point::Drops(None)];
    let filter = Filter::default();
    let wanted =
        Wanted { points: &points, filter, snap: 1 << 16, ring: 1 << 20, share: Share::default() };
    let mut capture = rig.datapath.capture(&wanted).unwrap();
    match cause {
        Cause::Number => rig.line(1, 1).set_fault(Some(Fault::LostElsewhere(reason, 7))),
        Cause::Here(_) | Cause::Frame => rig.line(1, 1).pass(frames()),
    }
    rig.quiet();
    let mut lost = Vec::new();
    let each = |seen: Captured<'_>| {
        lost.push((seen.what, seen.bytes.get(34..).unwrap_or_default().to_vec()));
    };
    capture.take(Nanos(u64::MAX), usize::MAX, each);
    let counted = capture.counted(0);
    assert_eq!((counted.matched, counted.lost), (lost.len() as u64, 0));
    lost
}

fn frames() -> Vec<Vec<u8>> {
    (0..40).map(|n| udp(n, n as u8, 400)).collect()
}

#[test]
fn each_reason_is_captured_with_its_frame_or_as_a_number() {
    for &reason in DropReason::ALL {
        let cause = cause(reason);
        let lost = losses(&cause, reason);
        let wanted: Vec<_> = match cause {
            Cause::Number => vec![(What::LostElsewhere(reason, 7), Vec::new())],
            Cause::Here(_) | Cause::Frame => frames()
                .into_iter()
                .map(|frame| (What::Lost(reason), frame[34..].to_vec()))
                .collect(),
        };
        assert!(lost == wanted, "{}: {} losses", reason.name(), lost.len());
    }
}
