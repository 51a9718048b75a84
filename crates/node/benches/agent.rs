//! What an OpenFlow connection carries, over a unix socket, with one client: flow-mods per second (added, replaced, deleted, with one
//! barrier at the end), packet-ins per second, and the time of a dump. The datapath does nothing here, so this is the cost of
//! the agent, the codec and the tables' control side.
//!
//! `cargo bench -p suiro-node --bench agent [-- FLOWS [SOCKET]]`; SOCKET is the management socket of another switch (Open
//! vSwitch's `br0.mgmt`) to measure with the same client instead. `-- serve SOCKET` serves until it is killed.

use api::FailMode;
use datapath::{HeldFrame, PortCounters, Punt, QueueCounters, SwitchId};
use flow::{Limits, Nanos, PacketIn, PacketInReason, PortNo, Serials, Snapshot};
use node::agent::{Agent, Endpoints, Timing};
use node::feed::Feed;
use node::hits::Hits;
use node::journal::Discard;
use node::switch::{Emission, NewSwitch, Plane, Switch};
use openflow::{
    Action, FlowMod, FlowModCommand, FlowStatsRequest, FragmentMode, Hello, Instruction, Match,
    Message, MultipartRequest, OxmField, Part, SwitchConfig, Version, VersionSet, next_frame,
};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Rounds of each measurement; the median is printed.
const ROUNDS: usize = 5;

/// A datapath that does nothing.
struct Nothing(Instant);

impl Plane for Nothing {
    fn now(&self) -> Nanos {
        Nanos(self.0.elapsed().as_nanos() as u64)
    }

    fn publish(&self, _: Arc<Snapshot>) {}

    fn settle(&self) {}
    fn keep_frames(&self, _: bool) {}
    fn packet_out(&self, _: Emission) {}

    fn port_counters(&self, _: PortNo) -> PortCounters {
        PortCounters::default()
    }

    fn queue_counters(&self, _: PortNo) -> Vec<QueueCounters> {
        Vec::new()
    }

    fn set_port_admin(&self, _: PortNo, _: bool) {}
}

/// A client that sends whole buffers and waits for one answer.
struct Client {
    stream: UnixStream,
    input: Vec<u8>,
    /// Everything before is consumed.
    at: usize,
}

impl Client {
    fn connect(socket: &Path) -> Self {
        let stream = UnixStream::connect(socket).expect("the management socket is served");
        let mut client = Self { stream, input: Vec::new(), at: 0 };
        let hello = Message::Hello(Hello { versions: Some(VersionSet::of(Version::ALL)) });
        client.send(&encode(&hello, 1));
        client.until(|_, kind| kind == 0);
        client
    }

    fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("the switch reads");
    }

    /// Sends from a thread of its own, as the answers may fill the socket, and waits for the barrier's reply.
    fn send_and_wait(&mut self, bytes: &[u8]) -> Duration {
        let begin = Instant::now();
        let mut sender = self.stream.try_clone().expect("a socket can be cloned");
        std::thread::scope(|scope| {
            scope.spawn(move || {
                sender.write_all(bytes).expect("the switch reads");
                sender
                    .write_all(&encode(&Message::BarrierRequest, BARRIER))
                    .expect("the switch reads");
            });
            let seen = self.until(|xid, kind| xid == BARRIER && kind == 21);
            assert_eq!(seen.errors, 0, "no request is refused");
        });
        begin.elapsed()
    }

    /// Reads until a message of this transaction and type; counts what it sees.
    fn until(&mut self, last: impl Fn(u32, u8) -> bool) -> Seen {
        let mut seen = Seen::default();
        loop {
            while let Some(frame) =
                next_frame(&self.input[self.at..]).expect("the switch sends OpenFlow")
            {
                let (kind, xid) =
                    (frame[1], u32::from_be_bytes([frame[4], frame[5], frame[6], frame[7]]));
                self.at += frame.len();
                seen.errors += usize::from(kind == 1);
                seen.packet_ins += usize::from(kind == 10);
                if last(xid, kind) {
                    return seen;
                }
            }
            self.fill();
        }
    }

    fn fill(&mut self) {
        self.input.drain(..self.at);
        self.at = 0;
        let before = self.input.len();
        self.input.resize(before + 256 * 1024, 0);
        let count = self.stream.read(&mut self.input[before..]).expect("the switch sends");
        assert!(count > 0, "the switch closed the connection");
        self.input.truncate(before + count);
    }
}

/// Transaction of the barrier that ends a measurement.
const BARRIER: u32 = 0x7fff_ffff;

#[derive(Default)]
struct Seen {
    errors: usize,
    packet_ins: usize,
}

fn encode(message: &Message, xid: u32) -> Vec<u8> {
    message.encode(Version::V1_3, xid).expect("a short message")
}

fn flow_mods(count: u32, command: FlowModCommand) -> Vec<u8> {
    let change = |at: u32| FlowMod {
        command,
        priority: 100,
        cookie: at.into(),
        fields: Match::default()
            .with(OxmField::EthType, 0x0800)
            .with(OxmField::Ipv4Dst, (0x0a00_0000 + at).into()),
        instructions: vec![Instruction::ApplyActions(vec![Action::output(openflow::PortNo(1))])],
        ..FlowMod::default()
    };
    (0..count).flat_map(|at| encode(&Message::FlowMod(change(at)), at)).collect()
}

fn report(what: &str, mut values: Vec<f64>, unit: &str) {
    values.sort_by(f64::total_cmp);
    println!(
        "{what:<28} {:>12.0} {unit}   ({:.0} to {:.0})",
        values[ROUNDS / 2],
        values[0],
        values[ROUNDS - 1]
    );
}

fn measure_flow_mods(client: &mut Client, count: u32) {
    let (adds, deletes) =
        (flow_mods(count, FlowModCommand::Add), flow_mods(count, FlowModCommand::DeleteStrict));
    let rate = |elapsed: Duration| f64::from(count) / elapsed.as_secs_f64();
    let mut rates: [Vec<f64>; 3] = Default::default();
    for _ in 0..ROUNDS {
        for (rates, bytes) in rates.iter_mut().zip([&adds, &adds, &deletes]) {
            rates.push(rate(client.send_and_wait(bytes)));
        }
    }
    for (what, rates) in
        ["flow-mods added", "flow-mods replaced", "flow-mods deleted"].into_iter().zip(rates)
    {
        report(what, rates, "/s");
    }
}

fn measure_dump(client: &mut Client, count: u32) {
    client.send_and_wait(&flow_mods(count, FlowModCommand::Add));
    let request =
        Message::MultipartRequest(Part::last(MultipartRequest::Flow(FlowStatsRequest::default())));
    let times = (0..ROUNDS)
        .map(|_| client.send_and_wait(&encode(&request, 5)).as_secs_f64() * 1e3)
        .collect();
    report(&format!("dump of {count} flows"), times, "ms");
    let everything = FlowMod {
        command: FlowModCommand::Delete,
        table: openflow::TableId::ALL,
        ..FlowMod::default()
    };
    client.send_and_wait(&encode(&Message::FlowMod(everything), 6));
}

/// Events handed to the switch as fast as the peer takes them; those that it loses do not count.
fn measure_packet_ins(client: &mut Client, switch: &Switch) {
    const EVENTS: usize = 200_000;
    let listen =
        Message::SetConfig(SwitchConfig { fragments: FragmentMode::Normal, miss_send_len: 0xffff });
    client.send_and_wait(&encode(&listen, 7));
    let why = PacketIn { reason: PacketInReason::NoMatch, table: 0, cookie: 0, max_len: 0xffff };
    let punt = Punt {
        switch: SwitchId(1),
        in_port: 1,
        frame: HeldFrame::complete(vec![0; 64]),
        total_len: 64,
        why,
        metadata: 0,
        tunnel_id: 0,
        tun_src: 0,
        tun_dst: 0,
    };
    let mut rates = Vec::new();
    for _ in 0..ROUNDS {
        let begin = Instant::now();
        let got = std::thread::scope(|scope| {
            let tell = |_| switch.on_packet_in(punt.clone()).map_or((), drop);
            scope.spawn(move || (0..EVENTS).for_each(tell));
            let mut got = 0;
            while got < EVENTS - lost(switch) {
                client.fill();
                got += whole_packet_ins(client);
            }
            got
        });
        rates.push(got as f64 / begin.elapsed().as_secs_f64());
        FORGIVEN.store(lost_ever(switch), std::sync::atomic::Ordering::Relaxed);
    }
    report("packet-ins delivered", rates, "/s");
}

/// Losses before the round.
static FORGIVEN: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);

fn lost_ever(switch: &Switch) -> u64 {
    switch.connections().iter().map(|connection| connection.lost_packet_ins).sum()
}

fn lost(switch: &Switch) -> usize {
    (lost_ever(switch) - FORGIVEN.load(std::sync::atomic::Ordering::Relaxed)) as usize
}

fn whole_packet_ins(client: &mut Client) -> usize {
    let mut count = 0;
    while let Some(frame) =
        next_frame(&client.input[client.at..]).expect("the switch sends OpenFlow")
    {
        client.at += frame.len();
        count += usize::from(frame[1] == 10);
    }
    count
}

fn serve(socket: &Path) -> (tokio::runtime::Runtime, Arc<Switch>, Agent) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    let new = NewSwitch {
        name: "bench".into(),
        datapath_id: 1,
        fail_mode: FailMode::Secure,
        miss_send_len: 128,
        limits: Limits::default(),
        serials: Serials::default(),
        ends: Arc::default(),
        budget: Arc::default(),
        room: Arc::default(),
        feed: Feed::default(),
        hits: Hits::default(),
    };
    let switch = Switch::new(new, Arc::new(Discard), |_| Arc::new(Nothing(Instant::now())));
    runtime.spawn(switch.clone().keep_published());
    let endpoints = Endpoints { management: Some(socket.into()), ..Endpoints::default() };
    let agent = runtime
        .block_on(async { Agent::start(switch.clone(), &endpoints, Timing::default()).await });
    (runtime, switch, agent.expect("the socket can be bound"))
}

fn main() {
    // Cargo hands `--bench` on; everything else is ours.
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    if let [verb, socket] = &arguments[..]
        && verb == "serve"
    {
        let _served = serve(Path::new(socket));
        loop {
            std::thread::park();
        }
    }
    let count =
        arguments.first().map_or(100_000, |count| count.parse().expect("a number of flows"));
    match arguments.get(1) {
        Some(other) => {
            let mut client = Client::connect(Path::new(other));
            measure_flow_mods(&mut client, count);
            measure_dump(&mut client, count);
        }
        None => {
            let socket = PathBuf::from(format!("/tmp/suiro-bench-{}.mgmt", std::process::id()));
            let (_runtime, switch, _agent) = serve(&socket);
            let mut client = Client::connect(&socket);
            measure_flow_mods(&mut client, count);
            measure_dump(&mut client, count);
            measure_packet_ins(&mut client, &switch);
        }
    }
}
