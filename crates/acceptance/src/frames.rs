//! Datagrams and counters inside guests.

use crate::Lab;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::net::UdpSocket;
use std::os::fd::AsFd;

/// Runs `work` inside a network namespace; what it opens there stays there.
pub fn inside<T: Send>(netns: &str, work: impl FnOnce() -> T + Send) -> T {
    let file = std::fs::File::open(format!("/run/netns/{netns}")).unwrap();
    std::thread::scope(|scope| {
        let enter_and_work = move || {
            move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
            work()
        };
        scope.spawn(enter_and_work).join().unwrap()
    })
}

/// Sends `count` datagrams of `size` bytes to `to`, each from a port of its own.
pub fn send_datagrams(lab: &Lab, from: &str, to: &str, (count, size): (usize, usize)) {
    inside(&lab.guest(from), || {
        let payload = vec![7; size];
        for _ in 0..count {
            let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
            socket.send_to(&payload, to).unwrap();
        }
    });
}

/// Frames that a guest's interface has received.
pub fn received(lab: &Lab, guest: &str) -> u64 {
    let words = ["-n", &lab.guest(guest), "-j", "-s", "link", "show", "dev", "eth0"];
    let output = std::process::Command::new("ip").args(words).output().unwrap();
    let links: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    links[0]["stats64"]["rx"]["packets"].as_u64().unwrap()
}
