//! A file system for pins and two namespaces joined by a veth, gone when the test is, also when it fails.

use place::{Core, CoreId, CoreTable};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use rustix::thread::{CpuSet, LinkNameSpaceType, move_into_link_name_space, sched_setaffinity};
use std::ffi::CStr;
use std::fs::File;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::{Command, id};
use wire::build::{Frame, Ipv4};
use xdp::steer::{Attached, Host, Interface, Options};

/// Pins and namespaces of one test.
pub struct Lab {
    name: String,
    /// What is steered.
    pub host: Option<Host>,
}

/// Address of the steered end.
pub const HERE: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);

impl Lab {
    /// `None` when the user asked to skip.
    ///
    /// # Panics
    /// Without root, with the remedy.
    pub fn new(test: &str) -> Option<Self> {
        if std::env::var_os("SUIRO_SKIP_PRIVILEGED").is_some_and(|value| value == "1") {
            eprintln!("skipped: SUIRO_SKIP_PRIVILEGED=1");
            return None;
        }
        assert!(
            rustix::process::geteuid().is_root(),
            "this test loads programs into the kernel: run it as root, or set SUIRO_SKIP_PRIVILEGED=1 to skip it"
        );
        let mut lab = Self { name: format!("su-{test}-{}", id()), host: None };
        std::fs::create_dir_all(lab.pins()).expect("a directory for pins");
        mount("bpf", lab.pins(), "bpf", MountFlags::empty(), None::<&CStr>).expect("mount -t bpf");
        lab.host = Some(Host::open(&lab.root()).expect("the host's programs load"));
        for place in ["far", "near"] {
            run(&format!("ip netns add {}", lab.netns(place)));
            // Else its neighbour discovery comes through the program whenever it likes, and is counted.
            lab.set_ipv6(place, "default", false);
        }
        let (far, near) = (lab.netns("far"), lab.netns("near"));
        run(&format!("ip -n {near} link add eth0 type veth peer name eth0 netns {far}"));
        for (place, host) in [("near", 1), ("far", 2)] {
            lab.ip(place, "link set lo up");
            lab.ip(place, &format!("addr add 10.9.0.{host}/24 dev eth0"));
            lab.ip(place, "link set eth0 up");
        }
        Some(lab)
    }

    fn pins(&self) -> PathBuf {
        std::env::temp_dir().join(&self.name)
    }

    /// Where everything is pinned.
    pub fn root(&self) -> PathBuf {
        self.pins().join("suiro/steer")
    }

    pub fn netns(&self, place: &str) -> String {
        format!("{}-{place}", self.name)
    }

    pub fn ip(&self, place: &str, arguments: &str) -> String {
        run(&format!("ip -n {} {arguments}", self.netns(place)))
    }

    /// Whether an interface, or those to come (`default`), speak IPv6.
    pub fn set_ipv6(&self, place: &str, interface: &str, on: bool) {
        let path = format!("/proc/sys/net/ipv6/conf/{interface}/disable_ipv6");
        inside(&self.netns(place), || std::fs::write(path, if on { "0" } else { "1" }))
            .expect("root may");
    }

    /// The near end of the veth.
    pub fn interface(&self) -> Interface {
        self.interface_of("eth0")
    }

    /// One beside it.
    pub fn interface_of(&self, name: &str) -> Interface {
        let text = self.ip("near", &format!("-o link show dev {name}"));
        let index = text.split(':').next().and_then(|index| index.trim().parse().ok());
        Interface { name: name.into(), index: index.expect("an index") }
    }

    /// Steers the near end.
    pub fn attach(&mut self, options: &Options) -> Attached {
        let interface = self.interface();
        let netns = self.netns("near");
        let host = self.host.as_mut().expect("a host");
        inside(&netns, || Attached::attach(host, &interface, options)).expect("it attaches")
    }

    pub fn host(&mut self) -> &mut Host {
        self.host.as_mut().expect("a host")
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        for place in ["far", "near"] {
            let _ = Command::new("ip").args(["netns", "del", &self.netns(place)]).status();
        }
        let _ = unmount(self.pins(), UnmountFlags::DETACH);
        let _ = std::fs::remove_dir_all(self.pins());
    }
}

/// Does `work` on a thread inside a namespace.
pub fn inside<R: Send>(netns: &str, work: impl FnOnce() -> R + Send) -> R {
    std::thread::scope(|scope| {
        let worker = scope.spawn(move || {
            enter(netns);
            work()
        });
        worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Moves the calling thread.
pub fn enter(netns: &str) {
    let file = File::open(format!("/run/netns/{netns}")).expect("the namespace is there");
    let network = Some(LinkNameSpaceType::Network);
    move_into_link_name_space(file.as_fd(), network).expect("root may enter");
}

/// Keeps the calling thread on one core.
pub fn pin(core: usize) {
    let mut cores = CpuSet::new();
    cores.set(core);
    sched_setaffinity(None, &cores).expect("the core is there");
}

/// Options with both cores' queues.
pub fn options() -> Options {
    Options { cores: vec![CoreId(0), CoreId(1)], ..Options::default() }
}

/// Cores 0 and 1, idle, nothing pinned.
pub fn two_cores() -> CoreTable {
    CoreTable::new(vec![Core::new(CoreId(0)), Core::new(CoreId(1))]).expect("a table")
}

/// A UDP frame from that port.
pub fn udp(port: u16) -> Vec<u8> {
    Frame::ethernet([2; 6], [4; 6]).ipv4(Ipv4::default()).udp(port, 9).payload(&[0; 18]).finish()
}

/// Runs a command line; its output, or a panic with what it said.
pub fn run(line: &str) -> String {
    let mut words = line.split_whitespace();
    let program = words.next().expect("a program");
    let output = Command::new(program).args(words).output();
    let output = output.unwrap_or_else(|error| panic!("{line}: {error}"));
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
