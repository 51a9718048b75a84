//! Who else on the host moves interrupts.

use super::Finding;
use std::path::Path;

pub(super) fn examine(root: &Path) -> Vec<Finding> {
    vec![irqbalance(root)]
}

fn irqbalance(root: &Path) -> Finding {
    let runs = std::fs::read_dir(root.join("proc")).into_iter().flatten().flatten().any(|entry| {
        let comm = std::fs::read_to_string(entry.path().join("comm"));
        comm.is_ok_and(|name| name.trim() == "irqbalance")
    });
    if !runs {
        return Finding::ok("irqbalance", "not running");
    }
    let means = "it moves network interrupts between cores: steering works, but the core that unsteered frames stay on, and the cost of the driver, wander";
    let remedy = "systemctl disable --now irqbalance, or ban the interfaces' interrupts in its configuration";
    Finding::limited("irqbalance", "running", means, remedy)
}
