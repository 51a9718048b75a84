//! `suiro guest`.

use super::{Context, out};
use crate::args::GuestCommand;
use crate::failure::Failure;
use crate::table::{Table, dash};
use api::exec::ExecRequest;
use api::{GuestView, LogView, quoted};
use std::io::{stderr, stdin, stdout};

/// `suiro guest`.
pub fn run(context: &Context, command: GuestCommand) -> Result<(), Failure> {
    match command {
        GuestCommand::List => {
            let guests: Vec<GuestView> = context.client.get("/v1/guests")?;
            context.print(&guests, |guests| listed(guests))
        }
        GuestCommand::Show { name } => {
            let guest: GuestView = context.client.get(&path(&name))?;
            context.print(&guest, shown)
        }
        GuestCommand::Logs { name } => {
            let log: LogView = context.client.get(&format!("{}/log", path(&name)))?;
            context.print(&log, |log| log.text.clone())
        }
        GuestCommand::Exec { name, command } => {
            let request = ExecRequest { command, terminal: None };
            let path = format!("{}/exec", path(&name));
            let to: (&mut dyn std::io::Write, &mut dyn std::io::Write) =
                (&mut stdout(), &mut stderr());
            match context.client.exec(&path, &request, stdin(), to, || None)? {
                0 => out(""),
                status => Err(Failure::Ended(status)),
            }
        }
    }
}

fn path(name: &str) -> String {
    format!("/v1/guests/{}", quoted(name))
}

fn listed(guests: &[GuestView]) -> String {
    let columns =
        ["GUEST", "PART", "CONDITION", ">RESTARTS", ">PID", ">CPU s", ">MEMORY", "NAMESPACE"];
    let mut table = Table::new(&columns);
    for guest in guests {
        table.row(vec![
            guest.spec.name.clone(),
            guest.part.clone(),
            guest.condition.word().into(),
            guest.restarts.to_string(),
            dash(guest.pid),
            dash(guest.uses.cpu_us.map(seconds)),
            dash(guest.uses.memory.map(kib)),
            guest.spec.netns.to_string(),
        ]);
    }
    table.to_string()
}

fn shown(guest: &GuestView) -> String {
    let GuestView { spec, uses, .. } = guest;
    let command = match spec.command.is_empty() {
        true => "none".into(),
        false => spec.command.join(" "),
    };
    let mut text = format!(
        "guest {} of part {}\n  condition   {}\n  namespace   {}\n  command     {command}\n  restarts    {}\n",
        spec.name,
        guest.part,
        guest.condition.word(),
        spec.netns,
        guest.restarts,
    );
    guest.pid.iter().for_each(|pid| text += &format!("  process     {pid}\n"));
    guest.last_end.iter().for_each(|end| text += &format!("  last end    {end}\n"));
    let limit =
        |limit: Option<String>| limit.map_or_else(String::new, |limit| format!(" of {limit}"));
    if let Some(cpu) = uses.cpu_us {
        let limit = limit(spec.cpu_milli.map(|milli| format!("{milli} thousandths of a core")));
        text += &format!("  processor   {} s{limit}\n", seconds(cpu));
    }
    if let Some(memory) = uses.memory {
        text += &format!("  memory      {}{}\n", kib(memory), limit(spec.memory.map(kib)));
    }
    if let Some(pids) = uses.pids {
        let limit = limit(spec.pids.map(|pids| pids.to_string()));
        text += &format!("  processes   {pids}{limit}\n");
    }
    for interface in &spec.interface {
        text += &format!("  interface   {} {}\n", interface.name, interface.addresses.join(" "));
    }
    guest.fault.iter().for_each(|fault| text += &format!("  waits for   {fault}\n"));
    text
}

fn seconds(us: u64) -> String {
    format!("{}.{:02}", us / 1_000_000, us / 10_000 % 100)
}

fn kib(bytes: u64) -> String {
    format!("{} KiB", bytes >> 10)
}
