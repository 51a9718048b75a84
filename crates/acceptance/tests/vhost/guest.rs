//! Guests of a switch, each with a socket that it listens on.

use super::{Lab, Ofctl, until};
use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;
use testbed::driver::frontend::{Device, Listener, Shape};
use testbed::driver::plain::PlainGuest;

/// Longest that anything here may take. Chosen: far above what a loaded machine needs.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// A node with a switch `sw0`, and sockets of guests.
pub struct Guests {
    pub lab: Lab,
    listeners: Vec<Listener>,
}

impl Guests {
    /// `count` ports `vm1`, `vm2`, … that call guests, who are not there yet.
    pub fn called(count: usize) -> Self {
        let lab = Lab::running(&[]);
        lab.suiro(&["switch", "add", "sw0"]);
        let mut guests = Self { lab, listeners: Vec::new() };
        for index in 1..=count {
            guests.listen(index);
            guests.add(index, &[]);
        }
        guests
    }

    /// The next guest listens on its socket; it has no port yet.
    pub fn listen(&mut self, index: usize) {
        assert_eq!(self.listeners.len() + 1, index, "guests come in order");
        self.listeners.push(Listener::bind(&self.path(index)).unwrap());
    }

    pub fn path(&self, index: usize) -> PathBuf {
        self.lab.path(&format!("vm{index}.sock"))
    }

    pub fn add(&self, index: usize, options: &[&str]) -> String {
        let (name, path) = (format!("vm{index}"), self.path(index).display().to_string());
        let words = ["port", "add", "sw0", &name, "--type", "vhost-user", "--socket", &path];
        self.lab.suiro(&[&words[..], options].concat())
    }

    /// The guest comes, or comes back.
    pub fn connect(&self, index: usize, shape: Shape) -> PlainGuest {
        let socket = self.listeners[index - 1].accept(PATIENCE).unwrap();
        PlainGuest::connect(socket, shape).unwrap()
    }

    /// The same for a guest that does to its rings what it likes.
    pub fn connect_device(&self, index: usize, shape: &Shape) -> Device {
        let socket = self.listeners[index - 1].accept(PATIENCE).unwrap();
        Device::connect(socket, shape).unwrap()
    }

    /// No guest listens any more.
    pub fn leave(&mut self) {
        self.listeners.clear();
    }

    /// What the node tells of the guest.
    pub fn shown(&self, index: usize) -> Value {
        self.lab.json(&["port", "show", "sw0", &format!("vm{index}")])["guest"].clone()
    }

    #[track_caller]
    pub fn until(&self, index: usize, state: &str) {
        until(&format!("guest {index} is {state}: {}", self.lab.log()), || {
            self.shown(index)["state"] == state
        });
    }

    /// What guest 1 sends to 10.0.0.0/8 goes to guest 2, to 11.0.0.0/8 to guest 3, and all else to nobody.
    pub fn part_by_address(&self) -> Ofctl<'_> {
        let ofctl = Ofctl::management(&self.lab, "sw0");
        ofctl.run("del-flows", &[]);
        ofctl.run("add-flow", &["ip,in_port=1,nw_dst=10.0.0.0/8,actions=output:2"]);
        ofctl.run("add-flow", &["ip,in_port=1,nw_dst=11.0.0.0/8,actions=output:3"]);
        // Without it what finds no rule is bridged.
        ofctl.run("add-flow", &["priority=0,actions=drop"]);
        ofctl
    }

    /// A pair of guests that were seen to be ready.
    pub fn pair(&self) -> [PlainGuest; 2] {
        let pair = [self.connect(1, Shape::default()), self.connect(2, Shape::default())];
        self.until(1, "ready");
        self.until(2, "ready");
        pair
    }
}

/// A frame from one guest to all, which says so in its payload.
pub fn frame(from: u8, text: &str) -> Vec<u8> {
    let mut frame =
        [&[0xff; 6][..], &[2, 0, 0, 0, 0, from], &[0x88, 0xb5], text.as_bytes()].concat();
    frame.resize(frame.len().max(60), 0);
    frame
}

/// Whether what one guest sends reaches the other, byte for byte.
#[track_caller]
pub fn talk([one, other]: &mut [PlainGuest; 2], text: &str) {
    let sent = frame(1, text);
    one.send(&sent, PATIENCE).unwrap();
    let got = other.receive(PATIENCE).unwrap().expect("the frame comes in time");
    assert_eq!(got.bytes, sent);
}
