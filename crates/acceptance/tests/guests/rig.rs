//! Two machines `a` and `b` and a namespace `g3`, all on one switch.
//!
//! Each machine has three interfaces, so that every case finds the one that it is about:
//!
//! | interface | virtqueues | entries | offloads | socket made by |
//! |---|---|---|---|---|
//! | `eth0` | one split pair | 256 | all | the machine |
//! | `eth1` | two packed pairs | 1024 | all | the machine |
//! | `eth2` | one split pair, buffers not merged | 1024 | none | the switch |
//!
//! Any interface of `a` reaches any of `b`: each pair of them has a subnet of its own ([`Link`]).

use acceptance::{Lab, sh, until};
use std::ops::{Index, IndexMut};
use std::path::PathBuf;
use std::process::Command;
use testbed::guest::{Backend, Guest, GuestSpec, Listener, Nic};

/// Interfaces of a machine.
pub const NICS: usize = 3;

/// Largest MTU anywhere.
pub const JUMBO: u16 = 9000;

/// Entries of a long virtqueue, the most that QEMU allows.
pub const LONG: u16 = 1024;

/// The guest on a TAP.
pub const TAP: &str = "g3";

/// A machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Machine {
    /// The one of the addresses ending in 1.
    A,
    /// The one of the addresses ending in 2.
    B,
}

impl Machine {
    /// Both.
    pub const ALL: [Self; 2] = [Self::A, Self::B];

    fn name(self) -> &'static str {
        ["a", "b"][self as usize]
    }

    fn number(self) -> usize {
        self as usize + 1
    }

    /// The switch's port for an interface.
    pub fn port(self, nic: usize) -> String {
        format!("{}{nic}", self.name())
    }
}

/// An interface of `a` and one of `b`, by their numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link(pub usize, pub usize);

impl Link {
    /// Every one.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..NICS).flat_map(|a| (0..NICS).map(move |b| Self(a, b)))
    }

    /// The address of this machine's end.
    pub fn address(self, machine: Machine) -> String {
        format!("10.0.{}.{}", 10 * self.0 + self.1, machine.number())
    }

    /// This machine's interface.
    pub fn nic(self, machine: Machine) -> usize {
        match machine {
            Machine::A => self.0,
            Machine::B => self.1,
        }
    }
}

/// The address of a machine's interface, and that of `g3`, in the subnet of the two.
pub fn to_tap(machine: Machine, nic: usize) -> [String; 2] {
    let subnet = format!("10.1.{}", 10 * machine.number() + nic);
    [format!("{subnet}.{}", machine.number()), format!("{subnet}.3")]
}

/// The place and the machines in it.
pub struct Rig {
    /// The node's place with `g3`.
    pub lab: Lab,
    machines: [Option<Guest>; 2],
    /// MD5 of the file that every machine serves by HTTP.
    pub checksum: String,
    next_port: u16,
}

impl Index<Machine> for Rig {
    type Output = Guest;

    fn index(&self, machine: Machine) -> &Guest {
        self.machines[machine as usize].as_ref().expect("the machine runs")
    }
}

impl IndexMut<Machine> for Rig {
    fn index_mut(&mut self, machine: Machine) -> &mut Guest {
        self.machines[machine as usize].as_mut().expect("the machine runs")
    }
}

impl Rig {
    /// A node with two workers, a switch that learns, and the machines, who have their addresses.
    pub fn boot() -> Self {
        let mut lab = Lab::new(&[TAP]);
        let text = std::fs::read_to_string(lab.file()).unwrap();
        std::fs::write(lab.file(), text.replace("cores = [0]", "cores = [0, 1]")).unwrap();
        lab.start();
        lab.suiro(&["switch", "add", "sw0"]);
        lab.connect("sw0", TAP, acceptance::Kind::Tap);
        let mut rig =
            Self { lab, machines: [None, None], checksum: String::new(), next_port: 5201 };
        for (machine, nic) in Machine::ALL.into_iter().flat_map(|m| (0..NICS).map(move |n| (m, n)))
        {
            rig.add_port(machine, nic);
            let address = format!("{}/24", to_tap(machine, nic)[1]);
            rig.lab.address(TAP, "eth0", &address);
        }
        let specs = Machine::ALL.map(|machine| rig.spec(machine));
        let booted =
            Guest::boot_all(specs).unwrap_or_else(|error| panic!("{error:#}\n{}", rig.lab.log()));
        for (machine, guest) in Machine::ALL.into_iter().zip(booted) {
            println!(
                "machine {}: Linux {} after {:.1?}",
                machine.name(),
                guest.release,
                guest.start
            );
            rig.machines[machine as usize] = Some(guest);
            rig.configure(machine);
            rig.serve(machine);
        }
        rig
    }

    /// Some megabytes that are the same in all machines, by HTTP on port 80.
    fn serve(&mut self, machine: Machine) {
        let file = "mkdir -p /www && cat /lib/x86_64-linux-gnu/* /bin/busybox >/www/file && httpd -p 80 -h /www && md5sum </www/file";
        self.checksum = self.run(machine, file).split(' ').next().unwrap().to_owned();
    }

    fn socket(&self, machine: Machine, nic: usize) -> PathBuf {
        self.lab.path(&format!("{}.sock", machine.port(nic)))
    }

    fn add_port(&self, machine: Machine, nic: usize) {
        let (port, socket) = (machine.port(nic), self.socket(machine, nic));
        let socket = socket.to_str().unwrap();
        let mut words =
            vec!["port", "add", "sw0", &port, "--type", "vhost-user", "--socket", socket];
        words.extend([&["--mtu", "9000"][..], &["--queues", "2"], &["--server"]][nic]);
        self.lab.suiro(&words);
    }

    fn spec(&self, machine: Machine) -> GuestSpec {
        let nic = |nic: usize| {
            let (socket, mac) = (self.socket(machine, nic), mac(machine, nic));
            let listener = if nic == 2 { Listener::Switch } else { Listener::Guest };
            Nic::new(Backend::VhostUser { socket, listener }, &mac)
        };
        let plain = [
            "csum",
            "gso",
            "host_tso4",
            "host_tso6",
            "host_ecn",
            "host_ufo",
            "guest_csum",
            "guest_tso4",
            "guest_tso6",
        ];
        let plain = [&plain[..], &["guest_ecn", "guest_ufo", "mrg_rxbuf"]].concat();
        GuestSpec::new(machine.name())
            .cpus(2)
            .nic(nic(0).mtu(JUMBO))
            .nic(nic(1).packed().queues(2).entries(LONG))
            .nic(nic(2).without(&plain).entries(LONG))
    }

    /// Boots a machine that was killed.
    pub fn boot_again(&mut self, machine: Machine) {
        let guest = Guest::boot(&self.spec(machine))
            .unwrap_or_else(|error| panic!("{error:#}\n{}", self.lab.log()));
        self.machines[machine as usize] = Some(guest);
        self.configure(machine);
        self.serve(machine);
    }

    /// Kills a machine.
    pub fn kill(&mut self, machine: Machine) {
        self.machines[machine as usize].take().expect("the machine runs").kill();
    }

    /// Gives every interface of a machine its addresses and sets it up, with an MTU of 1500.
    pub fn configure(&self, machine: Machine) {
        // Each interface answers for its own addresses only, and nobody says anything by himself.
        let quiet = "echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6; echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6; \
                     echo 1 >/proc/sys/net/ipv4/conf/all/arp_ignore; echo 2 >/proc/sys/net/ipv4/conf/all/arp_announce";
        self.run(machine, quiet);
        for nic in 0..NICS {
            let links = Link::all().filter(|link| link.nic(machine) == nic);
            let addresses =
                links.map(|link| link.address(machine)).chain([to_tap(machine, nic)[0].clone()]);
            let add = |address| format!("ip addr replace {address}/24 dev eth{nic}");
            let commands: Vec<_> = addresses.map(add).collect();
            self.run(
                machine,
                &format!("{} && ip link set eth{nic} mtu 1500 up", commands.join(" && ")),
            );
        }
        // The driver uses one pair until it is told to use more.
        self.run(machine, "ethtool -L eth1 combined 2");
    }

    /// Sets the MTU of both ends.
    pub fn set_mtu(&self, link: Link, mtu: u16) {
        for machine in Machine::ALL {
            self.run(machine, &format!("ip link set eth{} mtu {mtu}", link.nic(machine)));
        }
    }

    /// Runs a command in a machine, which must succeed.
    #[track_caller]
    pub fn run(&self, machine: Machine, command: &str) -> String {
        self[machine]
            .run(command)
            .unwrap_or_else(|error| panic!("{error:#}\nlog:\n{}", self.lab.log()))
    }

    /// A port as it is shown.
    pub fn shown(&self, machine: Machine, nic: usize) -> serde_json::Value {
        self.lab.json(&["port", "show", "sw0", &machine.port(nic)])
    }

    /// Waits until the driver of an interface takes frames.
    pub fn until_ready(&self, machine: Machine, nic: usize) {
        let port = machine.port(nic);
        until(&format!("{port} is ready"), || {
            self.shown(machine, nic)["guest"]["state"] == "ready"
        });
    }

    /// A TCP port that no case had yet.
    pub fn port(&mut self) -> u16 {
        self.next_port += 1;
        self.next_port
    }
}

/// The MAC address of an interface.
pub fn mac(machine: Machine, nic: usize) -> String {
    format!("02:00:00:00:{:02x}:{nic:02x}", machine.number())
}

/// A command in the namespace of `g3`.
pub fn in_tap(lab: &Lab, program: &str) -> Command {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &lab.guest(TAP), program]);
    command
}

/// Sets a feature of `g3`'s interface.
pub fn set_tap_features(lab: &Lab, words: &[&str]) {
    let netns = lab.guest(TAP);
    sh(&[&["ip", "netns", "exec", &netns, "ethtool", "-K", "eth0"], words].concat());
}
