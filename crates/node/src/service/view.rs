//! What the API shows. Plain data; the command line reads the same types back.

use super::Node;
use super::directory::{Member, MemberPort};
use super::plan::Origin;
use crate::agent::LinkStatus;
use crate::fault::{Fault, chain};
use crate::spec::{
    Dpid, FailMode, IfName, Mac, Netns, Peer, PortKind, PortName, Protocol, Rate, Rules,
    SwitchName, TlsSpec,
};
use crate::switch::Connection;
use crate::tls::Trouble;
use datapath::{PortCounters, WorkerStats};
use openflow::PortConfig;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::time::{SystemTime, UNIX_EPOCH};
use utoipa::ToSchema;
use wire::DropReason;

/// The node.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct NodeView {
    /// suiro's version.
    pub version: String,
    /// Process id.
    pub pid: u32,
    /// Seconds since it began to serve.
    pub uptime_s: u64,
    /// The configuration file.
    pub config_file: Option<String>,
    /// Sockets.
    pub run_dir: String,
    /// Cores of the workers.
    pub cores: Vec<usize>,
    /// Switches in service.
    pub switches: usize,
    /// Ports, open or not.
    pub ports: usize,
    /// The store.
    pub store: StoreView,
}

/// What survives a restart.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct StoreView {
    /// The file.
    pub file: String,
    /// Why changes are not being saved, if they are not; they wait in memory then.
    pub fault: Option<Fault>,
    /// Where a damaged file went at the start.
    pub set_aside: Option<String>,
}

/// Frames lost for one reason.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct DropView {
    /// The reason; the users' guide explains each.
    pub reason: String,
    /// How many.
    pub frames: u64,
}

/// An OpenFlow connection.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ConnectionView {
    /// The peer.
    pub peer: String,
    /// Whether it is a controller; otherwise a tool such as ovs-ofctl.
    pub controller: bool,
    /// 0 for a main connection, the number of an auxiliary one.
    pub auxiliary: u8,
    /// `equal`, `master` or `slave`.
    pub role: String,
    /// OpenFlow version.
    pub version: String,
    /// Packet-ins sent to it.
    pub packet_ins: u64,
    /// Packet-ins that it was too slow for.
    pub lost_packet_ins: u64,
}

/// What last went wrong at an endpoint.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct TroubleView {
    /// When, in nanoseconds since 1970.
    pub at_ns: u64,
    /// Why.
    pub cause: String,
    /// What to do.
    pub remedy: String,
}

/// A controller that is called, or an address that controllers may call.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct EndpointView {
    /// As it is configured.
    pub target: String,
    /// `resolving`, `connecting`, `tls-handshake`, `hello`, `connected`, `waiting` (for the next attempt) or `listening`.
    pub state: String,
    /// Since when, in nanoseconds since 1970.
    pub since_ns: u64,
    /// OpenFlow version agreed on, of a controller that is connected.
    pub version: Option<String>,
    /// Its role: `equal`, `master` or `slave`.
    pub role: Option<String>,
    /// Auxiliary connections that stand.
    pub auxiliary: usize,
    /// What last went wrong.
    pub last_error: Option<TroubleView>,
}

/// A switch.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct SwitchView {
    /// Its name.
    pub name: SwitchName,
    /// Its datapath id.
    pub dpid: Dpid,
    /// What happens to unmatched packets without a controller.
    pub fail_mode: FailMode,
    /// Controllers to connect to.
    pub controllers: Vec<String>,
    /// Addresses it waits for controllers on.
    pub listen: Vec<String>,
    /// OpenFlow versions that it speaks.
    pub protocols: Vec<Protocol>,
    /// What each of both is doing.
    pub endpoints: Vec<EndpointView>,
    /// Whether it forwards by itself now: standalone, and no controller is there.
    pub alone: bool,
    /// Seconds without a controller before a standalone switch forwards by itself.
    pub fail_after_s: u32,
    /// What becomes of the rules when a controller comes and none was there.
    pub on_reconnect: Rules,
    /// What becomes of the rules when a standalone switch begins to forward by itself.
    pub on_standalone: Rules,
    /// Seconds of silence before an echo is asked for.
    pub echo_interval_s: u16,
    /// Auxiliary connections wanted to each controller.
    pub aux: u8,
    /// Its certificates, its own or the node's.
    pub tls: Option<TlsSpec>,
    /// Most packets a second sent to controllers.
    pub max_packet_in_per_s: u32,
    /// Its management socket, for ovs-ofctl.
    pub management: String,
    /// `file` or `api`: who made it.
    pub origin: String,
    /// Its ports.
    pub ports: usize,
    /// Its rules.
    pub flows: u32,
    /// Frames sent to controllers.
    pub packet_ins: u64,
    /// Frames sent by controllers.
    pub packet_outs: u64,
    /// Frames lost, by reason, its ports' included.
    pub drops: Vec<DropView>,
    /// OpenFlow connections.
    pub connections: Vec<ConnectionView>,
    /// Why it does not listen, if it does not.
    pub fault: Option<Fault>,
}

/// A port's counters.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct PortCountersView {
    /// Frames into the switch.
    pub rx_frames: u64,
    /// Their bytes.
    pub rx_bytes: u64,
    /// Frames out of the switch.
    pub tx_frames: u64,
    /// Their bytes.
    pub tx_bytes: u64,
    /// Frames offered that did not get in.
    pub rx_drops: Vec<DropView>,
    /// Frames that did not get out.
    pub tx_drops: Vec<DropView>,
}

/// Which core serves a receive queue.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct QueueView {
    /// The queue.
    pub queue: usize,
    /// The core.
    pub core: usize,
}

/// A queue that packets wait in which leave by a port.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct PortQueueView {
    /// Its number.
    pub id: u32,
    /// Bit/s that it gets whatever the other queues want.
    pub min_rate: Option<Rate>,
    /// Bit/s that it never exceeds.
    pub max_rate: Option<Rate>,
    /// Frames that left.
    pub tx_frames: u64,
    /// Their bytes.
    pub tx_bytes: u64,
    /// Frames that did not leave: too many, or the port dropped them.
    pub tx_errors: u64,
    /// Frames that wait now.
    pub waiting: u64,
    /// Nanoseconds since it counts; 0 while the port is not open.
    pub age_ns: u64,
}

/// A port.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct PortView {
    /// Its switch.
    pub switch: SwitchName,
    /// Its name.
    pub name: PortName,
    /// Its OpenFlow number.
    pub number: u32,
    /// Its kind.
    #[serde(rename = "type")]
    pub kind: PortKind,
    /// Its interface.
    pub interface: Option<IfName>,
    /// The interface's network namespace.
    pub netns: Option<Netns>,
    /// The other end of a vlink.
    pub peer: Option<Peer>,
    /// Its MAC address.
    pub mac: Option<Mac>,
    /// Its MTU; 0 when it has none.
    pub mtu: u32,
    /// Whether it is wanted up.
    pub admin_up: bool,
    /// Whether its interface is up.
    pub up: bool,
    /// Whether a frame sent now would reach a peer.
    pub carrier: bool,
    /// Mbit/s; 0 when unknown.
    pub speed_mbps: u32,
    /// How frames are exchanged.
    pub mode: String,
    /// Which faster door is missing and why, and what was changed on the interface.
    pub notes: Vec<String>,
    /// `file` or `api`: who made it.
    pub origin: String,
    /// Which cores serve its receive queues.
    pub queues: Vec<QueueView>,
    /// Bit/s that leave by it in all; `null` when it takes what it can.
    pub rate: Option<Rate>,
    /// What packets wait in that leave by it, by number.
    pub queue: Vec<PortQueueView>,
    /// Its counters.
    pub counters: PortCountersView,
    /// Why it is not open, if it is not.
    pub fault: Option<Fault>,
}

/// A port's traffic at one worker.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct PortLoadView {
    /// The switch.
    pub switch: SwitchName,
    /// The port.
    pub port: PortName,
    /// Receive queues that this worker polls.
    pub rx_queues: usize,
    /// Frames received here.
    pub rx_frames: u64,
    /// Frames sent here.
    pub tx_frames: u64,
}

/// A worker. Cycles are the timestamp counter's.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct WorkerView {
    /// Its number.
    pub worker: usize,
    /// Its core.
    pub core: usize,
    /// Frames received.
    pub frames: u64,
    /// Rounds that had frames.
    pub batches: u64,
    /// Polls that found none.
    pub empty_polls: u64,
    /// Times it went to sleep.
    pub sleeps: u64,
    /// Panics survived.
    pub restarts: u64,
    /// Cycles spent receiving.
    pub cycles_rx: u64,
    /// Cycles spent in the tables.
    pub cycles_pipeline: u64,
    /// Cycles spent sending.
    pub cycles_tx: u64,
    /// Cycles spent on polls that found nothing.
    pub cycles_polling: u64,
    /// Cycles a second: busy share = change of (rx + pipeline + tx) / (change of `at_ns` × this).
    pub cycles_per_s: u64,
    /// Its part of each port's traffic.
    pub ports: Vec<PortLoadView>,
}

/// All workers at one moment.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct WorkersView {
    /// When, in nanoseconds since 1970.
    pub at_ns: u64,
    /// Each worker.
    pub workers: Vec<WorkerView>,
}

impl Node {
    /// The node as it is now.
    pub fn view(&self) -> NodeView {
        let members = self.directory.all();
        let problem = self.store.problem();
        let store_fault = |problem: &crate::store::StoreError| {
            Fault::new("state file", "save changes", chain(problem), problem.remedy())
        };
        NodeView {
            version: env!("CARGO_PKG_VERSION").into(),
            pid: std::process::id(),
            uptime_s: self.facts.started.elapsed().as_secs(),
            config_file: self.facts.config_file.as_ref().map(|path| path.display().to_string()),
            run_dir: self.run_dir.path().display().to_string(),
            cores: self.facts.config.cores.clone(),
            switches: members.len(),
            ports: members.iter().map(|member| member.state().ports.len()).sum(),
            store: StoreView {
                file: self.store.path().display().to_string(),
                fault: problem.as_deref().map(store_fault),
                set_aside: self.facts.set_aside.as_ref().map(|path| path.display().to_string()),
            },
        }
    }

    /// The workers as they are now.
    pub fn workers(&self) -> WorkersView {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let workers =
            self.datapath.worker_stats().into_iter().map(|stats| self.view_worker(stats)).collect();
        WorkersView { at_ns: now.as_nanos() as u64, workers }
    }

    pub(super) fn view_switch(&self, member: &Member) -> SwitchView {
        let state = member.state().clone();
        let counters = self.datapath.switch_counters(member.id).unwrap_or_default();
        let flows = member.switch.aggregate(&openflow::FlowStatsRequest::default());
        SwitchView {
            dpid: Dpid::new(member.switch.datapath_id()),
            fail_mode: state.spec.fail_mode,
            controllers: state.spec.controllers.iter().map(ToString::to_string).collect(),
            listen: state.spec.listen.iter().map(ToString::to_string).collect(),
            protocols: Protocol::in_force(&state.spec.protocols),
            endpoints: member.links().into_iter().map(view_endpoint).collect(),
            alone: member.switch.is_alone(),
            fail_after_s: state.spec.fail_after_s,
            on_reconnect: state.spec.on_reconnect,
            on_standalone: state.spec.on_standalone,
            echo_interval_s: state.spec.echo_interval_s,
            aux: state.spec.aux,
            tls: state.spec.tls.clone().or_else(|| self.tls()),
            max_packet_in_per_s: state.spec.max_packet_in_per_s,
            management: self.run_dir.management_socket(&state.spec.name).display().to_string(),
            origin: origin_word(member.origin).into(),
            ports: state.ports.len(),
            flows: flows.map_or(0, |sums| sums.flow_count),
            packet_ins: counters.packet_ins,
            packet_outs: counters.packet_outs,
            drops: view_drops(&counters.drops),
            connections: member.switch.connections().into_iter().map(view_connection).collect(),
            fault: state.fault,
            name: state.spec.name,
        }
    }

    pub(super) fn view_port(
        &self,
        member: &Member,
        name: &PortName,
        port: &MemberPort,
        configs: &HashMap<u32, PortConfig>,
    ) -> PortView {
        let at = member.at(port.number);
        let status = self.ports.status(at).unwrap_or_default();
        let facts = status.facts;
        let config = configs.get(&port.number).copied().unwrap_or_default();
        let queues = self.datapath.assignments(at).unwrap_or_default();
        PortView {
            switch: member.name(),
            name: name.clone(),
            number: port.number,
            kind: port.spec.kind,
            interface: port.spec.effective_interface(),
            netns: port.spec.netns.clone(),
            peer: port.spec.peer.clone(),
            mac: Mac::new(facts.mac),
            mtu: facts.mtu,
            admin_up: !config.contains(PortConfig::PORT_DOWN),
            up: facts.up,
            carrier: facts.carrier,
            speed_mbps: facts.speed_mbps,
            mode: facts.mode,
            notes: facts.notes,
            origin: origin_word(port.origin).into(),
            queues: queues
                .into_iter()
                .map(|found| QueueView { queue: found.queue, core: found.core })
                .collect(),
            rate: port.spec.rate,
            queue: self.view_port_queues(at, &port.spec),
            counters: view_counters(&self.datapath.port_counters(at).unwrap_or_default()),
            fault: status.fault,
        }
    }

    fn view_worker(&self, stats: WorkerStats) -> WorkerView {
        let load = |load: &datapath::PortLoad| {
            let member = self.directory.by_id(load.at.switch)?;
            let (port, _) = member.port(&load.at.port.to_string())?;
            let (rx_queues, rx_frames, tx_frames) =
                (load.rx_queues, load.rx_frames, load.tx_frames);
            Some(PortLoadView { switch: member.name(), port, rx_queues, rx_frames, tx_frames })
        };
        WorkerView {
            worker: stats.worker,
            core: stats.core,
            frames: stats.frames,
            batches: stats.batches,
            empty_polls: stats.empty_polls,
            sleeps: stats.sleeps,
            restarts: stats.restarts,
            cycles_rx: stats.cycles.rx,
            cycles_pipeline: stats.cycles.pipeline,
            cycles_tx: stats.cycles.tx,
            cycles_polling: stats.cycles_polling,
            cycles_per_s: stats.cycles_per_s,
            ports: stats.ports.iter().filter_map(load).collect(),
        }
    }
}

fn origin_word(origin: Origin) -> &'static str {
    match origin {
        Origin::File => "file",
        Origin::Api => "api",
    }
}

fn view_drops(drops: &[(DropReason, u64)]) -> Vec<DropView> {
    drops
        .iter()
        .map(|&(reason, frames)| DropView { reason: reason.name().into(), frames })
        .collect()
}

fn view_counters(counters: &PortCounters) -> PortCountersView {
    PortCountersView {
        rx_frames: counters.rx_frames,
        rx_bytes: counters.rx_bytes,
        tx_frames: counters.tx_frames,
        tx_bytes: counters.tx_bytes,
        rx_drops: view_drops(&counters.rx_drops),
        tx_drops: view_drops(&counters.tx_drops),
    }
}

fn view_endpoint(link: LinkStatus) -> EndpointView {
    let connection = link.connection.as_ref();
    EndpointView {
        target: link.target,
        state: link.phase.word().into(),
        since_ns: wall_ns(link.since),
        version: connection.map(|found| found.version.into()),
        role: connection.map(|found| found.role.into()),
        auxiliary: link.auxiliary,
        last_error: link.trouble.map(|(at, Trouble { cause, remedy })| TroubleView {
            at_ns: wall_ns(at),
            cause,
            remedy,
        }),
    }
}

/// A moment of the monotonic clock by the wall clock of now.
fn wall_ns(moment: tokio::time::Instant) -> u64 {
    let then = SystemTime::now().checked_sub(moment.elapsed()).unwrap_or(UNIX_EPOCH);
    then.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64
}

fn view_connection(connection: Connection) -> ConnectionView {
    ConnectionView {
        peer: connection.peer,
        controller: connection.controller,
        auxiliary: connection.auxiliary,
        role: connection.role.into(),
        version: connection.version.into(),
        packet_ins: connection.packet_ins,
        lost_packet_ins: connection.lost_packet_ins,
    }
}
