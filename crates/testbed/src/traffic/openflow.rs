//! An OpenFlow 1.3 client on a switch's management socket: flow-mods, packet-ins, and what a million entries weigh.

use crate::peer::Running;
use crate::traffic::frames;
use crate::unbroken;
use anyhow::{Context, Result, bail};
use openflow::{
    Action, AsyncConfig, FlowMod, FlowModCommand, FlowStatsRequest, FragmentMode, Hello,
    Instruction, Match, Message, MultipartReply, MultipartRequest, Oxm, OxmField, PacketIn,
    PacketOut, Part, PortDesc, PortNo, PortState, SwitchConfig, Version, VersionSet, next_frame,
};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Flow-mods of one measurement; enough that set-up does not count.
const FLOW_MODS: u32 = 200_000;
const ENTRIES: u32 = 1_000_000;
const VERSION: Version = Version::V1_3;
const PACKET_IN_WINDOW: Duration = Duration::from_secs(3);

/// Thousands of flow-mods a second, all new 5-tuples, up to the barrier's answer.
pub fn flow_mods(running: &Running) -> Result<f64> {
    let mut client = Client::connect(management(running)?)?;
    let took = client.add_entries(FLOW_MODS)?;
    Ok(f64::from(FLOW_MODS) / took.as_secs_f64() / 1e3)
}

/// Thousands of strict modifies a second of as many entries, up to the barrier's answer.
pub fn modifies(running: &Running) -> Result<f64> {
    let change = |number| FlowMod {
        command: FlowModCommand::ModifyStrict,
        instructions: vec![Instruction::ApplyActions(vec![Action::output(PortNo(2))])],
        ..entry(number)
    };
    changes(running, change)
}

/// Thousands of strict deletes a second of as many entries, up to the barrier's answer.
pub fn deletes(running: &Running) -> Result<f64> {
    changes(running, |number| FlowMod { command: FlowModCommand::DeleteStrict, ..entry(number) })
}

/// Adds entries, and then measures a change of each.
fn changes(running: &Running, change: impl Fn(u32) -> FlowMod) -> Result<f64> {
    let mut client = Client::connect(management(running)?)?;
    client.add_entries(FLOW_MODS)?;
    let took = client.change_entries(FLOW_MODS, change)?;
    Ok(f64::from(FLOW_MODS) / took.as_secs_f64() / 1e3)
}

/// Seconds in which a switch tells a million entries, in full.
pub fn dump(running: &Running) -> Result<f64> {
    let mut client = Client::connect(management(running)?)?;
    client.add_entries(ENTRIES)?;
    let start = Instant::now();
    let told = client.count_entries()?;
    anyhow::ensure!(told >= ENTRIES, "only {told} of {ENTRIES} entries were told");
    Ok(start.elapsed().as_secs_f64())
}

/// Does `work` while every packet goes to the controller, which sends it out of the other port.
pub fn relaying<T>(running: &Running, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let mut client = Client::connect(management(running)?)?;
    client.ask_for_packet_ins(u16::MAX)?;
    client.stream.set_read_timeout(Some(Duration::from_millis(50)))?;
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let relay = scope.spawn(|| client.relay(&done));
        let result = work();
        done.store(true, Ordering::Relaxed);
        relay.join().expect("the relay does not panic")?;
        result
    })
}

/// Thousands of packet-ins a second, 60-byte frames, while a guest floods.
pub fn packet_ins(running: &Running) -> Result<f64> {
    let mut client = Client::connect(management(running)?)?;
    client.ask_for_packet_ins(128)?;
    running.accept_live_frames()?;
    let [a, b] = &running.guests;
    let frame = frames::udp_frame(a, b, 10_048, frames::SMALLEST);
    let window = PACKET_IN_WINDOW;
    std::thread::scope(|scope| {
        let flood = scope.spawn(move || frames::send(a, &frame, 2 * window));
        let counted = client.count_packet_ins(window);
        flood.join().expect("the generator does not panic")?;
        Ok(counted? as f64 / window.as_secs_f64() / 1e3)
    })
}

/// Resident bytes that each of a million 5-tuple entries adds to the switch's process.
pub fn bytes_per_entry(running: &Running) -> Result<f64> {
    let mut client = Client::connect(management(running)?)?;
    let before = running.memory_kib()?;
    client.add_entries(ENTRIES)?;
    let after = running.memory_kib()?;
    Ok((after as f64 - before as f64) * 1024.0 / f64::from(ENTRIES))
}

fn management(running: &Running) -> Result<&Path> {
    running.state.management.as_deref().context("this contender speaks no OpenFlow")
}

/// A session of a controller that asks and waits.
pub struct Client {
    stream: UnixStream,
    buffer: Vec<u8>,
}

impl Client {
    /// Connects to a management socket and agrees on OpenFlow 1.3.
    pub fn connect(path: &Path) -> Result<Self> {
        let stream = UnixStream::connect(path)
            .with_context(|| format!("{}: connecting failed", path.display()))?;
        stream.set_read_timeout(Some(Duration::from_secs(120)))?;
        let mut client = Self { stream, buffer: Vec::new() };
        client.send(&Message::Hello(Hello { versions: Some(VersionSet::of(&[VERSION])) }))?;
        client.wait_for(|message| matches!(message, Message::Hello(_)).then_some(()))?;
        Ok(client)
    }

    fn send(&mut self, message: &Message) -> Result<()> {
        Ok(self.stream.write_all(&message.encode(VERSION, 1)?)?)
    }

    /// Reads until a message of which `wanted` makes something; an error message ends it.
    fn wait_for<T>(&mut self, wanted: impl Fn(Message) -> Option<T>) -> Result<T> {
        loop {
            while let Some(message) = self.next_message()? {
                if let Message::Error(error) = &message {
                    bail!("the switch answered {error:?}");
                }
                if let Some(found) = wanted(message) {
                    return Ok(found);
                }
            }
            self.fill()?;
        }
    }

    fn ask<T>(
        &mut self,
        request: MultipartRequest,
        wanted: impl Fn(MultipartReply) -> Option<T>,
    ) -> Result<T> {
        self.send(&Message::MultipartRequest(Part { body: request, more: false }))?;
        self.wait_for(|message| match message {
            Message::MultipartReply(part) => wanted(part.body),
            _ => None,
        })
    }

    /// How many entries the switch has.
    pub fn entries(&mut self) -> Result<u32> {
        self.ask(MultipartRequest::Aggregate(FlowStatsRequest::default()), |reply| match reply {
            MultipartReply::Aggregate(sums) => Some(sums.flow_count),
            _ => None,
        })
    }

    /// How many of its ports are up.
    pub fn live_ports(&mut self) -> Result<usize> {
        let is_live = |port: &&PortDesc| {
            port.number.is_ordinary() && !port.state.contains(PortState::LINK_DOWN)
        };
        Ok(self.ports()?.iter().filter(is_live).count())
    }

    /// Its ports, the local one among them.
    pub fn ports(&mut self) -> Result<Vec<PortDesc>> {
        self.ask(MultipartRequest::PortDesc, |reply| match reply {
            MultipartReply::PortDesc(ports) => Some(ports),
            _ => None,
        })
    }

    /// Wishes to be told of packets and ports, as a controller does that calls in.
    pub fn wish_events(&mut self) -> Result<()> {
        self.send(&Message::SetConfig(SwitchConfig {
            fragments: FragmentMode::Normal,
            miss_send_len: 128,
        }))?;
        self.send(&Message::BarrierRequest)?;
        self.wait_for(|message| matches!(message, Message::BarrierReply).then_some(()))
    }

    /// What the switch says unasked, for so long at most or until `enough` of it is. Echo requests are answered.
    pub fn hear(
        &mut self,
        time: Duration,
        enough: impl Fn(&[Message]) -> bool,
    ) -> Result<Vec<Message>> {
        let (mut heard, end) = (Vec::new(), Instant::now() + time);
        loop {
            while let Some(message) = self.next_message()? {
                match message {
                    Message::EchoRequest(data) => self.send(&Message::EchoReply(data))?,
                    message => heard.push(message),
                }
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() || enough(&heard) {
                return Ok(heard);
            }
            self.stream.set_read_timeout(Some(left))?;
            match self.fill() {
                Err(error) if is_timeout(&error) => {}
                filled => filled?,
            }
        }
    }

    fn next_message(&mut self) -> Result<Option<Message>> {
        let Some(frame) = next_frame(&self.buffer)? else { return Ok(None) };
        let (len, message) = (frame.len(), decoded(frame));
        self.buffer.drain(..len);
        message.map(Some)
    }

    fn fill(&mut self) -> Result<()> {
        let mut chunk = [0; 65_536];
        let count =
            unbroken(|| self.stream.read(&mut chunk)).context("waiting for the switch's answer")?;
        anyhow::ensure!(count > 0, "the switch closed the connection");
        self.buffer.extend_from_slice(&chunk[..count]);
        Ok(())
    }

    /// Adds entries and waits for the barrier behind them; how long that took.
    pub fn add_entries(&mut self, count: u32) -> Result<Duration> {
        self.change_entries(count, entry)
    }

    /// Makes a change of each entry and waits for the barrier behind them; how long that took. The bytes are made beforehand: the client must
    /// not be the limit.
    fn change_entries(&mut self, count: u32, change: impl Fn(u32) -> FlowMod) -> Result<Duration> {
        let mut bytes = Vec::with_capacity(count as usize * 128);
        for number in 0..count {
            bytes.extend(Message::FlowMod(change(number)).encode(VERSION, number)?);
        }
        bytes.extend(Message::BarrierRequest.encode(VERSION, count)?);
        let mut writer = self.stream.try_clone()?;
        let start = Instant::now();
        std::thread::scope(|scope| {
            let writing = scope.spawn(move || writer.write_all(&bytes));
            let answered =
                self.wait_for(|message| matches!(message, Message::BarrierReply).then_some(()));
            writing.join().expect("writing does not panic")?;
            answered
        })?;
        Ok(start.elapsed())
    }

    /// Asks for all entries and counts them; of each only its length is looked at, so that the switch is the limit.
    fn count_entries(&mut self) -> Result<u32> {
        let request = MultipartRequest::Flow(FlowStatsRequest::default());
        self.send(&Message::MultipartRequest(Part { body: request, more: false }))?;
        let mut count = 0;
        loop {
            let mut used = 0;
            while let Some(frame) = next_frame(&self.buffer[used..])? {
                used += frame.len();
                anyhow::ensure!(frame[1] == MULTIPART_REPLY, "message of type {} came", frame[1]);
                count += entries_in(&frame[MULTIPART_HEADER..]);
                let more = frame[11] & 1 == 1;
                if !more {
                    return Ok(count);
                }
            }
            self.buffer.drain(..used);
            self.fill()?;
        }
    }

    /// Sends every packet that comes out of the other port, until it is told to end.
    fn relay(&mut self, done: &AtomicBool) -> Result<()> {
        while !done.load(Ordering::Relaxed) {
            let (mut out, mut used) = (Vec::new(), 0);
            while let Some(frame) = next_frame(&self.buffer[used..])? {
                used += frame.len();
                if let Message::PacketIn(packet) = decoded(frame)? {
                    out.extend(Message::PacketOut(sent_on(packet)?).encode(VERSION, 0)?);
                }
            }
            self.buffer.drain(..used);
            self.stream.write_all(&out)?;
            match self.fill() {
                Err(error) if is_timeout(&error) => {}
                filled => filled?,
            }
        }
        Ok(())
    }

    /// Everything to the controller, up to `max_len` bytes of it, and all packet-ins to this connection.
    pub fn ask_for_packet_ins(&mut self, max_len: u16) -> Result<()> {
        self.send(&Message::SetConfig(SwitchConfig {
            fragments: FragmentMode::Normal,
            miss_send_len: 128,
        }))?;
        self.send(&Message::SetAsync(AsyncConfig { packet_in: [7, 7], ..Default::default() }))?;
        let to_controller = Action::Output { port: PortNo::CONTROLLER, max_len };
        let instructions = vec![Instruction::ApplyActions(vec![to_controller])];
        self.send(&Message::FlowMod(FlowMod {
            priority: 0xffff,
            instructions,
            ..Default::default()
        }))?;
        self.send(&Message::BarrierRequest)?;
        self.wait_for(|message| matches!(message, Message::BarrierReply).then_some(()))
    }

    /// Counts packet-ins for a while after the first; only headers are looked at.
    fn count_packet_ins(&mut self, window: Duration) -> Result<u64> {
        let (mut count, mut start) = (0, None);
        loop {
            let mut used = 0;
            while let Some(frame) = next_frame(&self.buffer[used..])? {
                count += u64::from(frame[1] == PACKET_IN);
                used += frame.len();
            }
            self.buffer.drain(..used);
            let start = *start.get_or_insert_with(Instant::now);
            if start.elapsed() >= window {
                return Ok(count);
            }
            self.fill()?;
        }
    }
}

/// `OFPT_PACKET_IN` and `OFPT_MULTIPART_REPLY` (OpenFlow 1.3.5 §7.1.1).
const PACKET_IN: u8 = 10;
const MULTIPART_REPLY: u8 = 19;

/// Bytes before a reply's body (OpenFlow 1.3.5 §7.3.5).
const MULTIPART_HEADER: usize = 16;

/// How many `ofp_flow_stats` these are: each begins with its length.
fn entries_in(mut body: &[u8]) -> u32 {
    let mut count = 0;
    while let [high, low, ..] = *body {
        let len = usize::from(u16::from_be_bytes([high, low])).clamp(1, body.len());
        (count, body) = (count + 1, &body[len..]);
    }
    count
}

/// The packet-out that sends a packet out of the other one of two ports.
fn sent_on(packet: PacketIn) -> Result<PacketOut> {
    let in_port =
        packet.fields.exact(OxmField::InPort).context("a packet-in without a port")? as u32;
    let actions = vec![Action::output(PortNo(3 - in_port.clamp(1, 2)))];
    Ok(PacketOut { buffer_id: None, in_port: PortNo(in_port), actions, data: packet.data })
}

fn decoded(frame: &[u8]) -> Result<Message> {
    let decoded = Message::decode(frame);
    decoded.map(|(_, message)| message).map_err(|fault| anyhow::anyhow!("undecodable: {fault:?}"))
}

fn is_timeout(error: &anyhow::Error) -> bool {
    let kind = error.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
    matches!(kind, Some(ErrorKind::WouldBlock | ErrorKind::TimedOut))
}

/// A 5-tuple entry of its own for each number.
fn entry(number: u32) -> FlowMod {
    let fields = [
        (OxmField::EthType, 0x0800),
        (OxmField::IpProto, 6),
        (OxmField::Ipv4Src, u128::from(0x0a00_0000 | number)),
        (OxmField::Ipv4Dst, 0x0b00_0001),
        (OxmField::TcpSrc, u128::from(number & 0xffff)),
        (OxmField::TcpDst, 80),
    ];
    FlowMod {
        priority: 100,
        fields: Match(fields.map(|(field, value)| Oxm::exact(field, value)).to_vec()),
        instructions: vec![Instruction::ApplyActions(vec![Action::output(PortNo(1))])],
        ..Default::default()
    }
}
