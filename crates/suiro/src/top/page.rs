//! One page of `suiro top`.

use super::rates::{PortRates, Rates};
use super::{queues, rungs};
use crate::bounds;
use crate::plural::counted;
use crate::table::{Table, dash, short, time};

/// Orders of the ports; the busiest first is the usual one.
pub const ORDERS: &[&str] = &["load", "drops", "name"];

/// The page, as long as it is.
pub fn whole(rates: &Rates, order: &str) -> String {
    let in_order = ports_in(order, rates);
    let parts = [
        header(rates),
        rungs::table(&rates.rungs),
        cores(rates),
        switches(rates),
        drops(rates),
        bounds::table(&rates.bounds, rates.now_ns),
        ports(&in_order),
        queues::table(&in_order),
    ];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
}

fn header(rates: &Rates) -> String {
    let busiest = rates.workers.iter().map(|worker| worker.busy_percent).fold(0.0_f64, f64::max);
    let (frames, past) = rungs::all_and_past(&rates.rungs);
    let past = if past > 0.0 { format!(", {past:.0} % past the workers") } else { String::new() };
    format!(
        "suiro: {}, {}, {} frames/s{past}, busiest core {busiest:.0} % (over {:.1} s)\n",
        counted(rates.switches.len(), "switch", "switches"),
        counted(rates.ports.len(), "port", "ports"),
        short(frames),
        rates.seconds
    )
}

fn cores(rates: &Rates) -> String {
    let mut table = Table::new(&[
        ">CORE",
        ">BUSY %",
        ">POLLING %",
        ">FRAMES/S",
        ">CYCLES/FRAME",
        ">FRAMES/ROUND",
        ">CACHED %",
        ">QUEUES",
        ">RESTARTS",
        "FRAMES/S BY RUNG",
    ]);
    for worker in &rates.workers {
        let by_rung = worker
            .frames_per_s_by_rung
            .iter()
            .map(|rate| format!("{}:{}", rate.rung, short(rate.frames_per_s)));
        table.row(vec![
            worker.core.to_string(),
            format!("{:.1}", worker.busy_percent),
            format!("{:.1}", worker.polling_percent),
            short(worker.frames_per_s),
            format!("{:.0}", worker.cycles_per_frame),
            format!("{:.1}", worker.frames_per_round),
            worker.cache_hits_percent.map_or("-".into(), |share| format!("{share:.1}")),
            worker.queues.to_string(),
            worker.restarts.to_string(),
            by_rung.collect::<Vec<_>>().join(" "),
        ]);
    }
    table.to_string()
}

fn switches(rates: &Rates) -> String {
    let mut table = Table::new(&[
        "SWITCH",
        ">PORTS",
        ">FLOWS",
        ">CONTROLLERS",
        ">FRAMES/S",
        ">PACKET-INS/S",
        ">STAY P50",
        ">P99",
        ">DROPS/S",
    ]);
    for switch in &rates.switches {
        table.row(vec![
            switch.name.clone(),
            switch.ports.to_string(),
            switch.flows.to_string(),
            switch.controllers.to_string(),
            short(switch.frames_per_s),
            short(switch.packet_ins_per_s),
            dash(switch.stay_p50_ns.map(time)),
            dash(switch.stay_p99_ns.map(time)),
            short(switch.drops_per_s.values().fold(0.0, |sum, rate| sum + rate)),
        ]);
    }
    table.to_string()
}

fn drops(rates: &Rates) -> String {
    let mut table = Table::new(&["DROPS ON", "REASON", ">FRAMES/S"]);
    let mut any = false;
    for switch in &rates.switches {
        for (reason, rate) in &switch.drops_per_s {
            any = true;
            table.row(vec![switch.name.clone(), reason.clone(), short(*rate)]);
        }
    }
    if any { table.to_string() } else { "no drops\n".into() }
}

/// Stable: idle ports stay in the node's order.
fn ports_in<'a>(order: &str, rates: &'a Rates) -> Vec<&'a PortRates> {
    let mut ports: Vec<_> = rates.ports.iter().collect();
    let most = |ports: &mut Vec<&PortRates>, of: fn(&PortRates) -> f64| {
        ports.sort_by(|a, b| of(b).total_cmp(&of(a)));
    };
    match order {
        "name" => ports.sort_by(|a, b| (&a.switch, &a.name).cmp(&(&b.switch, &b.name))),
        "drops" => most(&mut ports, |port| port.drops_per_s),
        _ => most(&mut ports, |port| port.rx_frames_per_s + port.tx_frames_per_s),
    }
    ports
}

fn ports(ports: &[&PortRates]) -> String {
    let mut table = Table::new(&[
        "PORT",
        "TYPE",
        "STATE",
        ">RX/S",
        ">RX MBIT/S",
        ">TX/S",
        ">TX MBIT/S",
        ">DROPS/S",
        "RX/S BY CORE",
    ]);
    for port in ports {
        let by_core = port.rx_frames_per_s_by_core.iter().filter(|(_, rate)| **rate > 0.0);
        let by_core: Vec<_> =
            by_core.map(|(core, rate)| format!("{core}:{}", short(*rate))).collect();
        table.row(vec![
            format!("{}:{}", port.switch, port.name),
            port.kind.into(),
            port.state.into(),
            short(port.rx_frames_per_s),
            format!("{:.1}", port.rx_mbps),
            short(port.tx_frames_per_s),
            format!("{:.1}", port.tx_mbps),
            short(port.drops_per_s),
            by_core.join(" "),
        ]);
    }
    table.to_string()
}
