//! `suiro status`.

use super::Context;
use crate::bounds;
use crate::failure::Failure;
use crate::plural::counted;
use api::{Method, NodeView};

/// Shows the running node.
pub fn run(context: &Context) -> Result<(), Failure> {
    let view: NodeView = context.client.get("/v1/node")?;
    context.print(&view, |view| {
        let cores: Vec<_> = view.cores.iter().map(usize::to_string).collect();
        let mut text = format!(
            "suiro {}, process {}, up {} s, memory {} MiB of {}\n{}, {}; workers on cores {}\nconfiguration {}; sockets in {}\nstate in {}\n",
            view.version,
            view.pid,
            view.uptime_s,
            view.memory.used >> 20,
            view.memory.may >> 20,
            counted(view.switches, "switch", "switches"),
            counted(view.ports, "port", "ports"),
            cores.join(", "),
            view.config_file.as_deref().unwrap_or("none"),
            view.run_dir,
            view.store.file,
        );
        if !view.config_faults.is_empty() {
            text += "NOT IN FORCE: the configuration file is broken, and what was in force before it still is:\n";
            text.extend(view.config_faults.iter().map(|fault| format!("  {fault}\n")));
        }
        if let Some(fault) = &view.store.fault {
            text += &format!("NOT SAVED: {fault}\n");
        }
        if let Some(file) = &view.store.set_aside {
            text += &format!("the earlier state was damaged and is kept as {file}\n");
        }
        if view.store.left_out > 0 {
            let count = view.store.left_out;
            text += &format!("NOT IN FORCE: {count} kept things were damaged or not taken back at the start; the log names each\n");
        }
        if let Some(machine) = &view.store.copied_from {
            text += &format!("COPIED: the state was made on another machine ({machine}); if that still runs suiro, both have the same datapath ids and addresses\n");
        }
        if !view.bounds.is_empty() {
            text += "\n";
            text += &bounds::table(&view.bounds, bounds::now_ns());
        }
        text
    })
}

/// Has the node read its configuration file again.
pub fn reload(context: &Context) -> Result<(), Failure> {
    let view: NodeView = context.client.send(Method::POST, "/v1/node/reload", &())?;
    context.print(&view, |view| match &view.config_file {
        Some(file) => format!("{file} is in force\n"),
        None => "the node has no configuration file\n".into(),
    })
}
