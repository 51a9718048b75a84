//! `suiro queue`.

use super::Context;
use super::port::path as port_path;
use crate::args::QueueCommand;
use crate::failure::Failure;
use crate::table::{Table, dash, time};
use api::{Fault, Latency, Method, PortQueueView, PortView, QueueLimits, SwitchName};

/// Does what the command says.
pub fn run(context: &Context, command: QueueCommand) -> Result<(), Failure> {
    match command {
        QueueCommand::Add { switch, port, queue, min_rate, max_rate } => {
            let path = format!("{}/queues/{queue}", port_path(&switch, &port));
            let limits = QueueLimits { min_rate, max_rate };
            let view: PortQueueView = context.client.send(Method::PUT, &path, &limits)?;
            context.print(&view, |view| {
                format!("port {port} of switch {switch} has queue {}, {}\n", view.id, rates(view))
            })
        }
        QueueCommand::List { switch, port } => {
            let views = ports(context, switch.as_ref(), port.as_deref())?;
            context.print(&views, |views| list(views))
        }
        QueueCommand::Show { switch, port, queue } => {
            let path = format!("{}/queues", port_path(&switch, &port));
            let views: Vec<PortQueueView> = context.client.get(&path)?;
            let missing = || Failure::Refused(missing(&switch, &port, queue));
            let found = views.into_iter().find(|view| view.id == queue).ok_or_else(missing)?;
            context.print(&found, |view| show(&switch, &port, view))
        }
        QueueCommand::Del { switch, port, queues, if_exists } => {
            queues.iter().try_for_each(|queue| {
                let path = format!("{}/queues/{queue}", port_path(&switch, &port));
                let thing = format!("queue {queue} of port {port} of switch {switch}");
                context.remove(&path, &thing, if_exists)
            })
        }
    }
}

/// A port and its queues, as `list` prints them in JSON.
#[derive(serde::Serialize)]
struct Listed {
    switch: String,
    port: String,
    rate: Option<api::Rate>,
    queue: Vec<PortQueueView>,
}

fn ports(
    context: &Context,
    switch: Option<&SwitchName>,
    port: Option<&str>,
) -> Result<Vec<Listed>, Failure> {
    let views: Vec<PortView> = match (switch, port) {
        (Some(switch), Some(port)) => vec![context.client.get(&port_path(switch, port))?],
        (Some(switch), None) => context.client.get(&format!("/v1/switches/{switch}/ports"))?,
        (None, _) => context.client.get("/v1/ports")?,
    };
    let listed = |view: PortView| Listed {
        switch: view.switch.to_string(),
        port: view.name.to_string(),
        rate: view.rate,
        queue: view.queue,
    };
    Ok(views.into_iter().filter(|view| !view.queue.is_empty()).map(listed).collect())
}

fn list(ports: &[Listed]) -> String {
    let mut table = Table::new(&[
        "SWITCH", "PORT", ">RATE", ">QUEUE", ">MIN", ">MAX", ">SENT", ">BYTES", ">WAITING",
        ">DROPS",
    ]);
    for port in ports {
        for view in &port.queue {
            table.row(vec![
                port.switch.clone(),
                port.port.clone(),
                dash(port.rate),
                view.id.to_string(),
                dash(view.min_rate),
                dash(view.max_rate),
                view.tx_frames.to_string(),
                view.tx_bytes.to_string(),
                view.waiting.to_string(),
                view.tx_errors.to_string(),
            ]);
        }
    }
    table.to_string()
}

fn show(switch: &SwitchName, port: &str, view: &PortQueueView) -> String {
    format!(
        "queue {} of port {port} of switch {switch}\n  min rate    {}\n  max rate    {}\n  sent        {} frames, {} bytes\n  waiting     {} frames\n  waited      {}\n  dropped     {} frames\n",
        view.id,
        dash(view.min_rate),
        dash(view.max_rate),
        view.tx_frames,
        view.tx_bytes,
        view.waiting,
        waited(&view.wait),
        view.tx_errors
    )
}

fn waited(times: &Latency) -> String {
    let quantile = |share| times.quantile_ns(share).map(time);
    match (quantile(0.5), quantile(0.99)) {
        (Some(half), Some(most)) => {
            format!("{} frames: p50 {half}, p99 {most}", times.frames())
        }
        _ => "no frame had to".into(),
    }
}

/// A queue in one line, for the port that has it.
pub fn line(view: &PortQueueView) -> String {
    let PortQueueView { id, tx_frames, tx_bytes, tx_errors, waiting, .. } = view;
    format!(
        "queue {id:<5} {}; {tx_frames} frames, {tx_bytes} bytes, {waiting} waiting, {tx_errors} dropped",
        rates(view)
    )
}

fn rates(view: &PortQueueView) -> String {
    match (view.min_rate, view.max_rate) {
        (None, None) => "no rates".into(),
        (Some(min), None) => format!("at least {min} bit/s"),
        (None, Some(max)) => format!("at most {max} bit/s"),
        (Some(min), Some(max)) => format!("at least {min} bit/s, at most {max} bit/s"),
    }
}

fn missing(switch: &SwitchName, port: &str, queue: u32) -> Fault {
    Fault::new(
        format!("queue {queue} of port {port} of switch {switch}"),
        "find it",
        "the port has no queue of that number",
        format!("list its queues with: suiro queue list {switch} {port}"),
    )
}
