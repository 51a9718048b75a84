//! TTLs: set, decremented, copied; and what becomes of a frame whose TTL runs out (§5.12, §7.2.5.7, §7.4.1).

use super::{Place, becomes_what_the_oracle_says, headers_of};
use crate::harness::{Suite, entry, output};
use crate::oracle::{Frame, Framing, Payload, Sample};
use openflow::{Action, AsyncConfig, Message, OxmField, PacketInReason};

const SAMPLES: [Sample; 8] = [
    Sample::Arp,
    Sample::Ipv4Tcp,
    Sample::Ipv4Udp,
    Sample::Ipv4Options,
    Sample::Ipv4InIpv4,
    Sample::Ipv6Tcp,
    Sample::Ipv6Options,
    Sample::Ipv6InIpv6,
];

/// The cases.
pub fn cases(suite: &mut Suite) {
    let actions = [
        ("set_nw_ttl", vec![Action::SetNwTtl(200)]),
        ("set_nw_ttl::zero", vec![Action::SetNwTtl(0)]),
        ("dec_nw_ttl", vec![Action::DecNwTtl]),
        ("dec_nw_ttl::after_set", vec![Action::SetNwTtl(2), Action::DecNwTtl]),
        ("set_mpls_ttl", vec![Action::SetMplsTtl(200)]),
        ("dec_mpls_ttl", vec![Action::DecMplsTtl]),
        ("copy_ttl_out", vec![Action::CopyTtlOut]),
        ("copy_ttl_in", vec![Action::CopyTtlIn]),
    ];
    for framing in Framing::ALL {
        for sample in SAMPLES {
            for (name, actions) in &actions {
                let frame = framing.around(sample);
                if !actions.iter().all(|action| is_promised(&frame, action)) {
                    continue; // the flow-mod is refused, see [`super::refusals`]
                }
                for &place in Place::of(actions) {
                    let (frame, actions) = (frame.clone(), actions.clone());
                    let full =
                        format!("{name}::{}::{}::{}", sample.name(), framing.name(), place.name());
                    suite.case(full, move |bench| {
                        let fields = headers_of(&frame);
                        becomes_what_the_oracle_says(bench, place, fields, &actions, &frame);
                    });
                }
            }
        }
        for sample in Sample::IP {
            run_out(suite, framing, sample);
        }
    }
}

/// Whether a match on the frame's Ethernet type promises the action's header.
fn is_promised(frame: &Frame, action: &Action) -> bool {
    let is_ip = frame.get(OxmField::IpProto).is_some();
    match action {
        Action::SetNwTtl(_) | Action::DecNwTtl => is_ip,
        Action::SetMplsTtl(_) | Action::DecMplsTtl => !frame.shims.is_empty(),
        _ => is_ip || !frame.shims.is_empty(),
    }
}

/// A TTL of 0 or 1 cannot be decremented: the frame is dropped; a controller that asked for it gets it as it was.
fn run_out(suite: &mut Suite, framing: Framing, sample: Sample) {
    for ttl in [0, 1] {
        for place in Place::ALL {
            let frame = dying(framing.around(sample), ttl);
            let Some((frame, action)) = frame else { continue };
            let case = |what: &str| {
                let (sample, framing) = (sample.name(), framing.name());
                format!("invalid_ttl::{what}::of_{ttl}::{sample}::{framing}::{}", place.name())
            };
            suite.case(case("dropped"), {
                let (frame, action) = (frame.clone(), action.clone());
                move |bench| {
                    place.program(bench, headers_of(&frame), &[action]);
                    bench.send(1, &frame.bytes()).is_nothing();
                }
            });
            suite.case(case("to_controller"), move |bench| {
                let normal = AsyncConfig { packet_in: [0b111, 0], ..AsyncConfig::default() };
                bench.session.accept(&Message::SetAsync(normal));
                place.program(bench, headers_of(&frame), &[action]);
                let packet = bench.send(1, &frame.bytes()).one_packet_in();
                assert_eq!(
                    (packet.reason, packet.data),
                    (PacketInReason::InvalidTtl, frame.bytes())
                );
                bench.session.accept(&Message::SetAsync(AsyncConfig::default()));
            });
        }
    }
    let Some((frame, action)) = dying(framing.around(sample), 2) else { return };
    suite.case(
        format!("invalid_ttl::not_of_2::{}::{}", sample.name(), framing.name()),
        move |bench| {
            becomes_what_the_oracle_says(
                bench,
                Place::Apply,
                headers_of(&frame),
                &[action],
                &frame,
            );
        },
    );
    let Some((frame, action)) = dying(framing.around(sample), 1) else { return };
    let name =
        format!("invalid_ttl::outputs_before_it_stand::{}::{}", sample.name(), framing.name());
    suite.case(name, move |bench| {
        let actions = vec![output(3), action, output(2)];
        bench.add(&entry(1, headers_of(&frame), actions));
        bench.send(1, &frame.bytes()).is_only(3, &frame.bytes());
    });
}

/// The frame with its outermost TTL set, and the action that decrements it.
fn dying(mut frame: Frame, ttl: u8) -> Option<(Frame, Action)> {
    let action = match (frame.shims.first_mut(), &mut frame.payload) {
        (Some(shim), _) => {
            shim.ttl = ttl;
            Action::DecMplsTtl
        }
        (None, Payload::Ip(ip)) => {
            ip.ttl = ttl;
            Action::DecNwTtl
        }
        _ => return None,
    };
    Some((frame, action))
}
