//! What passes on the underlay, frame by frame, and what of tenants can be seen in it.

use super::frames::{ENDS, MARK};
use crate::domain::layout::Layout;
use crate::domain::wide;
use anyhow::{Context, Result};
use std::io::ErrorKind;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use testbed::netns;
use testbed::sys::PacketSocket;

/// Between two looks whether it is over.
const LOOK: Duration = Duration::from_millis(50);
/// VXLAN's port (RFC 7348), and its header with that of UDP.
const VXLAN: u16 = 4789;
const HEADERS: usize = 8 + 8;
const LLDP: [u8; 2] = [0x88, 0xcc];

/// What has passed.
#[derive(Default, Debug)]
pub struct Passed {
    /// Frames of tunnels.
    pub tunnels: u64,
    /// Other frames.
    pub others: u64,
    /// Frames that show what is a tenant's outside of a tunnel, or that no node sent.
    pub leaks: Vec<String>,
}

/// A watch at every node's cable.
pub struct Watch {
    over: &'static AtomicBool,
    cables: Vec<JoinHandle<Passed>>,
}

impl Watch {
    /// Begins it. Besides the marks of frames, these texts and addresses are a tenant's.
    pub fn begin(layout: &Layout, secrets: &[Vec<u8>]) -> Result<Self> {
        // It ends with the watch; a byte is not missed.
        let over: &'static AtomicBool = Box::leak(Box::new(AtomicBool::new(false)));
        let nodes: Vec<IpAddr> = layout
            .hosts()
            .flat_map(|node| [IpAddr::from(node.address4), IpAddr::from(node.address6)])
            .collect();
        let mut all = vec![MARK.to_vec(), ENDS[0].to_vec(), ENDS[1].to_vec()];
        all.extend_from_slice(secrets);
        let cable = |node| -> Result<JoinHandle<Passed>> {
            let cable = wide::cable(node);
            let socket = netns::enter(&layout.wide, || {
                PacketSocket::open(&cable, LOOK).context("a packet socket of the wide-area network")
            })?;
            let (nodes, all) = (nodes.clone(), all.clone());
            Ok(thread::spawn(move || watch(&socket, over, &nodes, &all)))
        };
        let cables = layout.nodes.iter().map(cable).collect::<Result<_>>()?;
        Ok(Self { over, cables })
    }

    /// Ends it.
    pub fn end(self) -> Passed {
        self.over.store(true, Ordering::Relaxed);
        let mut all = Passed::default();
        for cable in self.cables {
            let passed = cable.join().expect("a watch does not panic");
            all.tunnels += passed.tunnels;
            all.others += passed.others;
            all.leaks.extend(passed.leaks);
        }
        all
    }
}

fn watch(
    socket: &PacketSocket,
    over: &AtomicBool,
    nodes: &[IpAddr],
    secrets: &[Vec<u8>],
) -> Passed {
    let mut passed = Passed::default();
    while !over.load(Ordering::Relaxed) {
        match socket.receive() {
            Ok(frame) => judge(&frame, nodes, secrets, &mut passed),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(error) => {
                passed.leaks.push(format!("the watch cannot see: {error}"));
                return passed;
            }
        }
    }
    passed
}

/// Looks at one frame.
fn judge(frame: &[u8], nodes: &[IpAddr], secrets: &[Vec<u8>], passed: &mut Passed) {
    let head = tunnel(frame, nodes);
    match head {
        Some(_) => passed.tunnels += 1,
        None => passed.others += 1,
    }
    let open = &frame[..head.unwrap_or(frame.len())];
    let is_lldp = open.get(12..14) == Some(&LLDP);
    let shows = secrets.iter().any(|secret| open.windows(secret.len()).any(|some| some == secret));
    if is_lldp || shows {
        let start: Vec<String> = open.iter().take(48).map(|byte| format!("{byte:02x}")).collect();
        passed.leaks.push(start.join(""));
    }
}

/// How long what is outside of a tunnel's frame is, if it is one between two nodes.
fn tunnel(frame: &[u8], nodes: &[IpAddr]) -> Option<usize> {
    let is_node = |address: IpAddr| nodes.contains(&address);
    let end = match frame.get(12..14)? {
        [0x08, 0] => {
            let four =
                |at: usize| Some(IpAddr::from(<[u8; 4]>::try_from(frame.get(at..at + 4)?).ok()?));
            (*frame.get(23)? == 17 && is_node(four(26)?) && is_node(four(30)?)).then_some(34)?
        }
        [0x86, 0xdd] => {
            let six =
                |at: usize| Some(IpAddr::from(<[u8; 16]>::try_from(frame.get(at..at + 16)?).ok()?));
            (*frame.get(20)? == 17 && is_node(six(22)?) && is_node(six(38)?)).then_some(54)?
        }
        _ => return None,
    };
    let port = u16::from_be_bytes(frame.get(end + 2..end + 4)?.try_into().ok()?);
    (port == VXLAN && frame.len() >= end + HEADERS).then_some(end + HEADERS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_inside_a_tunnel_is_none_and_what_is_outside_is_a_leak() {
        let nodes = [IpAddr::from([192, 0, 2, 10]), IpAddr::from([192, 0, 2, 11])];
        let mut outer = vec![2; 12];
        outer.extend([8, 0, 0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 10, 192, 0, 2, 11]);
        outer.extend([0xc0, 1, 0x12, 0xb5, 0, 0, 0, 0, 8, 0, 0, 0, 0, 1, 0, 0]);
        outer.extend(MARK);
        let secrets = [MARK.to_vec()];
        let judged = |frame: &[u8]| {
            let mut passed = Passed::default();
            judge(frame, &nodes, &secrets, &mut passed);
            (passed.tunnels, passed.leaks.len())
        };
        assert_eq!(judged(&outer), (1, 0));
        outer[36] = 0;
        assert_eq!(judged(&outer), (0, 1), "another port");
        assert_eq!(judged(&[&[2; 12][..], &LLDP, &[0; 46]].concat()), (0, 1));
    }
}
