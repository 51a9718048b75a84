//! A switch with four guests and a controller.

use super::guest::Guest;
use super::node::Node;
use super::outcome::Outcome;
use super::session::Session;
use acceptance::sh;
use openflow::{
    Action, ErrorCode, FlowMod, FlowModCommand, FragmentMode, GroupId, GroupMod, GroupModCommand,
    GroupType, Instruction, Match, Message, MeterFlags, MeterId, MeterMod, MeterModCommand,
    OxmField, PacketIn, PacketOut, PortNo, PortState, SwitchConfig, TableId, Version,
};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Ports of each switch, numbered from 1.
pub const PORTS: u32 = 4;

/// The guest of the local port, where a case asks for one: the one after the last.
pub const HOST: u32 = PORTS + 1;

/// Ethernet type of the marker ("local experimental 1", IEEE 802): cases leave it alone.
const MARKER_TYPE: u16 = 0x88b5;

/// Cookie of the marker's entry.
pub const MARKER_COOKIE: u64 = 0x6d61_726b_6572;

/// What the switch's ports are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ports {
    /// TAPs in the guests' namespace.
    Tap,
    /// Veth pairs, the near ends by packet socket.
    AfPacket,
    /// Veth pairs, the near ends by XDP.
    AfXdp,
}

impl Ports {
    /// As the API calls them.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tap => "tap",
            Self::AfPacket => "af_packet",
            Self::AfXdp => "af_xdp",
        }
    }
}

/// The switch. The guests' ends are raw sockets.
pub struct Bench {
    /// The switch's name.
    pub switch: String,
    /// Its controller.
    pub session: Session,
    /// Ports by which nothing can leave for now: no marker is awaited there.
    pub shut: BTreeSet<u32>,
    guests: Vec<Guest>,
    markers: u64,
}

impl Bench {
    /// Makes the switch on TAPs: secure, packet-ins unlimited, every port up, its controllers let to read the host's steering.
    pub fn make(node: &Node) -> Self {
        Self::on(node, Ports::Tap)
    }

    /// Makes the switch on ports of this kind.
    pub fn on(node: &Node, ports: Ports) -> Self {
        let number = node.number();
        let switch = format!("sw{number}");
        let spec = json!({ "name": switch, "fail_mode": "secure", "max_packet_in_per_s": u32::MAX, "steering": "read" });
        node.api("POST", "/v1/switches", &spec);
        let mut session = Session::open(&node.socket(&switch), Version::V1_3);
        // A caller hears of events only after it has asked for some bytes.
        session.send(&Message::SetConfig(CONFIG));
        session.barrier();
        let mut bench =
            Self { switch, session, shut: BTreeSet::new(), guests: Vec::new(), markers: 0 };
        for port in 1..=PORTS {
            bench.add_port(node, ports, port, PortNo(port));
        }
        bench
    }

    /// Makes the guest [`HOST`] the switch's local port.
    pub fn add_local(&mut self, node: &Node) {
        self.add_port(node, Ports::Tap, HOST, PortNo::LOCAL);
    }

    fn add_port(&mut self, node: &Node, ports: Ports, guest: u32, number: PortNo) {
        let (netns, interface) = (node.guests(), &*self.interface(guest));
        let mut spec =
            json!({ "type": ports.name(), "name": format!("p{guest}"), "number": number.0 });
        if ports == Ports::Tap {
            spec["interface"] = interface.into();
            spec["netns"] = netns.as_str().into();
        } else {
            spec["interface"] = node.cable(interface).into();
        }
        node.api("POST", &format!("/v1/switches/{}/ports", self.switch), &spec);
        sh(&["ip", "-n", &netns, "link", "set", interface, "up"]);
        self.session.wait(|message| match message {
            Message::PortStatus(news) if news.port.number == number => {
                news.port.state.contains(PortState::LIVE).then_some(())
            }
            _ => None,
        });
        self.guests.push(Guest::open(&netns, interface, guest));
    }

    /// Sends a frame into a port, and the marker after it; returns what came out in between.
    ///
    /// The marker leaves by every port and goes to the controller, so each way out is known to be done.
    pub fn send(&mut self, port: u32, frame: &[u8]) -> Outcome {
        self.send_all(port, &[frame])
    }

    /// Likewise for several frames.
    pub fn send_all<F: AsRef<[u8]>>(&mut self, port: u32, frames: &[F]) -> Outcome {
        self.session.accept(&Message::FlowMod(marker_entry()));
        for frame in frames {
            self.guest(port).send(frame.as_ref());
        }
        self.outcome(port)
    }

    /// Sends a frame from the controller; returns what came out.
    pub fn packet_out(&mut self, in_port: PortNo, actions: Vec<Action>, frame: &[u8]) -> Outcome {
        self.session.accept(&Message::FlowMod(marker_entry()));
        let data = frame.to_vec();
        let message = PacketOut { buffer_id: None, in_port, actions, data };
        self.session.accept(&Message::PacketOut(message));
        self.outcome(1)
    }

    /// Sends a frame into a port and awaits nothing.
    pub fn inject(&self, port: u32, frame: &[u8]) {
        self.guest(port).send(frame);
    }

    /// The next `count` frames that come out of a port.
    pub fn receive(&self, port: u32, count: usize) -> Vec<Vec<u8>> {
        (0..count).map(|_| self.guest(port).receive()).collect()
    }

    /// The frames that have come out of a port, without waiting.
    pub fn receive_waiting(&self, port: u32) -> Vec<Vec<u8>> {
        self.guest(port).receive_waiting()
    }

    /// Sends the marker into a port; returns everything that came out before it.
    fn outcome(&mut self, port: u32) -> Outcome {
        self.markers += 1;
        let nonce = self.markers.to_be_bytes();
        let mut marker = vec![2, 0, 0, 0, 0, 0xff, 2, 0, 0, 0, 0, 0xfe];
        marker.extend_from_slice(&MARKER_TYPE.to_be_bytes());
        marker.resize(60 - nonce.len(), 0);
        marker.extend_from_slice(&nonce);
        self.guest(port).send(&marker);
        let mut outcome = Outcome::default();
        // The shut ones last: by then all that could leave there has.
        let (shut, open): (Vec<_>, Vec<_>) =
            self.guests.iter().partition(|guest| self.shut.contains(&guest.port));
        for guest in open.into_iter().chain(shut) {
            let frames = if self.shut.contains(&guest.port) {
                guest.receive_waiting()
            } else {
                guest.receive_until(&marker)
            };
            outcome.frames.extend(frames.into_iter().map(|frame| (guest.port, frame)));
        }
        self.session.wait(|message| match message {
            Message::PacketIn(packet) if packet.data == marker => Some(()),
            _ => None,
        });
        // A worker counts after it has sent, and the barrier's answer comes after that: what the case reads next counts every frame.
        self.session.barrier();
        outcome.packet_ins = self.session.take(|message| match message {
            Message::PacketIn(packet) => Some(PacketIn::clone(packet)),
            _ => None,
        });
        self.session.has_no_error();
        outcome
    }

    fn guest(&self, port: u32) -> &Guest {
        &self.guests[port as usize - 1]
    }

    /// A flow-mod that must be taken.
    #[track_caller]
    pub fn add(&mut self, change: &FlowMod) {
        self.session.accept(&Message::FlowMod(change.clone()));
    }

    /// A flow-mod that must be refused with this code.
    #[track_caller]
    pub fn refuse(&mut self, change: &FlowMod, code: ErrorCode) {
        self.session.refuse(&Message::FlowMod(change.clone()), code);
    }

    /// Removes entries, groups and meters, and restores the configuration.
    pub fn clear(&mut self) {
        let command = FlowModCommand::Delete;
        let flows = FlowMod { command, table: TableId::ALL, ..FlowMod::default() };
        self.session.send(&Message::FlowMod(flows));
        self.session.send(&Message::GroupMod(GroupMod {
            command: GroupModCommand::Delete,
            kind: GroupType::All,
            id: GroupId::ALL,
            buckets: Vec::new(),
        }));
        self.session.send(&Message::MeterMod(MeterMod {
            command: MeterModCommand::Delete,
            flags: MeterFlags::empty(),
            id: MeterId::ALL,
            bands: Vec::new(),
        }));
        self.session.send(&Message::SetConfig(CONFIG));
        self.session.barrier();
        self.session.has_no_error();
        self.session.take(|_| Some(()));
    }

    /// Removes the switch.
    pub fn remove(self, node: &Node) {
        node.api("DELETE", &format!("/v1/switches/{}", self.switch), &Value::Null);
    }
}

/// A switch's configuration at the start of a case.
const CONFIG: SwitchConfig =
    SwitchConfig { fragments: FragmentMode::Normal, miss_send_len: u16::MAX };

/// Before all others in table 0: the marker goes everywhere.
fn marker_entry() -> FlowMod {
    let everywhere = [PortNo::ALL, PortNo::IN_PORT, PortNo::CONTROLLER].map(Action::output);
    FlowMod {
        cookie: MARKER_COOKIE,
        priority: u16::MAX,
        fields: Match::default().with(OxmField::EthType, MARKER_TYPE.into()),
        instructions: vec![Instruction::ApplyActions(everywhere.to_vec())],
        ..FlowMod::default()
    }
}
