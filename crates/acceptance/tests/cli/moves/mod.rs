//! Sixty-four flows that leave the worker and come back, while rules change and while the node is dead: none of their frames is lost, none
//! comes late or twice, none by an old rule, and who controls the switch hears exactly what was sent.

mod talk;
mod tunnel;

use super::offload::{TC, Under, XDP, leaves_nothing, place};
use acceptance::{Place, Speaker, privileged, sh, until_within};
use openflow::{
    Action, FlowMod, FlowModCommand, FlowModFlags, FlowRemoved, FlowRemovedReason, FragmentMode,
    Instruction, Match, Message, Oxm, OxmField, PortNo, SwitchConfig,
};
use rustix::process::Signal;
use serde_json::Value;
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};
use talk::{BURST, GENERATIONS, Seen, Talk};

/// Pairs of flows, there and back.
const PAIRS: u64 = 32;
const FLOWS: usize = 2 * PAIRS as usize;
/// A loaded machine takes its time.
const PATIENCE: Duration = Duration::from_secs(60);

/// Chosen: longer than a loaded machine lets a talk wait.
const IDLE_S: u16 = 5;

/// Rule changes of one run; `SUIRO_RULE_CHANGES` asks for more.
fn changes() -> u64 {
    std::env::var("SUIRO_RULE_CHANGES").ok().and_then(|text| text.parse().ok()).unwrap_or(12)
}

/// A node whose UDP flows leave with their first frame.
fn ready(under: Under) -> Place {
    let place = place(under);
    for (guest, other, address) in [("g1", "g2", "10.0.0.2"), ("g2", "g1", "10.0.0.1")] {
        introduce(&place, guest, &mac(&place, other), address);
    }
    place.suiro(&["offload", "policy", "add", "all", "--match", "udp", "--when", "first"]);
    place.suiro(&["offload", "on"]);
    place
}

/// A guest knows the other one for good: nothing but the talk is sent.
fn introduce(place: &Place, guest: &str, mac: &str, address: &str) {
    let netns = place.guest(guest);
    sh(&["ip", "-n", &netns, "neigh", "replace", address, "lladdr", mac, "dev", "eth0"]);
}

fn mac(place: &Place, guest: &str) -> String {
    let words = ["-n", &place.guest(guest), "-j", "link", "show", "dev", "eth0"];
    let shown = std::process::Command::new("ip").args(words).output().unwrap();
    let links: Value = serde_json::from_slice(&shown.stdout).unwrap();
    links[0]["address"].as_str().unwrap().to_owned()
}

/// Frames go on at a core that hashing picks, at the switch's ends and in the guests: where order is lost first, if it is.
fn steer_receive(place: &Place) {
    let [g1, g2] = ["g1", "g2"].map(|guest| place.guest(guest));
    for (netns, interface) in
        [(&*place.netns, "g1"), (&*place.netns, "g2"), (&*g1, "eth0"), (&*g2, "eth0")]
    {
        let line = format!("echo 3 > /sys/class/net/{interface}/queues/rx-0/rps_cpus");
        sh(&["ip", "netns", "exec", netns, "sh", "-c", &line]);
    }
}

/// The talk's flows.
fn flows(place: &Place) -> Vec<Value> {
    let (status, body) = place.http("GET", "/v1/switches/sw0/offload/flows?filter=udp", "");
    assert_eq!(status, 200, "{body}");
    serde_json::from_str(&body).unwrap()
}

/// How many of them are on a rung.
fn up(place: &Place, (_, rung): Under) -> usize {
    flows(place).iter().filter(|flow| flow["rung"] == rung).count()
}

/// A generation's rule for one direction: its DSCP, and an address that all generations write.
fn rule(from: u32, generation: u64, command: FlowModCommand) -> Message {
    let dscp = u128::from(generation % GENERATIONS);
    let address = 0x0a00_0064;
    let fields = Match::default()
        .with(OxmField::InPort, from.into())
        .with(OxmField::EthType, 0x0800)
        .with(OxmField::IpProto, 17);
    let write = [(OxmField::Ipv4Src, address), (OxmField::IpDscp, dscp)];
    let write = write.map(|(field, value)| Action::SetField(Oxm::exact(field, value)));
    let actions = [&write[..], &[Action::output(PortNo(3 - from))]].concat();
    Message::FlowMod(FlowMod {
        cookie: from.into(),
        priority: 50_000,
        // In use while its frames go past the worker.
        idle_timeout_s: if from == 2 { IDLE_S } else { 0 },
        command,
        flags: FlowModFlags::SEND_FLOW_REM,
        fields,
        instructions: vec![Instruction::ApplyActions(actions)],
        ..FlowMod::default()
    })
}

/// Who hears of rules that go.
fn controller(place: &Place) -> Speaker<UnixStream> {
    let stream = UnixStream::connect(place.path("run/sw0.mgmt")).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut controller = Speaker::greet(stream);
    // Callers get events when they ask for them so.
    let config = SwitchConfig { fragments: FragmentMode::Normal, miss_send_len: 128 };
    controller.send(&Message::SetConfig(config));
    controller
}

/// Puts a generation's rules in force, and says so when the barrier is answered.
fn change(controller: &mut Speaker<UnixStream>, talk: &Talk, generation: u64) {
    let command = if generation == 0 { FlowModCommand::Add } else { FlowModCommand::ModifyStrict };
    [1, 2].iter().for_each(|&from| controller.send(&rule(from, generation, command)));
    controller.ask(&Message::BarrierRequest);
    talk.generation.store(generation, SeqCst);
}

/// What the controller hears when it removes the rule of one direction, or waits until that of the other one is idle.
fn removed(controller: &mut Speaker<UnixStream>, reason: FlowRemovedReason) -> FlowRemoved {
    if reason == FlowRemovedReason::Delete {
        controller.send(&rule(1, 0, FlowModCommand::DeleteStrict));
    }
    match controller.next(|_, message| matches!(message, Message::FlowRemoved(_))) {
        Message::FlowRemoved(removed) => removed,
        other => panic!("{other:?}"),
    }
}

#[test]
fn rules_change_under_sixty_four_flows_that_leave_and_none_of_their_frames_is_lost_late_or_twice() {
    rules_change(TC);
}

#[test]
fn rules_change_under_sixty_four_flows_on_xdp_and_none_of_their_frames_is_lost_late_or_twice() {
    rules_change(XDP);
}

/// Every frame came once, in order, and by the rule in force.
#[track_caller]
fn is_whole(seen: &Seen) {
    assert_eq!(*seen, Seen { sent: seen.sent, bytes: seen.bytes, ..Seen::default() });
}

fn rules_change(under: Under) {
    if !privileged() {
        return;
    }
    let mut place = ready(under);
    steer_receive(&place);
    let mut controller = controller(&place);
    let talk = Talk::of(PAIRS);
    change(&mut controller, &talk, 0);
    let begin = Instant::now();
    let seen = std::thread::scope(|scope| {
        let under_way = talk.begin(scope, &place);
        for generation in 1..=changes() {
            until_within(PATIENCE, "half of the flows have left", || {
                up(&place, under) >= FLOWS / 2
            });
            change(&mut controller, &talk, generation);
        }
        under_way.end()
    });
    let took = begin.elapsed();
    let listed = flows(&place);
    let sum = |key: &str| listed.iter().map(|flow| flow[key].as_u64().unwrap()).sum::<u64>();
    let (ups, past) = (sum("moves"), sum("offloaded_packets"));
    let all: u64 = seen.iter().map(|seen| seen.sent).sum();
    println!(
        "{}: {all} frames, {past} past the worker, {} rule changes, {ups} times up in {:.1} s: {seen:?}",
        under.1,
        changes(),
        took.as_secs_f64()
    );
    seen.iter().for_each(is_whole);
    assert!(ups >= changes() * FLOWS as u64 / 2 && past > 0, "{ups} times up, {past} past");
    for (seen, reason) in
        seen.iter().zip([FlowRemovedReason::Delete, FlowRemovedReason::IdleTimeout])
    {
        let removed = removed(&mut controller, reason);
        let counted = (removed.reason, removed.packet_count, removed.byte_count);
        assert_eq!(counted, (reason, seen.sent, seen.bytes), "{removed:?}");
    }
    assert_eq!(seen[0].sent, BURST * seen[1].sent);
    place.suiro(&["offload", "off"]);
    place.end(Signal::TERM);
    leaves_nothing(&place);
}

#[test]
fn sixty_four_flows_outlive_kill_9_without_a_loss_and_a_purge_leaves_nothing() {
    kill(TC);
}

#[test]
fn sixty_four_flows_on_xdp_outlive_kill_9_without_a_loss_and_a_purge_leaves_nothing() {
    kill(XDP);
}

fn kill(under: Under) {
    if !privileged() {
        return;
    }
    let mut place = ready(under);
    let talk = Talk::of(PAIRS);
    let seen = std::thread::scope(|scope| {
        let under_way = talk.begin(scope, &place);
        until_within(PATIENCE, "all flows have left", || up(&place, under) == FLOWS);
        place.end(Signal::KILL);
        talk.goes_on(100);
        place.start();
        assert_eq!(up(&place, under), FLOWS, "{:?}\n{}", flows(&place), place.log());
        let past: u64 = counted(&place);
        // Two rounds were under way, and counted in part.
        talk.goes_on(102);
        assert!(counted(&place) >= past + 100 * PAIRS * (BURST + 1), "the rung counts on");
        under_way.end()
    });
    println!("{}: kill -9 under {FLOWS} flows: {seen:?}", under.1);
    seen.iter().for_each(is_whole);
    place.end(Signal::TERM);
    leaves_nothing(&place);
    // The host's own stack has the interface again.
    sh(&["ip", "-n", &place.netns, "addr", "add", "10.0.0.9/24", "dev", "g1"]);
    assert!(place.reaches("g1", "10.0.0.9"), "a program of the node is still there");
}

/// Packets past the worker.
fn counted(place: &Place) -> u64 {
    flows(place).iter().map(|flow| flow["offloaded_packets"].as_u64().unwrap()).sum()
}
