//! The one node that every case's switch is on.

use super::bench::Bench;
use acceptance::{Place, sh};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};

/// A node that is started by the first case that needs it, and the switches that no case uses at the moment.
///
/// Its end ends the process and removes both namespaces, the guests' interfaces with them.
#[derive(Default)]
pub struct Node {
    place: OnceLock<Place>,
    next: AtomicU32,
    idle: Mutex<Vec<Bench>>,
}

impl Node {
    fn place(&self) -> &Place {
        self.place.get_or_init(|| {
            let mut place = Place::new(&["guests"]);
            // Nobody says anything by himself: every frame is a case's.
            let quiet = "echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6";
            for netns in [&place.guest("guests"), &place.netns] {
                sh(&["ip", "netns", "exec", netns, "sh", "-c", quiet]);
            }
            place.start();
            place
        })
    }

    /// The namespace of all guests.
    pub fn guests(&self) -> String {
        self.place().guest("guests")
    }

    /// A veth pair from the guests' `interface` to the node's namespace; returns the name of the near end, which is up.
    pub fn cable(&self, interface: &str) -> String {
        let (near, netns) = (format!("n{interface}"), &self.place().netns);
        let far = ["peer", "name", interface, "netns", &self.guests()];
        sh(&[&["ip", "-n", netns, "link", "add", &near, "type", "veth"][..], &far].concat());
        sh(&["ip", "-n", netns, "link", "set", &near, "up"]);
        near
    }

    /// A number that no switch had yet.
    pub fn number(&self) -> u32 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// The management socket of a switch.
    pub fn socket(&self, switch: &str) -> PathBuf {
        self.place().path(&format!("run/{switch}.mgmt"))
    }

    /// A request to the local API that must succeed; returns the answer's body.
    #[track_caller]
    pub fn api(&self, method: &str, path: &str, body: &serde_json::Value) -> String {
        let text = if body.is_null() { String::new() } else { body.to_string() };
        let (status, answer) = self.try_api(method, path, &text);
        assert!((200..300).contains(&status), "{method} {path}: {status} {answer}\n{}", self.log());
        answer
    }

    /// A request to the local API: status and body.
    pub fn try_api(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let answer = self.place().raw(request.as_bytes(), acceptance::Then::Listen);
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        (status, answer.split_once("\r\n\r\n").map_or(String::new(), |(_, body)| body.to_owned()))
    }

    /// What the node logged.
    pub fn log(&self) -> String {
        self.place().log()
    }

    /// A switch that no case uses, as good as new but for counters that OpenFlow cannot reset.
    pub fn take(&self) -> Bench {
        let mut idle = self.idle.lock().unwrap();
        while let Some(bench) = idle.pop() {
            if bench.session.is_open() {
                return bench;
            }
        }
        drop(idle);
        Bench::make(self)
    }

    /// Gives a switch back after a case that passed.
    pub fn give_back(&self, mut bench: Bench) {
        bench.clear();
        self.idle.lock().unwrap().push(bench);
    }
}
