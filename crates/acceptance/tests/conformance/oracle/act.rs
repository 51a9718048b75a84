//! What each action makes of a frame (OpenFlow 1.3.5 §5.12, §7.2.5).

use super::frame::{Frame, Ip, Payload, Pbb, Shim, Tag, Transport};
use openflow::{Action, Oxm};

/// A TTL that a decrement finds at 0 or 1: the packet's way ends (§5.12, `OFPR_INVALID_TTL`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Expired;

/// Carries out an action. Outputs, groups and queues do not change a frame; an action without its header does nothing.
pub fn act(frame: &mut Frame, action: &Action) -> Result<(), Expired> {
    match action {
        Action::PushVlan(tpid) => push_vlan(frame, *tpid),
        Action::PopVlan if !frame.tags.is_empty() => drop(frame.tags.remove(0)),
        Action::PushMpls(eth_type) => push_mpls(frame, *eth_type),
        Action::PopMpls(eth_type) if !frame.shims.is_empty() => pop_mpls(frame, *eth_type),
        Action::PushPbb(_) => push_pbb(frame),
        Action::PopPbb => pop_pbb(frame),
        // A field of a header that the frame lacks is nobody else's: nothing is written (§7.2.5.8).
        Action::SetField(Oxm::Known { field, value, mask: None })
            if frame.get(*field).is_some() =>
        {
            *frame = frame.with(*field, *value);
        }
        Action::SetNwTtl(ttl) => drop(frame.ip().map(|ip| ip.ttl = *ttl)),
        Action::SetMplsTtl(ttl) => drop(frame.shims.first_mut().map(|shim| shim.ttl = *ttl)),
        Action::DecNwTtl => return frame.ip().map_or(Ok(()), |ip| decrement(&mut ip.ttl)),
        Action::DecMplsTtl => {
            return frame.shims.first_mut().map_or(Ok(()), |shim| decrement(&mut shim.ttl));
        }
        Action::CopyTtlOut => {
            if let [outer, inner, ..] = &mut ttls(frame)[..] {
                **outer = **inner;
            }
        }
        Action::CopyTtlIn => {
            if let [outer, inner, ..] = &mut ttls(frame)[..] {
                **inner = **outer;
            }
        }
        _ => {}
    }
    Ok(())
}

fn decrement(ttl: &mut u8) -> Result<(), Expired> {
    *ttl = ttl.checked_sub(1).filter(|ttl| *ttl > 0).ok_or(Expired)?;
    Ok(())
}

/// Id and priority are those of the tag that was outermost, or 0 (§5.12.1).
fn push_vlan(frame: &mut Frame, tpid: u16) {
    let (pcp, vid) = frame.tags.first().map_or((0, 0), |tag| (tag.pcp, tag.vid));
    frame.tags.insert(0, Tag { tpid, pcp, vid });
}

/// Label, class and TTL are those of the shim that was outermost; without one the TTL is IP's and the rest 0 (§5.12.1).
fn push_mpls(frame: &mut Frame, eth_type: u16) {
    let ttl = frame.ip().map_or(0, |ip| ip.ttl);
    let first = Shim { label: 0, tc: 0, bottom: true, ttl };
    let shim = frame.shims.first().map_or(first, |shim| Shim { bottom: false, ..*shim });
    frame.shims.insert(0, shim);
    (frame.mpls_type, frame.named) = (eth_type, None);
}

fn pop_mpls(frame: &mut Frame, eth_type: u16) {
    frame.shims.remove(0);
    frame.named = Some(eth_type);
}

/// The I-TAG comes right behind the addresses, which become the customer's too; the I-SID is that of the tag that was outermost, the
/// priority is the VLAN's (§5.12.1).
fn push_pbb(frame: &mut Frame) {
    let isid = match &frame.payload {
        Payload::Pbb(pbb) if frame.shims.is_empty() => pbb.isid,
        _ => 0,
    };
    let pcp = frame.tags.first().map_or(0, |tag| tag.pcp);
    let customer = Box::new(frame.clone());
    let payload = Payload::Pbb(Pbb { pcp, isid, customer });
    *frame = Frame { tags: vec![], shims: vec![], named: None, payload, ..frame.clone() };
}

/// The customer's frame is what is left, behind the backbone's tags.
fn pop_pbb(frame: &mut Frame) {
    let (Payload::Pbb(pbb), true) = (&frame.payload, frame.shims.is_empty()) else { return };
    let customer = (*pbb.customer).clone();
    let tags = [&frame.tags[..], &customer.tags].concat();
    *frame = Frame { tags, ..customer };
}

/// The TTLs of a frame, outermost first.
fn ttls(frame: &mut Frame) -> Vec<&mut u8> {
    let mut found: Vec<&mut u8> = frame.shims.iter_mut().map(|shim| &mut shim.ttl).collect();
    if let Payload::Ip(ip) = &mut frame.payload {
        let Ip { ttl, transport, .. } = ip;
        found.push(ttl);
        if let Transport::Ip(inner) = transport {
            found.push(&mut inner.ttl);
        }
    }
    found
}
