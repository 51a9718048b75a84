//! Whether flows can go past a port's worker at the kernel's tc hook.

use super::tx::PacketTx;
use crate::netns::Netns;
use crate::past::{Opening, Taker, one_queue};
use offload::PortReason;
use xdp::offload::TcPort;

/// What takes a port's flows, and a note where the system refused it.
pub(super) fn open(
    port: &Opening<'_>,
    netns: &Netns,
    senders: &[PacketTx],
) -> (Option<Taker<TcPort>>, Option<String>) {
    port.taker(netns, exit(port), |flows, interface| {
        let senders = senders.iter().map(PacketTx::socket).collect::<Result<_, _>>()?;
        Ok(TcPort::open(flows, &interface, senders)?)
    })
}

/// Whether flows can leave by the interface: straight into the other end of a veth.
fn exit(port: &Opening<'_>) -> Result<(), PortReason> {
    match port.link.peer {
        _ if port.link.kind != "veth" => Err(PortReason::ExitTakesNoFrames),
        Some(peer) if peer.netns_id.is_none() => Err(PortReason::SameNamespace),
        None => Err(PortReason::ExitTakesNoFrames),
        Some(_) => one_queue(port.interface),
    }
}
