//! What an interface can do, and which of its settings fight steering.

use super::Finding;
use netlink::{Netlink, XdpFeatures, xdp_features};
use std::path::Path;

/// What the kernel says of an interface's XDP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Xdp {
    /// There is no such interface.
    NoInterface,
    /// The kernel does not say.
    Unknown,
    /// What its driver can do.
    Driver(XdpFeatures),
}

impl Xdp {
    /// Asks about an interface of the calling thread's network namespace.
    pub(super) fn of(name: &str) -> Self {
        match Netlink::new().and_then(|netlink| netlink.link(name)) {
            Ok(Some(link)) => {
                xdp_features(link.index).ok().flatten().map_or(Self::Unknown, Self::Driver)
            }
            Ok(None) => Self::NoInterface,
            Err(_) => Self::Unknown,
        }
    }
}

/// Interfaces worth a look: those with hardware, or all but the loopback where none has.
pub(super) fn usual(root: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(root.join("proc/self/net/dev")).unwrap_or_default();
    let names = text.lines().skip(2).filter_map(|line| line.split_once(':'));
    let names: Vec<String> = names.map(|(name, _)| name.trim().to_owned()).collect();
    let class = root.join("sys/class/net");
    let physical: Vec<String> =
        names.iter().filter(|name| class.join(name).join("device").exists()).cloned().collect();
    if physical.is_empty() {
        names.into_iter().filter(|name| name != "lo").collect()
    } else {
        physical
    }
}

pub(super) fn examine(root: &Path, name: &str, known: Xdp) -> Vec<Finding> {
    if known == Xdp::NoInterface {
        let thing = format!("interface {name}");
        let means = "nothing can be said of it";
        return vec![Finding::missing(
            thing,
            "there is no interface of that name here",
            means,
            "see `ip link`",
        )];
    }
    vec![xdp(root, name, known), rps(root, name)]
}

fn xdp(root: &Path, name: &str, known: Xdp) -> Finding {
    let thing = format!("{name}: XDP");
    let driver = driver(root, name);
    let means = "it cannot be steered: Linux loses frames that are sent to another core from behind the driver";
    let remedy = "use another driver, or RPS for it (rps_cpus)";
    match known {
        Xdp::Driver(features) if features.can_redirect() => {
            Finding::ok(thing, format!("native, {driver}"))
        }
        Xdp::Driver(features) if features.runs_programs() => {
            let found = format!("native without redirection, {driver}");
            Finding::limited(thing, found, means, remedy)
        }
        Xdp::Driver(_) => {
            let found = format!("not in the driver, {driver}");
            Finding::limited(thing, found, means, remedy)
        }
        _ => {
            let found = format!("the kernel does not say (needs Linux 6.3), {driver}");
            let means = "whether it is native shows when it is attached";
            Finding::limited(
                thing,
                found,
                means,
                format!("try: suiro steer attach {name}; suiro steer list"),
            )
        }
    }
}

fn driver(root: &Path, name: &str) -> String {
    let link = std::fs::read_link(root.join("sys/class/net").join(name).join("device/driver"));
    let driver = link.ok().and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
    driver.map_or_else(|| "a virtual interface".into(), |driver| format!("driver {driver}"))
}

fn rps(root: &Path, name: &str) -> Finding {
    let thing = format!("{name}: RPS");
    let queues = root.join("sys/class/net").join(name).join("queues");
    let set = std::fs::read_dir(&queues).into_iter().flatten().flatten().any(|queue| {
        let cpus = std::fs::read_to_string(queue.path().join("rps_cpus")).unwrap_or_default();
        cpus.chars().any(|digit| digit.is_ascii_hexdigit() && digit != '0')
    });
    if !set {
        return Finding::ok(thing, "off");
    }
    let means = "the kernel moves frames once more, by hash, after they were steered: they are not processed where the policy says";
    let remedy =
        format!("for f in /sys/class/net/{name}/queues/rx-*/rps_cpus; do echo 0 >$f; done");
    Finding::limited(thing, "on", means, remedy)
}
