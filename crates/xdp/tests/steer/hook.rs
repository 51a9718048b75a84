//! Steering and an `af_xdp` port on one interface. The port's worker stage has no sockets here: what comes to it is dropped and counted.

use crate::lab::{HERE, Lab, enter, inside, options};
use aya::programs::{ProgramInfo, TestRun, TestRunOptions, Xdp, loaded_programs};
use aya_obj::programs::XdpAttachType;
use place::CoreId;
use place::steering::{Field, Target, Unmatched};
use std::io::{BufRead, BufReader, ErrorKind};
use std::net::UdpSocket;
use std::process::{Command, Stdio};
use std::time::Duration;
use xdp::steer::{Attached, Entry, Match, Options, SteerError, places_missed};
use xdp::{Hook, HookError, Mode, Stage, Verdict, Worker, WorkerStage};

/// The port that a rule names, and one that none does.
const NAMED: u16 = 7022;
const UNNAMED: u16 = 7080;
const XDP_DROP: u32 = 1;
const XDP_PASS: u32 = 2;

fn stay() -> Options {
    Options { unmatched: Unmatched::Stay, ..options() }
}

/// Leaves [`NAMED`] to the host's stack.
fn keep_named(attached: &mut Attached) {
    let udp_to = [(Field::NwProto, 17, 0xff), (Field::TpDst, NAMED.into(), 0xffff)];
    let entry = Entry {
        matching: Match::fields(1, udp_to),
        target: Target::Core(CoreId(0)),
        is_priority: false,
        wants_own_core: false,
        vm: None,
    };
    attached.insert(&[entry]).expect("room");
    attached.settle_now().expect("the kernel obliges");
}

fn port(lab: &Lab, mode: Mode) -> Result<Worker, HookError> {
    let index = lab.interface().index;
    inside(&lab.netns("near"), || WorkerStage::new()?.attach(index, mode))
}

fn dropped(worker: &Worker) -> u64 {
    let counts = worker.counts().expect("the kernel obliges");
    counts
        .into_iter()
        .find(|(verdict, _)| *verdict == Verdict::NoSocket)
        .expect("it is counted")
        .1
        .frames
}

/// Whether a datagram of the far end comes to the host's socket at that port.
fn arrives(lab: &Lab, port: u16) -> bool {
    let far = lab.netns("far");
    inside(&lab.netns("near"), || {
        let receiver = UdpSocket::bind((HERE, port)).expect("the port is free");
        receiver.set_read_timeout(Some(Duration::from_millis(300))).expect("the kernel obliges");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                enter(&far);
                let sender = UdpSocket::bind("10.9.0.2:0").expect("the kernel obliges");
                sender.send_to(&[7; 64], (HERE, port)).expect("the kernel obliges");
            });
        });
        match receiver.recv(&mut [0; 128]) {
            Ok(len) => len == 64,
            Err(error) if error.kind() == ErrorKind::WouldBlock => false,
            Err(error) => panic!("{error}"),
        }
    })
}

/// Both ends know each other for ever: what asks is no datagram, and the port's.
fn introduce(lab: &Lab) {
    for (place, other, host) in [("near", "far", 2), ("far", "near", 1)] {
        let shown = lab.ip(other, "-o link show dev eth0");
        let mac = shown.split("link/ether ").nth(1).expect("a MAC address");
        let mac = mac.split(' ').next().expect("a MAC address");
        lab.ip(place, &format!("neigh replace 10.9.0.{host} lladdr {mac} dev eth0 nud permanent"));
    }
}

fn has_xdp(lab: &Lab) -> bool {
    lab.ip("near", "link show dev eth0").contains("xdp")
}

fn taken(lab: &Lab) -> Vec<Stage> {
    let index = lab.interface().index;
    inside(&lab.netns("near"), || Hook::taken(index)).expect("the hook is ours")
}

#[test]
fn a_rule_takes_a_frame_to_the_host_and_all_others_are_the_ports_whoever_came_first() {
    for port_first in [true, false] {
        let Some(mut lab) = Lab::new(&format!("both-{port_first}")) else { return };
        introduce(&lab);
        let (mut attached, worker);
        if port_first {
            worker = port(&lab, Mode::Native).unwrap();
            attached = lab.attach(&stay());
        } else {
            attached = lab.attach(&stay());
            worker = port(&lab, Mode::Native).unwrap();
        }
        keep_named(&mut attached);
        assert_eq!(taken(&lab), [Stage::Steer, Stage::Worker]);
        let before = dropped(&worker);
        assert!(arrives(&lab, NAMED));
        assert_eq!(dropped(&worker), before, "a frame of the rule never met the port");
        assert!(!arrives(&lab, UNNAMED));
        assert_eq!(dropped(&worker), before + 1);
        if port_first {
            drop(worker);
            assert!(arrives(&lab, UNNAMED), "without the port it is the host's");
            attached.detach(lab.host()).unwrap();
        } else {
            attached.detach(lab.host()).unwrap();
            assert!(!arrives(&lab, NAMED), "without steering all is the port's");
            assert_eq!(taken(&lab), [Stage::Worker]);
            drop(worker);
        }
        assert!(!has_xdp(&lab), "nothing is left");
        assert!(lab.host.take().unwrap().remove_if_unused().unwrap());
        assert!(!lab.root().exists());
    }
}

#[test]
fn frames_that_no_rule_names_are_not_placed_where_they_are_a_ports() {
    let Some(mut lab) = Lab::new("place") else { return };
    let (netns, interface) = (lab.netns("near"), lab.interface());
    let worker = port(&lab, Mode::Native).unwrap();
    for placing in [options(), Options { is_fcf: true, ..stay() }] {
        let host = lab.host();
        let refused = inside(&netns, || Attached::attach(host, &interface, &placing)).map(drop);
        assert!(matches!(refused, Err(SteerError::OfPort { .. })), "{refused:?}");
    }
    drop(worker);
    let attached = lab.attach(&options());
    assert!(inside(&netns, || places_missed(interface.index)).unwrap());
    attached.detach(lab.host()).unwrap();
    let attached = lab.attach(&stay());
    assert!(!inside(&netns, || places_missed(interface.index)).unwrap());
    attached.detach(lab.host()).unwrap();
    assert!(!has_xdp(&lab));
}

#[test]
fn a_generic_hook_is_not_steered_and_a_native_one_takes_no_generic_port() {
    let Some(mut lab) = Lab::new("generic") else { return };
    let (netns, interface) = (lab.netns("near"), lab.interface());
    let worker = port(&lab, Mode::Generic).unwrap();
    let host = lab.host();
    let refused = inside(&netns, || Attached::attach(host, &interface, &stay())).map(drop);
    assert!(matches!(refused, Err(SteerError::Generic { .. })), "{refused:?}");
    drop(worker);
    assert!(!has_xdp(&lab));
    let attached = lab.attach(&stay());
    let refused = port(&lab, Mode::Generic).map(drop);
    assert!(matches!(refused, Err(HookError::OtherMode { .. })), "{refused:?}");
    attached.detach(lab.host()).unwrap();
}

#[test]
fn a_frame_that_no_stage_takes_passes_and_one_of_the_worker_stage_does_not() {
    let Some(lab) = Lab::new("stages") else { return };
    let verdict = || {
        let shown = lab.ip("near", "-d link show dev eth0");
        let id = shown.split("prog/xdp id ").nth(1).expect("a program");
        let id: u32 = id.split(' ').next().and_then(|id| id.parse().ok()).expect("its number");
        let info: ProgramInfo = loaded_programs().flatten().find(|info| info.id() == id).unwrap();
        assert_eq!(info.name_as_str(), Some("suiro_hook"));
        let hook =
            Xdp::from_program_info(info, "suiro_hook".into(), XdpAttachType::Interface).unwrap();
        let frame = [0_u8; 60];
        let options = TestRunOptions { data_in: Some(&frame), ..TestRunOptions::new() };
        hook.test_run(options).unwrap().return_value
    };
    let index = lab.interface().index;
    let bare = inside(&lab.netns("near"), || Hook::on(index, Mode::Native)).unwrap();
    assert_eq!(verdict(), XDP_PASS);
    let worker = port(&lab, Mode::Native).unwrap();
    assert_eq!(verdict(), XDP_DROP);
    drop(bare);
    drop(worker);
    assert!(!has_xdp(&lab), "the last one takes the hook away");
}

/// The part of the next test that is killed; does nothing unless asked by it.
#[test]
fn port_to_be_killed() {
    let Ok(index) = std::env::var("SUIRO_TEST_PORT") else { return };
    let stage = WorkerStage::new().unwrap();
    let _worker = stage.attach(index.parse().unwrap(), Mode::Native).unwrap();
    println!("ready");
    loop {
        std::thread::park();
    }
}

#[test]
fn a_killed_port_beside_steering_leaves_its_frames_to_nobody_and_the_next_one_takes_over() {
    let Some(mut lab) = Lab::new("orphan") else { return };
    introduce(&lab);
    let kill = |lab: &Lab| {
        let me = std::env::current_exe().unwrap();
        let mut child = Command::new("ip")
            .args(["netns", "exec", &lab.netns("near")])
            .arg(me)
            .args(["--exact", "hook::port_to_be_killed", "--nocapture"])
            .env("SUIRO_TEST_PORT", lab.interface().index.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().contains("ready")));
        child.kill().unwrap();
        child.wait().unwrap();
    };
    kill(&lab);
    assert!(!has_xdp(&lab), "alone on the hook it ends with its process");
    let mut attached = lab.attach(&stay());
    keep_named(&mut attached);
    kill(&lab);
    assert!(arrives(&lab, NAMED));
    assert!(!arrives(&lab, UNNAMED), "it belongs to the switch");
    let index = lab.interface().index;
    let orphan = inside(&lab.netns("near"), || Hook::orphan(index)).unwrap();
    assert!(orphan.is_some(), "no socket is behind it");
    let worker = port(&lab, Mode::Native).unwrap();
    assert!(!arrives(&lab, UNNAMED));
    assert_eq!(dropped(&worker), 1);
    inside(&lab.netns("near"), || Hook::free_orphan(index, orphan.unwrap())).unwrap();
    assert_eq!(taken(&lab), [Stage::Steer, Stage::Worker], "another program has the stage by now");
    drop(worker);
    assert!(arrives(&lab, UNNAMED));
    kill(&lab);
    let orphan = inside(&lab.netns("near"), || Hook::orphan(index)).unwrap().unwrap();
    inside(&lab.netns("near"), || Hook::free_orphan(index, orphan)).unwrap();
    assert!(arrives(&lab, UNNAMED), "given back to the host");
    attached.detach(lab.host()).unwrap();
    assert!(!has_xdp(&lab));
}
