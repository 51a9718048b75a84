//! Steering as tables and lines.

use crate::table::{Table, dash, short};
use api::steer::{CoreView, InterfaceView, PolicySpec, VmView, called};

/// What was attached.
pub fn attached(view: &InterfaceView) -> String {
    let hook = view.hook.as_deref().unwrap_or("not steered");
    let note = view.note.as_ref().map_or_else(String::new, |note| format!(" ({note})"));
    let again = if view.adopted { ", taken up from an earlier node" } else { "" };
    format!("{} is steered, {hook}{note}{again}\n", called(&view.name))
}

/// All interfaces, with notes and faults below.
pub fn interfaces(views: &[InterfaceView]) -> String {
    let mut table = Table::new(&[
        "INTERFACE",
        "HOOK",
        ">FRAMES",
        ">SENT",
        ">STAYED",
        ">DROPPED",
        ">RULES",
        ">PLACED",
        ">MOVES",
        "FRAMES BY CORE",
    ]);
    for view in views {
        let by_core = view.frames_by_core.iter().filter(|(_, frames)| **frames > 0);
        let by_core: Vec<_> =
            by_core.map(|(core, frames)| format!("{core}:{}", short(*frames as f64))).collect();
        let sums = Sums::of(view);
        table.row(vec![
            view.name.clone(),
            view.hook.clone().unwrap_or_else(|| "fault".into()),
            sums.all().to_string(),
            sums.sent.to_string(),
            sums.stayed.to_string(),
            sums.dropped.to_string(),
            view.entries.to_string(),
            view.placed.to_string(),
            view.moves.to_string(),
            by_core.join(" "),
        ]);
    }
    let mut text = table.to_string();
    for view in views {
        if let Some(note) = &view.note {
            text += &format!("{}: {note}\n", view.name);
        }
        if let Some(fault) = &view.fault {
            text += &format!(
                "{}: {}: {}\n    remedy: {}\n",
                view.name, fault.step, fault.cause, fault.remedy
            );
        }
    }
    text
}

/// Frames of an interface by what became of them, in three words.
#[derive(Clone, Copy, Default)]
pub struct Sums {
    /// Sent to another core.
    pub sent: u64,
    /// Left on the core that they arrived on.
    pub stayed: u64,
    /// Dropped.
    pub dropped: u64,
}

impl Sums {
    /// Sums the verdicts.
    pub fn of(view: &InterfaceView) -> Self {
        let mut sums = Self::default();
        for (verdict, frames) in &view.frames {
            match verdict.as_str() {
                "sent" => sums.sent += frames,
                "queue-full" | "draining" | "piece" => sums.dropped += frames,
                // Counted beside what became of the frame.
                "fragment-followed" | "fragment-orphan" | "summed" | "unknown" => {}
                _ => sums.stayed += frames,
            }
        }
        sums
    }

    /// All frames.
    pub fn all(self) -> u64 {
        self.sent + self.stayed + self.dropped
    }
}

/// The core table.
pub fn cores(views: &[CoreView]) -> String {
    let mut table = Table::new(&[
        "CORE", ">NUMA", ">SIBLING", "ROLE", ">DRIVER%", ">PACKET%", ">VHOST%", ">GUEST%",
        ">OTHER%", ">LOAD%", ">UNITS", ">FRAMES", "PINNED",
    ]);
    for view in views {
        let load = |stage: &str| {
            format!("{:.1}", view.load_percent.get(stage).copied().unwrap_or_default())
        };
        table.row(vec![
            view.core.to_string(),
            view.numa.to_string(),
            dash(view.sibling),
            view.role.clone(),
            load("driver"),
            load("packet"),
            load("vhost"),
            load("guest"),
            load("other"),
            load("total"),
            view.units.to_string(),
            view.frames.to_string(),
            dash(Some(view.pinned.join(" ")).filter(|text| !text.is_empty())),
        ]);
    }
    table.to_string()
}

/// Virtual machines.
pub fn vms(views: &[VmView]) -> String {
    let mut table =
        Table::new(&["MACHINE", ">ID", ">TENANT", "CORES", "ADDRESSES", "KNOWN BY", ">PROCESS"]);
    for view in views {
        let list = |parts: Vec<String>| dash(Some(parts.join(",")).filter(|text| !text.is_empty()));
        let spec = &view.spec;
        table.row(vec![
            view.name.clone(),
            dash(Some(spec.id).filter(|id| *id != 0)),
            dash(Some(spec.tenant).filter(|tenant| *tenant != 0)),
            list(spec.cores.iter().map(ToString::to_string).collect()),
            list(spec.addresses.iter().map(ToString::to_string).collect()),
            view.source.clone(),
            dash(view.pid),
        ]);
    }
    table.to_string()
}

/// The policy, in lines.
pub fn policy(policy: &PolicySpec) -> String {
    let list = |cores: &[u16]| cores.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    let reserved = if policy.reserved.is_empty() { "none".into() } else { list(&policy.reserved) };
    format!(
        "policy      {}\nthreshold   {} %, priority flows {} %\ncores       {}\nreserved    {reserved}\nmoves       {}\n",
        policy.policy.name(),
        policy.threshold_percent,
        policy.priority_threshold_percent,
        policy.cores.as_deref().map_or_else(|| "all".into(), list),
        if policy.moves { "on" } else { "off" },
    )
}
