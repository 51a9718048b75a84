//! A node's place with guests on ports of every kind. Guest `g3` has 10.0.0.3 and 02:00:00:00:00:03 on its `eth0`.

use crate::{Place, sh};
use std::ffi::OsStr;
use std::ops::{Deref, DerefMut};
use std::process::{Command, Stdio};

/// Kinds of ports that guests are on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// suiro makes the guest's interface.
    Tap,
    /// A veth pair, its near end by packet socket.
    AfPacket,
    /// A veth pair, its near end by XDP.
    AfXdp,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Tap, Self::AfPacket, Self::AfXdp];

    fn name(self) -> &'static str {
        match self {
            Self::Tap => "tap",
            Self::AfPacket => "af_packet",
            Self::AfXdp => "af_xdp",
        }
    }
}

/// The place; the node is its [`Place`]'s.
pub struct Lab(Place);

impl Deref for Lab {
    type Target = Place;

    fn deref(&self) -> &Place {
        &self.0
    }
}

impl DerefMut for Lab {
    fn deref_mut(&mut self) -> &mut Place {
        &mut self.0
    }
}

impl Lab {
    /// A place with a running node and these guests, who have no interface yet.
    pub fn running(guests: &[&str]) -> Self {
        let mut lab = Self::new(guests);
        lab.0.start();
        lab
    }

    /// The same without the node.
    pub fn new(guests: &[&str]) -> Self {
        let lab = Self(Place::new(guests));
        sh(&["ip", "-n", &lab.netns, "link", "set", "lo", "up"]);
        for netns in guests.iter().map(|guest| lab.guest(guest)).chain([lab.netns.clone()]) {
            // Nobody says anything by himself: frames can be counted.
            let quiet = "echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6";
            sh(&["ip", "netns", "exec", &netns, "sh", "-c", quiet]);
        }
        lab
    }

    /// The address of a guest.
    pub fn ip(guest: &str) -> String {
        format!("10.0.0.{}", number(guest))
    }

    /// The MAC address of a guest.
    pub fn mac(guest: &str) -> String {
        format!("02:00:00:00:00:{:02x}", number(guest))
    }

    /// Puts a guest on a new port of a switch. The port has the guest's name.
    pub fn connect(&self, switch: &str, guest: &str, kind: Kind) {
        let (netns, mac) = (self.guest(guest), Self::mac(guest));
        let port = ["port", "add", switch, guest, "--type", kind.name()];
        if kind == Kind::Tap {
            let inside = ["--interface", "eth0", "--netns", &netns, "--mac", &mac];
            self.suiro(&[&port[..], &inside].concat());
            self.set_up(guest);
        } else {
            self.cable(guest);
            self.suiro(&port);
        }
    }

    /// A cable from the node's namespace, where its end has the guest's name, to the guest.
    pub fn cable(&self, guest: &str) {
        let (netns, mac) = (self.guest(guest), Self::mac(guest));
        let near = ["ip", "-n", &self.netns, "link", "add", guest, "type", "veth"];
        let far = ["peer", "name", "eth0", "address", &mac, "netns", &netns];
        sh(&[&near[..], &far].concat());
        sh(&["ip", "-n", &self.netns, "link", "set", guest, "up"]);
        self.set_up(guest);
    }

    /// Gives a guest its address and sets its interface up.
    pub fn set_up(&self, guest: &str) {
        self.address(guest, "eth0", &format!("{}/24", Self::ip(guest)));
        sh(&["ip", "-n", &self.guest(guest), "link", "set", "eth0", "up"]);
    }

    /// A guest knows the address of another, which may not be there, and never asks for it.
    pub fn introduce(&self, guest: &str, other: &str) {
        let netns = self.guest(guest);
        let neighbour = ["ip", "-n", &netns, "neigh", "replace", &Self::ip(other), "lladdr"];
        sh(&[&neighbour[..], &[&Self::mac(other), "dev", "eth0", "nud", "permanent"]].concat());
    }

    /// Whether none of three quick pings is answered.
    pub fn is_cut_off(&self, from: &str, to: &str) -> bool {
        self.ping(from, to, &["-c", "3", "-i", "0.1", "-W", "0.3"]) == 0
    }

    /// Sends so many pings at once; returns how many were answered.
    pub fn exchange(&self, from: &str, to: &str, count: u32) -> u32 {
        self.ping(from, to, &at_once(count))
    }

    /// Whether a guest reaches another within some tries.
    pub fn talk(&self, from: &str, to: &str) -> bool {
        self.reaches(from, &Self::ip(to))
    }

    fn ping(&self, from: &str, to: &str, options: &[impl AsRef<OsStr>]) -> u32 {
        let netns = self.guest(from);
        let words = ["netns", "exec", &netns, "ping", "-q", &Self::ip(to)];
        let output = Command::new("ip").args(words).args(options).stderr(Stdio::null()).output();
        let text = String::from_utf8(output.unwrap().stdout).unwrap();
        // "3 packets transmitted, 0 received, …"; nothing at all where there is no route while an interface is down.
        let received = text.split(", ").find_map(|part| part.strip_suffix(" received"));
        received.map_or(0, |count| count.parse().unwrap())
    }
}

fn number(guest: &str) -> u8 {
    guest.trim_start_matches(char::is_alphabetic).parse().expect("a guest's name ends in a number")
}

/// Options of ping (iputils) for so many at once, with two seconds for the answers. For what is missing it waits two round trips or one interval,
/// whichever is longer, so with a short interval a busy machine may answer too late; the first `-l` pings do not wait for the interval.
pub fn at_once(count: u32) -> [String; 4] {
    ["-i2".into(), "-W2".into(), format!("-l{count}"), format!("-c{count}")]
}
