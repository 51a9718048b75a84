//! Two guests, two ports with a rung between them, and a conversation whose frames are numbered.

use crate::lab::Lab;
use api::PortKind;
use arrayvec::ArrayVec;
use flow::{
    Action, FlowMod, Instructions, Limits, Nanos, Output, Pipeline, PortAt, PortNo, PortState,
    Serials, SwitchId,
};
use offload::{Counts, Declined, Facts, FlowProgram, Handle, LimitId, Provider, Side};
use port::{OpenPort, Opener};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use std::ffi::CStr;
use std::net::UdpSocket;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use wire::{Field, Key};
use xdp::offload::{Flows, Past, Rung, RungPort, TcPort, XdpPort};

/// Frames of a burst; two are under way at a time.
pub const BURST: u64 = 8;
/// Bursts between two turns.
const PER_TURN: u64 = 4;
const PATIENCE: Duration = Duration::from_secs(10);
const TCP: u8 = 6;
pub const UDP: u8 = 17;

/// What one run came to, both directions together.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    pub lost: u64,
    /// Frames that came before an earlier one, or twice.
    pub disordered: u64,
}

/// A rung, and the ports that have it.
pub trait Under: RungPort {
    const KIND: PortKind;
    fn of(past: Past) -> Option<Arc<Self>>;
}

impl Under for TcPort {
    const KIND: PortKind = PortKind::AfPacket;
    fn of(past: Past) -> Option<Arc<Self>> {
        if let Past::Tc(port) = past { Some(port) } else { None }
    }
}

impl Under for XdpPort {
    const KIND: PortKind = PortKind::AfXdp;
    fn of(past: Past) -> Option<Arc<Self>> {
        if let Past::Xdp(port) = past { Some(port) } else { None }
    }
}

pub struct World<P: Under> {
    pub lab: Lab,
    pub rung: Rung<P>,
    pub flows: Arc<Flows>,
    pins: PathBuf,
    /// There and back.
    handles: Vec<Handle>,
    /// Times that a flow was found on the rung.
    pub ups: u64,
}

impl<P: Under> World<P> {
    pub fn new(name: &str) -> Option<Self> {
        let lab = Lab::new(name)?;
        let pins = std::env::temp_dir().join(format!("{}-pins", lab.netns("s")));
        std::fs::create_dir_all(&pins).unwrap();
        mount("bpf", &pins, "bpf", MountFlags::empty(), None::<&CStr>).unwrap();
        for (guest, host) in [("a", 1), ("b", 2)] {
            lab.veth(guest);
            lab.ip(guest, &format!("addr add 10.9.0.{host}/24 dev eth0"));
        }
        let flows = Arc::new(Flows::open(&pins.join("offload")).unwrap());
        Some(Self { lab, rung: Rung::new(flows.clone()), flows, pins, handles: Vec::new(), ups: 0 })
    }

    /// Both ports, each told to the provider.
    pub fn open(&mut self) -> [OpenPort; 2] {
        let opener = Opener::new(1);
        opener.set_flows(Some(self.flows.clone()));
        [("a", 1), ("b", 2)].map(|(guest, port)| {
            let opened = opener.open(&self.lab.spec(P::KIND, guest)).unwrap();
            let past = opened.control.past();
            let past = past.unwrap_or_else(|| panic!("no rung: {:?}", opened.facts.notes)).unwrap();
            self.rung.port_came(at(port), P::of(past).unwrap());
            opened
        })
    }

    /// A new provider that knows of nothing.
    pub fn forget(&mut self) {
        self.flows = Arc::new(Flows::open(&self.pins.join("offload")).unwrap());
        self.rung = Rung::new(self.flows.clone());
    }

    /// Takes up what is there; how many flows.
    pub fn adopt(&mut self) -> usize {
        let mut orphans = self.rung.adopt();
        orphans.sort_by_key(|orphan| orphan.from);
        self.handles = orphans.iter().map(|orphan| orphan.handle).collect();
        orphans.len()
    }

    pub fn purge(&self) {
        Flows::purge(&self.pins.join("offload")).unwrap();
        assert!(!self.pins.join("offload").exists());
    }

    /// Frames that an interface received go on at a core that hashing picks.
    pub fn steer_receive(&self) {
        for (place, interface) in [("s", "porta"), ("s", "portb"), ("a", "eth0"), ("b", "eth0")] {
            let line = format!("echo 3 > /sys/class/net/{interface}/queues/rx-0/rps_cpus");
            let status = Command::new("ip")
                .args(["netns", "exec", self.lab.netns(place), "sh", "-c", &line])
                .status();
            assert!(status.unwrap().success());
        }
    }

    fn mac(&self, guest: &str) -> u128 {
        let text = self.lab.ip(guest, "-o link show dev eth0");
        let mac = text.split("link/ether ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
        u128::from_str_radix(&mac.replace(':', ""), 16).unwrap()
    }

    /// The TCP flow from guest a's port 6000 to that port of b.
    pub fn tcp_flow(&mut self, to: u16) -> Handle {
        let program = self.program(1, TCP, [6000, to]);
        self.rung.install(&program).unwrap()
    }

    /// A flow's bits.
    pub fn key(&self, from: PortNo, proto: u8, [src, dst]: [u16; 2]) -> Key {
        let (guests, to) = if from == 1 { (["a", "b"], 2) } else { (["b", "a"], 1) };
        let mut key = Key::default();
        let address = |port: PortNo| 0x0a09_0000 | u128::from(port);
        for (field, value) in [
            (Field::InPort, from.into()),
            (Field::EthSrc, self.mac(guests[0])),
            (Field::EthDst, self.mac(guests[1])),
            (Field::EthType, 0x0800),
            (Field::IpProto, proto.into()),
            (Field::Ipv4Src, address(from)),
            (Field::Ipv4Dst, address(to)),
            (Field::TpSrc, src.into()),
            (Field::TpDst, dst.into()),
        ] {
            key.set(field, value);
        }
        key
    }

    /// From here on, turns are of this flow.
    pub fn hold(&mut self, handle: Handle) {
        self.handles = vec![handle];
    }

    fn program(&self, from: PortNo, proto: u8, ports: [u16; 2]) -> FlowProgram {
        let (key, to) = (self.key(from, proto, ports), 3 - from);
        let mut pipeline = Pipeline::new(Limits::default(), &Serials::default());
        pipeline.set_ports((1..=2).map(PortState::up).collect());
        let apply = vec![Action::Output(Output::Port(to))];
        let instructions = Instructions { apply, ..Instructions::default() };
        let rule = FlowMod { table: Some(0), instructions, ..FlowMod::default() };
        pipeline.flow_mod(&rule, Nanos(0)).unwrap();
        let resolved = pipeline.snapshot().resolve(&key, &offload::known(&key), Nanos(0));
        FlowProgram::of(at(from), &key, &resolved, &Plain).unwrap()
    }

    /// The flows of the conversation, installed once.
    fn conversation(&mut self) {
        if self.handles.is_empty() {
            let programs = [self.program(1, UDP, [7001, 7000]), self.program(2, UDP, [7000, 7001])];
            self.handles =
                programs.iter().map(|program| self.rung.install(program).unwrap()).collect();
        }
    }

    /// What is up goes down; what is down goes up, or waits for that.
    pub fn turn(&mut self) {
        for &handle in &self.handles.clone() {
            let is_up = self.rung.side(handle) == Side::Rung;
            self.ups += u64::from(is_up);
            self.rung.want(handle, if is_up { Side::Worker } else { Side::Rung }).unwrap();
        }
    }

    /// All go up.
    pub fn rise(&mut self) {
        for &handle in &self.handles.clone() {
            if self.rung.side(handle) == Side::Worker {
                self.rung.want(handle, Side::Rung).unwrap();
            }
        }
    }

    pub fn are_up(&mut self) -> bool {
        self.handles.clone().iter().all(|&handle| self.rung.side(handle) == Side::Rung)
    }

    pub fn claim_done(&self) {
        self.handles.iter().for_each(|&handle| self.rung.claim_done(handle));
    }

    pub fn counts(&mut self) -> Vec<Counts> {
        let mut counts = Vec::new();
        self.rung.read(&mut counts, usize::MAX);
        counts.sort_by_key(|(handle, _)| self.handles.iter().position(|known| known == handle));
        counts.into_iter().map(|(_, counts)| counts).collect()
    }
}

impl<P: Under> Drop for World<P> {
    fn drop(&mut self) {
        let _ = Flows::purge(&self.pins.join("offload"));
        let _ = unmount(&self.pins, UnmountFlags::DETACH);
        let _ = std::fs::remove_dir(&self.pins);
    }
}

pub fn at(port: PortNo) -> PortAt {
    PortAt { switch: SwitchId(1), port }
}

/// Ports of 1500 bytes, no meters.
struct Plain;

impl Facts for Plain {
    fn mtu(&self, _: PortNo) -> Result<u32, Declined> {
        Ok(1500)
    }

    fn limits(&self, _: u32, _: &mut ArrayVec<LimitId, 4>) -> Result<(), Declined> {
        Ok(())
    }
}

/// Guest a sends bursts, b answers each with one frame; two bursts are under way. `turn` comes now and then.
pub fn played<P: Under>(
    world: &mut World<P>,
    bursts: u64,
    turn: impl Fn(&mut World<P>) + Send,
) -> Seen {
    world.conversation();
    thread::scope(|scope| {
        let (ready, listening) = std::sync::mpsc::channel();
        let echo = world.lab.inside(scope, "b", move || {
            let socket = bound("10.9.0.2:7000", "10.9.0.1:7001");
            ready.send(()).unwrap();
            let mut numbers = Numbers::default();
            for burst in 0..bursts {
                (0..BURST).for_each(|_| numbers.take(&socket));
                socket.send(&burst.to_be_bytes()).unwrap();
            }
            numbers.seen(bursts * BURST)
        });
        listening.recv().unwrap();
        let name = world.lab.netns("a").to_owned();
        let source = scope.spawn(move || {
            let socket = inside(&name, || bound("10.9.0.1:7001", "10.9.0.2:7000"));
            let mut answers = Numbers::default();
            for burst in 0..bursts {
                for at in 0..BURST {
                    socket.send(&(burst * BURST + at).to_be_bytes()).unwrap();
                }
                if burst % PER_TURN == 0 {
                    turn(world);
                }
                if burst > 0 {
                    answers.take(&socket);
                }
            }
            answers.take(&socket);
            answers.seen(bursts)
        });
        let (there, back) = (echo.join().unwrap(), source.join().unwrap());
        Seen { lost: there.lost + back.lost, disordered: there.disordered + back.disordered }
    })
}

/// Numbers as they come.
#[derive(Default)]
struct Numbers {
    came: Vec<u64>,
}

impl Numbers {
    /// The next, if one comes.
    fn take(&mut self, socket: &UdpSocket) {
        let mut bytes = [0; 8];
        if socket.recv(&mut bytes).is_ok() {
            self.came.push(u64::from_be_bytes(bytes));
        }
    }

    fn seen(self, sent: u64) -> Seen {
        let disordered = self.came.windows(2).filter(|pair| pair[1] <= pair[0]).count() as u64;
        let mut came = self.came;
        came.sort_unstable();
        came.dedup();
        Seen { lost: sent - came.len() as u64, disordered }
    }
}

pub fn bound(here: &str, there: &str) -> UdpSocket {
    let socket = UdpSocket::bind(here).unwrap();
    socket.connect(there).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

pub fn inside<R: Send>(netns: &str, work: impl FnOnce() -> R + Send) -> R {
    use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
    use std::os::fd::AsFd;
    let file = std::fs::File::open(format!("/run/netns/{netns}")).unwrap();
    thread::scope(|scope| {
        let enter = || {
            move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
            work()
        };
        scope.spawn(enter).join().unwrap()
    })
}
