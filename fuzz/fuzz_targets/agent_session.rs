//! A hostile peer's session, from hello to end, in memory: valid messages, spoilt, cut and out of order, read or not read, while
//! ports come and go and packets are for it. Nothing panics; what waits for the peer stays bounded; all that the switch says is
//! OpenFlow; the session ends when the peer goes; and another switch keeps its tables and answers its own controller.
//!
//! Time is tokio's, paused: it goes on only when every task waits, so that a timeout of 15 s costs nothing.
#![no_main]

#[path = "agent_session/rig.rs"]
mod rig;
#[path = "agent_session/script.rs"]
mod script;

use flow::PacketInReason;
use libfuzzer_sys::fuzz_target;
use node::agent::Timing;
use openflow::{Message, PortConfig, Version, VersionSet};
use port::PortFacts;
use rig::{Rig, Side};
use script::Script;
use std::time::Duration;

/// Steps of one session.
const STEPS: usize = 64;

fuzz_target!(|input: &[u8]| {
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_time().start_paused(true).build().expect("a runtime");
    runtime.block_on(play(&mut Script(input)));
});

async fn play(script: &mut Script<'_>) {
    let (hostile, quiet) = (Rig::new("hostile"), Rig::new("quiet"));
    quiet.furnish();
    let before = quiet.tables();
    let mut controller = quiet.controller(Timing::probing_after(Duration::from_secs(1 << 20)));
    controller.send(&hello(Version::V1_3)).await;
    let mut peer = hostile.controller(Timing::default());
    let version = greet(script, &mut peer).await;
    for _ in 0..STEPS {
        if script.is_over() || !step(script, version, &hostile, &mut peer).await {
            break;
        }
        peer.outbox_is_bounded();
    }
    peer.end().await;
    assert!(hostile.switch.connections().is_empty(), "a session that ended is still a member");
    assert!(quiet.tables() == before, "another switch's tables changed");
    controller.send(&Message::BarrierRequest.encode(Version::V1_3, 77).expect("short")).await;
    controller.read().await;
    assert_eq!(controller.said(), Some((77, Message::BarrierReply)));
}

fn hello(version: Version) -> Vec<u8> {
    let versions = (version == Version::V1_3).then_some(VersionSet::of(Version::ALL));
    Message::Hello(openflow::Hello { versions }).encode(version, 1).expect("a short message")
}

/// A hello, as a rule; the version that the peer speaks from then on.
async fn greet(script: &mut Script<'_>, peer: &mut Side) -> Version {
    let choice = script.byte();
    let version = if choice % 4 == 1 { Version::V1_0 } else { Version::V1_3 };
    if choice % 16 != 15 {
        peer.send(&hello(version)).await;
    }
    version
}

/// One thing that the peer, or the world around the switch, does; false when the connection is gone.
async fn step(script: &mut Script<'_>, version: Version, rig: &Rig, peer: &mut Side) -> bool {
    match script.byte() % 16 {
        0..9 => say(script, version, peer).await,
        9 => return peer.read().await,
        10 => rig.advance(script.byte()),
        11 => rig.switch.publish(),
        12 => {
            let facts =
                PortFacts { up: true, carrier: script.byte() % 2 == 0, ..PortFacts::default() };
            rig.switch.add_port(script.port(), "eth", &facts, PortConfig::empty());
        }
        13 => rig.switch.remove_port(script.port()),
        14 => tokio::time::advance(Duration::from_secs(script.byte().into())).await,
        _ => {
            let reasons =
                [PacketInReason::NoMatch, PacketInReason::Action, PacketInReason::InvalidTtl];
            let (reason, len) = (reasons[usize::from(script.byte()) % 3], script.byte());
            (0..=script.byte()).for_each(|_| rig.punt(reason, len));
        }
    }
    !peer.is_over()
}

/// Sends a message, perhaps many times, perhaps spoilt.
async fn say(script: &mut Script<'_>, version: Version, peer: &mut Side) {
    // What this version cannot say is said in the other, which the switch refuses.
    let message = script.message(version);
    let bytes = message.encode(version, script.byte().into());
    let Ok(mut bytes) = bytes.or_else(|_| message.encode(Version::V1_3, 9)) else { return };
    let how = script.byte();
    match how % 16 {
        10 => {
            let at = usize::from(script.byte()) * 2 % bytes.len();
            bytes[at] = script.byte();
        }
        // Cut, with a header that owns up to it.
        11 => {
            bytes.truncate(usize::from(script.byte()).clamp(8, bytes.len()));
            let len = bytes.len() as u16;
            bytes[2..4].copy_from_slice(&len.to_be_bytes());
        }
        // Cut, so that the next message is read as its rest.
        12 => bytes.truncate(usize::from(script.byte()) % bytes.len()),
        // Too late: after the next one.
        13 => return peer.hold(bytes),
        14 => bytes = bytes.repeat(script.byte().into()),
        15 => bytes.extend_from_slice(&[script.byte(); 5]),
        _ => {}
    }
    peer.send(&bytes).await;
}
