//! Beginning, death and end: what stays, what is adopted, what is left.

use crate::lab::{HERE, Lab, enter, inside, options, pin, two_cores};
use aya::maps::loaded_maps;
use aya::programs::links::{FdLink, PinnedLink};
use aya::programs::{ProgramInfo, XdpMode, loaded_programs};
use place::CoreId;
use place::steering::{Field, Target, Unmatched, Urgency};
use rustix::net::sockopt::set_socket_recv_buffer_size_force;
use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use testbed::unbroken;
use xdp::WorkerStage;
use xdp::steer::{Attached, Entry, Host, Interface, Match, Options, SteerError};

/// All UDP to that core.
fn all_udp(core: u16) -> Entry {
    let matching = Match::fields(1, [(Field::NwProto, 17, 0xff)]);
    Entry {
        matching,
        target: Target::Core(CoreId(core)),
        is_priority: false,
        wants_own_core: false,
        vm: None,
    }
}

/// Sends datagrams from core 0 of the far end to a socket of the near end that has room for all; how many came.
fn send(lab: &Lab, count: usize) -> usize {
    let (near, far) = (lab.netns("near"), lab.netns("far"));
    inside(&near, || {
        let receiver = UdpSocket::bind((HERE, 0)).expect("the kernel obliges");
        set_socket_recv_buffer_size_force(&receiver, 64 << 20).expect("root may");
        receiver.set_read_timeout(Some(Duration::from_secs(5))).expect("the kernel obliges");
        let port = receiver.local_addr().expect("the kernel obliges").port();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                enter(&far);
                pin(0);
                let sender = UdpSocket::bind("10.9.0.2:0").expect("the kernel obliges");
                (0..count).for_each(|_| {
                    assert_eq!(
                        sender.send_to(&[7; 64], (HERE, port)).expect("the kernel obliges"),
                        64
                    )
                });
            });
            let mut buffer = [0; 128];
            (0..count)
                .take_while(|_| unbroken(|| receiver.recv(&mut buffer)).is_ok_and(|len| len == 64))
                .count()
        })
    })
}

/// Frames that each core's stack had.
fn by_core(attached: &Attached) -> Vec<u64> {
    attached
        .core_counts()
        .expect("the kernel obliges")
        .iter()
        .map(|(_, core)| core.processed.frames)
        .collect()
}

#[test]
fn frames_are_processed_on_the_core_of_their_entry() {
    let Some(mut lab) = Lab::new("cores") else { return };
    let attached = &mut lab.attach(&Options { unmatched: Unmatched::Stay, ..options() });
    let unit = attached.insert(&[all_udp(1)]).unwrap()[0];
    attached.settle_now().unwrap();
    let before = by_core(attached);
    assert_eq!(send(&lab, 200), 200);
    let after = by_core(attached);
    assert!(after[1] - before[1] >= 200, "{before:?} {after:?}");
    let unit = attached.unit(unit).unwrap();
    assert_eq!((unit.frames, unit.in_flight, unit.core), (200, 0, Some(CoreId(1))));
}

#[test]
fn a_driver_without_xdp_is_refused_and_left_as_it_was() {
    let Some(mut lab) = Lab::new("driver") else { return };
    lab.ip("near", "link add none type bridge");
    let (netns, interface) = (lab.netns("near"), lab.interface_of("none"));
    let host = lab.host();
    let refused = inside(&netns, || Attached::attach(host, &interface, &options()));
    let refused = refused.map(drop);
    assert!(matches!(refused, Err(SteerError::Refused { .. })), "{refused:?}");
    assert!(lab.host().interfaces().is_empty());
    assert!(!lab.ip("near", "link show dev none").contains("xdp"));
}

#[test]
fn where_time_goes_is_known_by_core_and_stage() {
    let Some(mut lab) = Lab::new("times") else { return };
    let attached = &mut lab.attach(&Options { unmatched: Unmatched::Stay, ..options() });
    attached.insert(&[all_udp(1)]).unwrap();
    attached.settle_now().unwrap();
    let before = lab.host().times();
    assert_eq!(send(&lab, 1500), 1500);
    let after = lab.host().times();
    let spent = |core: usize, stage| after[core].1.stage(stage) - before[core].1.stage(stage);
    assert!(spent(0, place::Stage::Driver) > 0, "the driver's part is on core 0");
    assert!(spent(1, place::Stage::Packet) > 0, "the packets' part is on core 1");
    for ((_, before), (_, after)) in before.iter().zip(&after) {
        let loads = after.loads_since(before);
        let window = after.at_ns - before.at_ns;
        let idle = (after.idle() - before.idle()) as f64 / window as f64;
        let busy = f64::from(loads.total().as_ppm()) / 1e6;
        assert!((idle + busy - 1.0).abs() < 0.02, "idle {idle} and busy {busy} are all there is");
    }
}

#[test]
fn another_program_is_refused_by_name_and_left_alone() {
    let Some(mut lab) = Lab::new("refused") else { return };
    let (netns, interface) = (lab.netns("near"), lab.interface());
    let mut other = WorkerStage::new().unwrap();
    inside(&netns, || {
        let program = other.program().unwrap();
        program.attach_to_if_index(interface.index, XdpMode::Driver).map(drop)
    })
    .unwrap();
    let host = lab.host();
    let refused = inside(&netns, || Attached::attach(host, &interface, &options()));
    let Err(SteerError::Occupied { program, .. }) = refused else { panic!("{:?}", refused.err()) };
    assert_eq!(program.as_deref(), Some("suiro_worker"));
    assert!(lab.host().interfaces().is_empty());
    assert!(lab.ip("near", "link show dev eth0").contains("xdp"));
    drop(other);
    let attached = lab.attach(&options());
    let host = lab.host();
    let twice = inside(&netns, || Attached::attach(host, &interface, &options()));
    assert!(matches!(twice, Err(SteerError::Steered { .. })));
    assert!(inside(&netns, || attached.is_alive()));
}

/// The part of the next test that is killed; does nothing unless asked by it.
#[test]
fn owner_to_be_killed() {
    let (Some(root), Some(index)) =
        (std::env::var_os("SUIRO_TEST_ROOT"), std::env::var("SUIRO_TEST_INDEX").ok())
    else {
        return;
    };
    let mut host = Host::open(&PathBuf::from(root)).unwrap();
    let interface = Interface { name: "eth0".into(), index: index.parse().unwrap() };
    let mut attached = Attached::attach(
        &mut host,
        &interface,
        &Options { unmatched: Unmatched::Stay, ..options() },
    )
    .unwrap();
    attached.insert(&[all_udp(1)]).unwrap();
    attached.settle_now().unwrap();
    attached.set_cores(&mut host, &two_cores()).unwrap();
    println!("ready");
    loop {
        std::thread::park();
    }
}

#[test]
fn a_killed_owner_changes_nothing_and_the_next_one_goes_on() {
    let Some(mut lab) = Lab::new("killed") else { return };
    // The child is to start what is shared, too.
    assert!(lab.host.take().unwrap().remove_if_unused().unwrap());
    let index = lab.interface().index.to_string();
    let me = std::env::current_exe().unwrap();
    let mut child = Command::new("ip")
        .args(["netns", "exec", &lab.netns("near")])
        // `ip netns exec` has a mount namespace of its own, but sees the pins.
        .arg(me)
        .args(["--exact", "life::owner_to_be_killed", "--nocapture"])
        .env("SUIRO_TEST_ROOT", lab.root())
        .env("SUIRO_TEST_INDEX", index)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("ready")));
    child.kill().unwrap();
    child.wait().unwrap();
    lab.host = Some(Host::open(&lab.root()).unwrap());
    assert_eq!(lab.host().interfaces(), ["eth0"]);
    let mut attached = Attached::adopt(lab.host(), "eth0").unwrap();
    assert_eq!(send(&lab, 100), 100);
    let entries = attached.entries();
    // The core may have had frames of the namespace's own, too.
    assert!(by_core(&attached)[1] >= 100);
    assert_eq!(attached.unit(entries[0].0).unwrap().frames, 100);
    assert_eq!(entries.iter().map(|(_, entry)| *entry).collect::<Vec<_>>(), [all_udp(1)]);
    assert_eq!(attached.options().unwrap(), Options { unmatched: Unmatched::Stay, ..options() });
    // The new owner moves what the old one placed.
    attached.settle().unwrap();
    attached.want(entries[0].0, CoreId(0), place::Reason::Overload, Urgency::WhenDrained);
    assert_eq!(send(&lab, 100), 100);
    assert_eq!(attached.unit(entries[0].0).unwrap().core, Some(CoreId(0)));
}

#[test]
fn detaching_leaves_nothing() {
    let Some(mut lab) = Lab::new("nothing") else { return };
    let attached = lab.attach(&options());
    assert_eq!(send(&lab, 10), 10);
    let held = ours(&lab);
    assert!(held.len() > 8 + 15, "eight programs and their maps: {held:?}");
    assert!(lab.ip("near", "link show dev eth0").contains("xdp"));
    attached.detach(lab.host()).unwrap();
    assert!(!lab.ip("near", "link show dev eth0").contains("xdp"));
    assert!(lab.host.take().unwrap().remove_if_unused().unwrap());
    assert!(!lab.root().exists());
    assert!(!lab.root().parent().unwrap().exists());
    // The kernel frees what nobody holds when its readers have passed.
    let is_there = |kind: &str, id: u32| match kind {
        "map" => loaded_maps().flatten().any(|map| map.id() == id),
        _ => loaded_programs().flatten().any(|program| program.id() == id),
    };
    let deadline = Instant::now() + Duration::from_secs(20);
    for (kind, id) in held {
        while is_there(kind, id) {
            assert!(Instant::now() < deadline, "{kind} {id} is still in the kernel");
            std::thread::yield_now();
        }
    }
}

/// Programs that are pinned or that pinned links hold, and their maps.
fn ours(lab: &Lab) -> Vec<(&'static str, u32)> {
    let pins = |directory: &str, names: &[&str]| -> Vec<PathBuf> {
        names.iter().map(|name| lab.root().join(directory).join(name)).collect()
    };
    let links = pins("host", &["raise", "enter", "exit", "batch", "link"]);
    let of_link = |path: &PathBuf| {
        FdLink::from(PinnedLink::from_pin(path).expect("the kernel obliges"))
            .info()
            .expect("the kernel obliges")
            .program_id()
    };
    let links = links.into_iter().chain(pins("interfaces/eth0", &["link"]));
    let traced: Vec<_> = links.map(|link| of_link(&link)).collect();
    let programs = pins("interfaces/eth0", &["steer", "arrive"]);
    let pinned =
        programs.iter().map(|path| ProgramInfo::from_pin(path).expect("the kernel obliges").id());
    let mut held = Vec::new();
    for id in traced.into_iter().chain(pinned) {
        held.push(("program", id));
        let info = loaded_programs()
            .flatten()
            .find(|program| program.id() == id)
            .expect("the kernel obliges");
        held.extend(
            info.map_ids()
                .expect("the kernel obliges")
                .unwrap_or_default()
                .into_iter()
                .map(|id| ("map", id)),
        );
    }
    held
}
