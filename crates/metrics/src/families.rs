//! The families: one function for each kind of thing that is shown.

use crate::seen::{First, Seen};
use crate::text::Page;
use api::steer::SteerView;
use api::{
    Latencies, Latency, NodeView, OffloadView, PortQueueView, PortView, SwitchView, WorkerView,
    WorkersView,
};
use std::fmt::Display;

/// What a node shows of itself at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Snapshot<'a> {
    /// The node.
    pub node: &'a NodeView,
    /// Its workers.
    pub workers: &'a WorkersView,
    /// Its switches.
    pub switches: &'a [SwitchView],
    /// The ports of all of them.
    pub ports: &'a [PortView],
    /// Its steering, if the kernel tells.
    pub steering: Option<&'a SteerView>,
    /// Its offload, if the kernel tells.
    pub offload: Option<&'a OffloadView>,
    /// Number of the newest event.
    pub revision: u64,
}

/// What is wanted beside the ordinary families.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Detail {
    /// Security associations of encrypted tunnels.
    pub tunnels: bool,
    /// How long frames stayed by switch and queue, in place of all together: the page is of few switches.
    pub latency: bool,
}

/// A family of a kind of thing: its name, its help, the value of one.
type Of<T, V = u64> = (&'static str, &'static str, fn(&T) -> V);

/// The whole page.
pub fn page(snapshot: &Snapshot<'_>, detail: Detail, seen: &mut Seen) -> String {
    let mut page = Page::default();
    node(&mut page, snapshot);
    workers(&mut page, &snapshot.workers.workers);
    rungs(&mut page, snapshot);
    ports(&mut page, snapshot.ports);
    queues(&mut page, snapshot.ports, &mut seen.queues);
    switches(&mut page, snapshot.switches);
    drops(&mut page, snapshot.switches, &mut seen.drops);
    latency(&mut page, snapshot, detail.latency);
    if let Some(view) = snapshot.steering.filter(|view| !view.interfaces.is_empty()) {
        steering(&mut page, view);
    }
    if let Some(view) = snapshot.offload {
        offload(&mut page, view);
    }
    if detail.tunnels {
        tunnels(&mut page, snapshot.ports);
    }
    page.into_text()
}

fn node(page: &mut Page, snapshot: &Snapshot<'_>) {
    let Snapshot { node, workers, revision, .. } = *snapshot;
    page.gauge("suiro_build_info", "1, with the version.").is(&[("version", &node.version)], 1);
    let start = (workers.at_ns / 1_000_000_000).saturating_sub(node.uptime_s);
    page.gauge("suiro_start_time_seconds", "When it began to serve, since 1970.").is(&[], start);
    page.gauge("suiro_revision", "Number of the newest event (suiro events).").is(&[], revision);
    page.gauge("suiro_switches", "Switches in service.").is(&[], node.switches);
    page.gauge("suiro_ports", "Ports, open or not.").is(&[], node.ports);
    let count = |faulty: &dyn Fn(&PortView) -> bool| {
        snapshot.ports.iter().filter(|port| faulty(port)).count()
    };
    let faults = [
        ("configuration", node.config_faults.len()),
        ("store", usize::from(node.store.fault.is_some())),
        ("left_out", node.store.left_out),
        ("switch", snapshot.switches.iter().filter(|switch| switch.fault.is_some()).count()),
        ("port", count(&|port| port.fault.is_some())),
    ];
    let mut family =
        page.gauge("suiro_faults", "What is wrong now; suiro status and port show say why.");
    for (kind, number) in faults {
        family.is(&[("kind", &kind)], number);
    }
}

fn workers(page: &mut Page, workers: &[WorkerView]) {
    let counters: [Of<WorkerView>; 7] = [
        ("suiro_worker_frames_total", "Frames received from its ports.", |w| w.frames),
        ("suiro_worker_taken_over_total", "Frames that other workers handed over.", |w| {
            w.taken_over
        }),
        ("suiro_worker_batches_total", "Rounds that had frames.", |w| w.batches),
        ("suiro_worker_empty_polls_total", "Polls that found none.", |w| w.empty_polls),
        ("suiro_worker_sleeps_total", "Times it went to sleep.", |w| w.sleeps),
        ("suiro_worker_restarts_total", "Panics survived.", |w| w.restarts),
        (
            "suiro_worker_went_on_total",
            "Frames that crossed more vlinks than one pass allows.",
            |w| w.went_on,
        ),
    ];
    for (name, help, value) in counters {
        let mut family = page.counter(name, help);
        for worker in workers {
            family.is(&[("worker", &worker.worker), ("core", &worker.core)], value(worker));
        }
    }
    let mut cycles = page.counter("suiro_worker_cycles_total", "Timestamp counts spent, by stage.");
    for worker in workers {
        let stages = [
            ("rx", worker.cycles_rx),
            ("pipeline", worker.cycles_pipeline),
            ("tx", worker.cycles_tx),
            ("polling", worker.cycles_polling),
        ];
        for (stage, spent) in stages {
            let labels: [(&str, &dyn Display); 3] =
                [("worker", &worker.worker), ("core", &worker.core), ("stage", &stage)];
            cycles.is(&labels, spent);
        }
    }
    let mut speed = page.gauge("suiro_worker_cycles_per_second", "Timestamp counts a second.");
    for worker in workers {
        speed.is(&[("worker", &worker.worker)], worker.cycles_per_s);
    }
    let mut cache =
        page.counter("suiro_cache_lookups_total", "Packets by the answer of the flow cache.");
    for worker in workers {
        let answers = [
            ("hit", worker.cache.hits),
            ("absent", worker.cache.absent),
            ("stale", worker.cache.stale),
            ("passed_by", worker.cache.passed_by),
        ];
        for (answer, packets) in answers {
            cache.is(&[("worker", &worker.worker), ("answer", &answer)], packets);
        }
    }
}

/// Frames by where they were processed: on a worker, by a rung of its ladder, or past it.
fn rungs(page: &mut Page, snapshot: &Snapshot<'_>) {
    let workers = &snapshot.workers.workers;
    let past = snapshot.offload.map(|view| &view.rungs[..]).unwrap_or_default();
    let help = "Frames by where they were processed; without a worker: past the switch.";
    let mut frames = page.counter("suiro_rung_frames_total", help);
    for worker in workers {
        for rung in &worker.rungs {
            frames.is(&[("worker", &worker.worker), ("rung", &rung.rung)], rung.frames);
        }
    }
    for rung in past {
        frames.is(&[("worker", &""), ("rung", &rung.name)], rung.frames);
    }
    let mut bytes = page.counter("suiro_rung_bytes_total", "Bytes of these frames.");
    for worker in workers {
        for rung in &worker.rungs {
            bytes.is(&[("worker", &worker.worker), ("rung", &rung.rung)], rung.bytes);
        }
    }
    for rung in past {
        bytes.is(&[("worker", &""), ("rung", &rung.name)], rung.bytes);
    }
}

fn ports(page: &mut Page, ports: &[PortView]) {
    let counted: [Of<PortView, [u64; 2]>; 3] = [
        ("suiro_port_frames_total", "Frames; received: rx, sent: tx.", |port| {
            [port.counters.rx_frames, port.counters.tx_frames]
        }),
        ("suiro_port_bytes_total", "Bytes of these frames, Ethernet header included.", |port| {
            [port.counters.rx_bytes, port.counters.tx_bytes]
        }),
        (
            "suiro_port_drops_total",
            "Frames lost at the port; suiro port show has the reasons.",
            |port| {
                [&port.counters.rx_drops, &port.counters.tx_drops]
                    .map(|drops| drops.iter().map(|one| one.frames).sum())
            },
        ),
    ];
    for (name, help, value) in counted {
        let mut family = page.counter(name, help);
        for port in ports {
            for (direction, value) in ["rx", "tx"].iter().zip(value(port)) {
                family.is(
                    &[("switch", &port.switch), ("port", &port.name), ("direction", direction)],
                    value,
                );
            }
        }
    }
    let mut down = page.gauge("suiro_port_down", "1 for each port that carries nothing now.");
    for port in ports.iter().filter(|port| !(port.up && port.carrier)) {
        let cause = match (&port.fault, port.admin_up, port.carrier) {
            (Some(_), ..) => "fault",
            (None, false, _) => "admin",
            (None, true, false) => "carrier",
            (None, true, true) => "interface",
        };
        down.is(&[("switch", &port.switch), ("port", &port.name), ("cause", &cause)], 1);
    }
}

fn queues(page: &mut Page, ports: &[PortView], first: &mut First) {
    let (own, rest): (Vec<_>, Vec<_>) = kept_queues(ports).partition(|(port, queue)| {
        first.has(format!("{} {} {}", port.switch, port.name, queue.id))
    });
    let families: [Of<PortQueueView>; 4] = [
        ("suiro_queue_frames_total", "Frames that left by the queue.", |queue| queue.tx_frames),
        ("suiro_queue_bytes_total", "Their bytes.", |queue| queue.tx_bytes),
        ("suiro_queue_errors_total", "Frames that did not leave by it.", |queue| queue.tx_errors),
        ("suiro_queue_waiting_frames", "Frames that wait in it.", |queue| queue.waiting),
    ];
    for (name, help, value) in families {
        let mut family = match name.ends_with("_total") {
            true => page.counter(name, help),
            false => page.gauge(name, help),
        };
        for (port, queue) in &own {
            let labels: [(&str, &dyn Display); 3] =
                [("switch", &port.switch), ("port", &port.name), ("queue", &queue.id)];
            family.is(&labels, value(queue));
        }
        if !rest.is_empty() {
            let sum: u64 = rest.iter().map(|(_, queue)| value(queue)).sum();
            family.is(&[("switch", &"other"), ("port", &"other"), ("queue", &"other")], sum);
        }
    }
}

/// Queues that were asked for.
fn kept_queues(ports: &[PortView]) -> impl Iterator<Item = (&PortView, &PortQueueView)> {
    ports.iter().flat_map(|port| {
        let kept = port.spec.as_ref().is_some_and(|spec| !spec.queue.is_empty());
        port.queue.iter().filter(move |_| kept).map(move |queue| (port, queue))
    })
}

fn switches(page: &mut Page, switches: &[SwitchView]) {
    let gauges: [Of<SwitchView>; 2] = [
        ("suiro_switch_flows", "Its rules.", |switch| switch.flows.into()),
        ("suiro_switch_controllers", "Controllers that are connected.", |switch| {
            switch.connections.iter().filter(|one| one.controller && one.auxiliary == 0).count()
                as u64
        }),
    ];
    for (name, help, value) in gauges {
        let mut family = page.gauge(name, help);
        for switch in switches {
            family.is(&[("switch", &switch.name)], value(switch));
        }
    }
    let counters: [Of<SwitchView>; 2] = [
        ("suiro_switch_packet_ins_total", "Frames sent to controllers.", |switch| {
            switch.packet_ins
        }),
        ("suiro_switch_packet_outs_total", "Frames sent by controllers.", |switch| {
            switch.packet_outs
        }),
    ];
    for (name, help, value) in counters {
        let mut family = page.counter(name, help);
        for switch in switches {
            family.is(&[("switch", &switch.name)], value(switch));
        }
    }
}

/// Drops by reason: those that there were.
fn drops(page: &mut Page, switches: &[SwitchView], first: &mut First) {
    let mut family =
        page.counter("suiro_drops_total", "Frames lost, by reason, at switches and their ports.");
    let mut other = None;
    for switch in switches {
        for drop in switch.drops.iter().filter(|drop| drop.frames > 0) {
            match first.has(format!("{} {}", switch.name, drop.reason)) {
                true => {
                    family.is(&[("switch", &switch.name), ("reason", &drop.reason)], drop.frames);
                }
                false => *other.get_or_insert(0) += drop.frames,
            }
        }
    }
    if let Some(frames) = other {
        family.is(&[("switch", &"other"), ("reason", &"other")], frames);
    }
}

/// How long frames stayed, and waited in queues: each switch and queue, or all together.
fn latency(page: &mut Page, snapshot: &Snapshot<'_>, each: bool) {
    let help = "How long frames stayed, from the round that received them until they had left.";
    let mut stayed = page.histogram("suiro_sojourn_seconds", help);
    match each {
        true => snapshot.switches.iter().for_each(|switch| {
            for (class, times) in classes(&switch.latency) {
                stayed.took(&[("switch", &switch.name), ("class", &class)], times);
            }
        }),
        false => classes(&snapshot.workers.latency).into_iter().for_each(|(class, times)| {
            stayed.took(&[("class", &class)], times);
        }),
    }
    let help = "How long frames waited in ports' queues that had to wait.";
    let mut waited = page.histogram("suiro_queue_wait_seconds", help);
    if !each {
        waited.took(&[], &snapshot.workers.queue_wait);
        return;
    }
    for (port, queue) in kept_queues(snapshot.ports) {
        let labels: [(&str, &dyn Display); 3] =
            [("switch", &port.switch), ("port", &port.name), ("queue", &queue.id)];
        waited.took(&labels, &queue.wait);
    }
}

fn classes(times: &Latencies) -> [(&'static str, &Latency); 2] {
    [("received", &times.received), ("handed", &times.handed)]
}

fn steering(page: &mut Page, view: &SteerView) {
    let mut frames =
        page.counter("suiro_steer_frames_total", "Frames that were handed to each core.");
    for interface in &view.interfaces {
        for (core, count) in &interface.frames_by_core {
            frames.is(&[("interface", &interface.name), ("core", core)], count);
        }
    }
    let mut moves = page.counter("suiro_steer_moves_total", "Moves of units from core to core.");
    for interface in &view.interfaces {
        moves.is(&[("interface", &interface.name)], interface.moves);
    }
    let mut units =
        page.gauge("suiro_steer_units", "Flow groups and rules that are placed on the core.");
    for core in &view.cores {
        units.is(&[("core", &core.core), ("role", &core.role)], core.units);
    }
    let mut load = page
        .gauge("suiro_core_load_ratio", "Share of the core's time in the last moments, by stage.");
    for core in &view.cores {
        for (stage, percent) in &core.load_percent {
            load.is(&[("core", &core.core), ("stage", stage)], percent / 100.0);
        }
    }
}

fn offload(page: &mut Page, view: &OffloadView) {
    page.gauge("suiro_offload_on", "1 while flows may leave the workers.")
        .is(&[], u8::from(view.on));
    page.counter("suiro_offload_moves_total", "Flows that left the workers.").is(&[], view.moves);
    let help = "Flows that came back within a second.";
    page.counter("suiro_offload_flaps_total", help).is(&[], view.flaps);
    let mut flows = page.gauge("suiro_offload_flows", "Flows past the workers, by rung.");
    for rung in &view.rungs {
        flows.is(&[("rung", &rung.name)], rung.flows);
    }
    let help = "Frames past the workers that a limit refused.";
    let mut limited = page.counter("suiro_offload_limited_frames_total", help);
    for rung in &view.rungs {
        limited.is(&[("rung", &rung.name)], rung.limited);
    }
}

fn tunnels(page: &mut Page, ports: &[PortView]) {
    let mut packets = page.counter("suiro_sa_packets_total", "Packets of a security association.");
    for port in ports {
        for sa in &port.sas {
            let spi = format!("{:#x}", sa.spi);
            let labels: [(&str, &dyn Display); 4] = [
                ("switch", &port.switch),
                ("port", &port.name),
                ("direction", &sa.direction),
                ("spi", &spi),
            ];
            packets.is(&labels, sa.packets);
        }
    }
}

#[cfg(test)]
mod tests;
