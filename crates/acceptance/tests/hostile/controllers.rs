//! Controllers that hurt: one that floods, one that asks and never reads, a million echo requests, sixty-four at once. Meanwhile two guests
//! of the switch `quiet` ping each other without a loss, and the controller of the switch `asked` gets every packet-in that it waits for.
//!
//! How long those packet-ins take, before and meanwhile, is printed (`cargo test -p suiro-acceptance --test hostile -- --nocapture`) and not
//! asserted: time belongs to the machine.

use crate::Bystanders;
use crate::bystanders::OPENFLOW;
use crate::peers::memory_kib;
use acceptance::{Kind, Lab, Speaker, encode, inside, privileged};
use openflow::{
    Action, ErrorCode, ErrorKind, FlowMod, FlowModCommand, FragmentMode, Header, Instruction,
    Match, Message, MultipartRequest, OxmField, Part, PortNo, Role, RoleMsg, SwitchConfig, TableId,
};
use std::io::{ErrorKind as Io, Write};
use std::net::{TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Entries that a table of these nodes holds.
const ENTRIES: u32 = 50_000;
/// Flow-mods of a flood: four times what there is room for.
const FLOOD: u32 = 4 * ENTRIES;
const ECHOES: u32 = 1_000_000;
const CROWD: u32 = 64;
/// Flow-mods of each in the crowd.
const EACH: u32 = 500;
/// Packet-ins that are timed in peace.
const SAMPLES: usize = 200;
const PATIENCE: Duration = Duration::from_secs(60);
/// Transaction of the barrier that ends what a controller does.
const LAST: u32 = u32::MAX;

/// Calls the switch `sw0`.
fn call(lab: &Lab) -> Speaker<TcpStream> {
    let stream = inside(&lab.netns, || TcpStream::connect(OPENFLOW).unwrap());
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    Speaker::greet(stream)
}

/// Sends bytes and a barrier, reads meanwhile, and shows every answer up to that barrier's.
fn pour(speaker: &mut Speaker<TcpStream>, bytes: &[u8], mut answer: impl FnMut(&[u8])) {
    let mut writer = speaker.stream.try_clone().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            writer.write_all(bytes).unwrap();
            writer.write_all(&encode(&Message::BarrierRequest, LAST)).unwrap();
        });
        speaker.until(|frame| {
            let is_last = Header::peek(frame).unwrap().xid == LAST;
            if !is_last {
                answer(frame);
            }
            is_last
        });
    });
}

/// The switch `asked`, whose guest's datagrams go to its controller.
struct Asked {
    controller: Speaker<UnixStream>,
    guest: UdpSocket,
}

/// `OFPT_*` (OpenFlow 1.3.5 §7.1.1).
const ECHO_REQUEST: u8 = 2;
const PACKET_IN: u8 = 10;
const BARRIER_REPLY: u8 = 21;

impl Asked {
    fn new(lab: &Lab) -> Self {
        // Questions and answers in turn are more than the 10,000 a second of a new switch.
        let rate = ["--max-packet-in-per-s", "1000000"];
        lab.suiro(&[&["switch", "add", "asked", "--fail-mode", "secure"], &rate[..]].concat());
        lab.connect("asked", "g7", Kind::Tap);
        lab.introduce("g7", "n99");
        lab.suiro(&["flow", "add", "asked", "udp,actions=CONTROLLER:65535"]);
        let stream = UnixStream::connect(lab.path("run/asked.mgmt")).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut controller = Speaker::greet(stream);
        let (fragments, miss_send_len) = (FragmentMode::Normal, 0xffff);
        controller.send(&Message::SetConfig(SwitchConfig { fragments, miss_send_len }));
        controller.send(&Message::BarrierRequest);
        controller.until(|frame| frame[1] == BARRIER_REPLY);
        let guest = inside(&lab.guest("g7"), || UdpSocket::bind("0.0.0.0:0").unwrap());
        guest.connect((Lab::ip("n99"), 9)).unwrap();
        Self { controller, guest }
    }

    /// Time from a guest's datagram to the packet-in at the controller.
    fn packet_in(&mut self) -> Duration {
        let start = Instant::now();
        self.guest.send(b"who takes this?").unwrap();
        while !self.hears_packet_in() {
            assert!(start.elapsed() < PATIENCE, "a packet-in is lost");
            // The switch asks whether somebody who only listens is still there.
            self.controller.send(&Message::EchoReply(Vec::new()));
        }
        start.elapsed()
    }

    /// Whether the next message is a packet-in rather than an echo request.
    fn hears_packet_in(&mut self) -> bool {
        let mut heard = 0;
        self.controller.until(|frame| {
            heard = frame[1];
            [PACKET_IN, ECHO_REQUEST].contains(&heard)
        });
        heard == PACKET_IN
    }
}

/// Median, 99th percentile and number of some times.
fn show(mut times: Vec<Duration>) -> String {
    times.sort();
    let at = |percent: usize| times[(times.len() - 1) * percent / 100].as_micros();
    format!("p50 {} us, p99 {} us of {}", at(50), at(99), times.len())
}

/// Runs an act against the switch `sw0` beside the bystanders; nobody loses anything. Returns the node.
fn beside_bystanders(name: &str, act: impl FnOnce(&Lab) + Send) -> Lab {
    let bystanders = Bystanders::configured(&format!("flows_per_table = {ENTRIES}\n"), &["g7"]);
    let lab = &bystanders.lab;
    let mut asked = Asked::new(lab);
    let before: Vec<_> = (0..SAMPLES).map(|_| asked.packet_in()).collect();
    let mut meanwhile = Vec::new();
    std::thread::scope(|scope| {
        let act = scope.spawn(|| act(lab));
        while !act.is_finished() || meanwhile.is_empty() {
            meanwhile.push(asked.packet_in());
        }
        act.join().unwrap();
    });
    println!(
        "packet-ins of another switch before: {}; while {name}: {}",
        show(before),
        show(meanwhile)
    );
    bystanders.lost_nothing()
}

/// An entry of its own for each number.
fn entry(number: u32) -> FlowMod {
    let fields = Match::default()
        .with(OxmField::EthType, 0x0800)
        .with(OxmField::Ipv4Dst, (0x0a00_0000 | number).into());
    let instructions = vec![Instruction::ApplyActions(vec![Action::output(PortNo::FLOOD)])];
    FlowMod { priority: 9, fields, instructions, ..FlowMod::default() }
}

fn entries(numbers: std::ops::Range<u32>) -> Vec<u8> {
    numbers.flat_map(|number| encode(&Message::FlowMod(entry(number)), number)).collect()
}

fn everything() -> Message {
    let command = FlowModCommand::Delete;
    Message::FlowMod(FlowMod { command, table: TableId::ALL, ..FlowMod::default() })
}

fn flow_count(lab: &Lab) -> usize {
    lab.json(&["flow", "list", "sw0"]).as_array().unwrap().len()
}

#[test]
fn a_flood_of_flow_mods_fills_its_own_table_and_nothing_else() {
    if !privileged() {
        return;
    }
    let lab = beside_bystanders("a flood of flow-mods comes", |lab| {
        let mut flood = call(lab);
        let mut full = 0;
        pour(&mut flood, &entries(0..FLOOD), |answer| match Message::decode(answer).unwrap().1 {
            Message::Error(error)
                if error.kind == ErrorKind::Known(ErrorCode::FlowModFailedTableFull) =>
            {
                full += 1;
            }
            other => panic!("{other:?}"),
        });
        assert_eq!(full, FLOOD - ENTRIES, "what does not fit is refused, one by one");
        pour(&mut flood, &encode(&everything(), 1), |answer| panic!("{answer:?}"));
    });
    assert_eq!(flow_count(&lab), 0);
}

#[test]
fn a_million_echo_requests_are_all_answered() {
    if !privileged() {
        return;
    }
    beside_bystanders("a million echo requests come", |lab| {
        let requests: Vec<u8> = (0..ECHOES)
            .flat_map(|number| encode(&Message::EchoRequest(Vec::new()), number))
            .collect();
        let mut answered = 0;
        pour(&mut call(lab), &requests, |answer| {
            assert_eq!(answer, encode(&Message::EchoReply(Vec::new()), answered), "in order");
            answered += 1;
        });
        assert_eq!(answered, ECHOES);
    });
}

#[test]
fn a_controller_that_asks_and_never_reads_is_not_read_either() {
    if !privileged() {
        return;
    }
    beside_bystanders("somebody asks and never reads", |lab| {
        let before = memory_kib(lab);
        let mut deaf = call(lab);
        // Long enough that only a switch that has stopped reading lets it pass.
        deaf.stream.set_write_timeout(Some(Duration::from_secs(2))).unwrap();
        let dump = MultipartRequest::TableFeatures(Vec::new());
        let requests: Vec<u8> = (0..1000)
            .flat_map(|number| {
                let features = Message::MultipartRequest(Part::last(dump.clone()));
                let echo = Message::EchoRequest(vec![7; 60_000]);
                [encode(&features, number), encode(&echo, number)].concat()
            })
            .collect();
        let stuck = deaf.stream.write_all(&requests).expect_err("the switch reads no more");
        assert!(matches!(stuck.kind(), Io::WouldBlock | Io::TimedOut), "{stuck}");
        let grown = memory_kib(lab).saturating_sub(before);
        assert!(grown < 16 << 10, "{grown} KiB more for a controller that never reads");
    });
}

#[test]
fn sixty_four_controllers_at_once_are_all_served() {
    if !privileged() {
        return;
    }
    let lab = beside_bystanders("sixty-four controllers are at work", |lab| {
        std::thread::scope(|scope| {
            for number in 0..CROWD {
                scope.spawn(move || one_of_many(lab, number));
            }
        });
    });
    assert_eq!(flow_count(&lab), (CROWD * EACH) as usize);
}

/// Asks for a role and the features, adds entries of its own, and is answered everything.
fn one_of_many(lab: &Lab, number: u32) {
    let mut speaker = call(lab);
    let role = RoleMsg { role: Role::Equal, generation_id: 0 };
    let mut bytes = encode(&Message::RoleRequest(role), 1);
    bytes.extend(encode(&Message::FeaturesRequest, 2));
    bytes.extend(entries(number * EACH..(number + 1) * EACH));
    bytes.extend(encode(&Message::EchoRequest(vec![7; 1000]), 3));
    let mut kinds = Vec::new();
    pour(&mut speaker, &bytes, |answer| kinds.push(answer[1]));
    // Replies to role, features and echo (OpenFlow 1.3.5 §7.1.1), and no error.
    assert_eq!(kinds, [25, 6, 3]);
}
