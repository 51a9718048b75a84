//! The guest's end of a port.

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::os::fd::AsFd;
use std::time::Duration;
use testbed::sys::PacketSocket;

/// Longest wait for a frame that must come. Chosen: far above what a loaded machine needs.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// One guest.
pub struct Guest {
    socket: PacketSocket,
    /// The port's number.
    pub port: u32,
}

impl Guest {
    /// Opens the guest's interface in its namespace.
    pub fn open(netns: &str, interface: &str, port: u32) -> Self {
        let socket = inside(netns, || PacketSocket::open(interface, PATIENCE));
        Self { socket: socket.unwrap_or_else(|error| panic!("{interface}: {error}")), port }
    }

    /// Sends a frame into the switch.
    pub fn send(&self, frame: &[u8]) {
        self.socket.send(frame).unwrap();
    }

    /// Everything that came out of the switch before the frame that ends in `marker`.
    pub fn receive_until(&self, marker: &[u8]) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        loop {
            let frame = self.socket.receive();
            let frame = frame.unwrap_or_else(|error| {
                panic!("port {}: the marker never came: {error}; came: {frames:02x?}", self.port)
            });
            if frame.ends_with(marker) {
                return frames;
            }
            frames.push(frame);
        }
    }

    /// The next frame that comes out of the switch.
    pub fn receive(&self) -> Vec<u8> {
        let frame = self.socket.receive();
        frame.unwrap_or_else(|error| panic!("port {}: no frame came: {error}", self.port))
    }

    /// Everything that has come out of the switch, without waiting.
    pub fn receive_waiting(&self) -> Vec<Vec<u8>> {
        std::iter::from_fn(|| self.socket.receive_waiting().unwrap()).collect()
    }
}

/// Runs `work` inside a network namespace; what it opens there stays there.
fn inside<T: Send>(netns: &str, work: impl FnOnce() -> T + Send) -> T {
    let file = std::fs::File::open(format!("/run/netns/{netns}")).unwrap();
    std::thread::scope(|scope| {
        let enter_and_work = move || {
            move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
            work()
        };
        scope.spawn(enter_and_work).join().unwrap()
    })
}
