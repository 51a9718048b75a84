//! A switch as it is shown, with its controllers.

use super::view_drops;
use crate::agent::LinkStatus;
use crate::refusal::Refusal;
use crate::service::Node;
use crate::service::directory::Member;
use crate::switch::Connection;
use crate::tls::Trouble;
use api::{ConnectionView, Dpid, EndpointView, MacView, Protocol, SwitchView, TroubleView};
use flow::MacEntry;
use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

impl Node {
    /// The stations that a switch has learned, by VLAN and address.
    ///
    /// # Errors
    /// There is no such switch.
    pub fn macs(&self, switch: &str) -> Result<Vec<MacView>, Refusal> {
        let member = self.member(switch)?;
        let names: BTreeMap<u32, String> = {
            let state = member.state();
            state.ports.iter().map(|(name, port)| (port.number, name.to_string())).collect()
        };
        let view = |entry: MacEntry| MacView {
            vlan: entry.vlan,
            mac: address(entry.mac),
            port: entry.port,
            port_name: names.get(&entry.port).cloned(),
            age_s: entry.age_s,
        };
        Ok(member.switch.learned().into_iter().map(view).collect())
    }

    /// Has a switch forget the stations that it has learned.
    ///
    /// # Errors
    /// There is no such switch.
    pub fn forget_macs(&self, switch: &str) -> Result<(), Refusal> {
        self.member(switch)?.switch.forget_learned();
        Ok(())
    }

    pub(in crate::service) fn view_switch(&self, member: &Member) -> SwitchView {
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
            steering: state.spec.steering,
            tls: state.spec.tls.clone().or_else(|| self.tls()),
            session_netns: state.spec.session_netns.clone(),
            max_packet_in_per_s: state.spec.max_packet_in_per_s,
            max_flood_copies_per_s: state.spec.flood_copies_per_s(),
            max_copies_per_s: state.spec.max_copies_per_s,
            management: self.run_dir.management_socket(&state.spec.name).display().to_string(),
            origin: member.owner().to_string(),
            ports: state.ports.len(),
            tables: member.switch.tables(),
            flows: flows.map_or(0, |sums| sums.flow_count),
            packet_ins: counters.packet_ins,
            packet_outs: counters.packet_outs,
            drops: view_drops(&counters.drops),
            latency: self.datapath.latency_at(member.id).unwrap_or_default(),
            connections: member.switch.connections().into_iter().map(view_connection).collect(),
            fault: state.fault,
            name: state.spec.name,
        }
    }
}

/// An address as people write it.
fn address(mac: u64) -> String {
    let [_, _, bytes @ ..] = mac.to_be_bytes();
    bytes.map(|byte| format!("{byte:02x}")).join(":")
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
