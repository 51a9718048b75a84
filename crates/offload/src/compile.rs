//! From what the tables say of a flow to its program.
//!
//! The flow is exact, so every field's old value is known, and edits become constants: whatever tables do to a frame in however many
//! steps, what is left is the difference between the key as it comes and as it leaves. What would need a look at a single frame is refused.

use crate::program::{Edit, FlowProgram, LimitId, MAX_LIMITS, MAX_SHAPES};
use crate::{Declined, EditKind, FlowReason, Tag};
use arrayvec::ArrayVec;
use flow::{Action, PortAt, PortNo, Resolved, To};
use wire::{Field, Key, eth_type, ip_proto};

/// Bytes before the tags and what an MTU limits.
const ETHERNET_HEADER: u32 = 14;
/// Bytes of a tag.
const TAG: u32 = 4;

/// What tables do not know of ports and meters.
pub trait Facts {
    /// The longest packet after Ethernet header and tags that leaves by a port of the flow's switch.
    ///
    /// # Errors
    /// Why frames can leave by it only from the worker.
    fn mtu(&self, exit: PortNo) -> Result<u32, Declined>;

    /// Appends the greatest rates of a queue and of its port, if they have any.
    ///
    /// # Errors
    /// Why only the worker can keep them.
    fn shapes(
        &self,
        exit: PortNo,
        queue: u32,
        out: &mut ArrayVec<LimitId, MAX_SHAPES>,
    ) -> Result<(), Declined> {
        let _ = (exit, queue, out);
        Ok(())
    }

    /// Appends the limits that a meter stands for: first the one that decides if several refuse a frame.
    ///
    /// # Errors
    /// Why only the worker can keep it.
    fn limits(&self, meter: u32, out: &mut ArrayVec<LimitId, MAX_LIMITS>) -> Result<(), Declined>;
}

impl FlowProgram {
    /// The program of a flow of which [`flow::Snapshot::resolve`] said `resolved`, asked with [`known`](crate::known()) bits.
    ///
    /// # Errors
    /// What keeps it on the worker.
    pub fn of(
        from: PortAt,
        key: &Key,
        resolved: &Resolved,
        facts: &impl Facts,
    ) -> Result<Self, Declined> {
        is_flow(key)?;
        let exit = exit(resolved)?;
        if resolved.remarks {
            return Err(FlowReason::MeterRemarks.into());
        }
        let limits = limits(resolved, facts)?;
        let mtu = facts.mtu(exit)?;
        let mut shapes = ArrayVec::new();
        facts.shapes(exit, resolved.queue, &mut shapes)?;
        let course = Course::over(key, &resolved.edits)?;
        let tags = |is_tagged: bool| if is_tagged { TAG } else { 0 };
        let (came, leaves) = (tags(Tag::of(key).is_some()), tags(course.tag.is_some()));
        let is_counted_once =
            resolved.entries.len() < 2 && resolved.limits.is_empty() && resolved.buckets.is_empty();
        if course.is_resized && !is_counted_once {
            return Err(FlowReason::Lengths.into());
        }
        Ok(Self {
            from,
            key: key.masked(&crate::told_apart(key)),
            edits: course.edits(key),
            exit: PortAt { port: exit, ..from },
            max_len: mtu.saturating_add(ETHERNET_HEADER + came),
            limits,
            queue: resolved.queue,
            shapes,
            credits: resolved.credits(),
            growth: leaves as i16 - came as i16,
            stamp: resolved.stamp.clone(),
            underlay: None,
            approach: None,
        })
    }
}

/// The buckets of the one meter on its way. Of several a rung cannot tell which one dropped a frame, and so what that counts for.
fn limits(
    resolved: &Resolved,
    facts: &impl Facts,
) -> Result<ArrayVec<LimitId, MAX_LIMITS>, Declined> {
    let mut limits = ArrayVec::new();
    match resolved.limits[..] {
        [] => {}
        [limit] if !limit.is_late => facts.limits(limit.meter, &mut limits)?,
        _ => return Err(FlowReason::Limits.into()),
    }
    Ok(limits)
}

/// Whether rungs tell the flow of such frames from others.
fn is_flow(key: &Key) -> Result<(), FlowReason> {
    let is = |field: Field, value: u16| key.get(field) == u128::from(value);
    let proto = key.get(Field::IpProto) as u8;
    let has_ports = matches!(proto, ip_proto::TCP | ip_proto::UDP);
    let talks = match key.get(Field::EthType) as u16 {
        eth_type::IPV4 => has_ports || proto == ip_proto::ICMP,
        eth_type::IPV6 => has_ports || proto == ip_proto::ICMPV6 && !is_discovery(key),
        _ => false,
    };
    let plain =
        is(Field::IpFrag, 0) && (is(Field::EthType, eth_type::IPV4) || is(Field::Ipv6Exthdr, 0));
    let bare = [Field::Metadata, Field::TunnelId, Field::TunSrc, Field::TunDst]
        .iter()
        .all(|&field| is(field, 0));
    if talks && plain && bare { Ok(()) } else { Err(FlowReason::NoSuchFlow) }
}

/// Router and neighbour messages (RFC 4861): their body is in the key.
fn is_discovery(key: &Key) -> bool {
    matches!(key.get(Field::IcmpType), 133..=137)
}

/// The one port that frames leave by.
fn exit(resolved: &Resolved) -> Result<PortNo, FlowReason> {
    match &resolved.exit {
        To::Port(_) if resolved.lost.is_some() => Err(FlowReason::SeveralExits),
        To::Port(port) => Ok(*port),
        To::Ports(_) => Err(FlowReason::SeveralExits),
        To::Several(ways) => {
            Err(match ways.iter().any(|way| matches!(way.to, To::Controller(_))) {
                true => FlowReason::ToController,
                false => FlowReason::SeveralExits,
            })
        }
        To::Controller(_) => Err(FlowReason::ToController),
        To::Drop(_) => Err(FlowReason::Dropped),
        To::Depends(field) => Err(FlowReason::DependsOn(*field)),
    }
}

/// A flow's frames as they are at one point of their way.
struct Course {
    key: Key,
    tag: Option<Tag>,
    dec_ttl: bool,
    /// Whether they had another length somewhere on their way: what counts them there counts other bytes.
    is_resized: bool,
}

/// Fields of the bytes after the tag that may be set, in the order of the bytes.
const SETTABLE: [Field; 9] = [
    Field::EthDst,
    Field::EthSrc,
    Field::IpDscp,
    Field::Ipv4Src,
    Field::Ipv4Dst,
    Field::Ipv6Src,
    Field::Ipv6Dst,
    Field::TpSrc,
    Field::TpDst,
];

impl Course {
    /// Frames of the flow after these edits.
    fn over(key: &Key, edits: &[Action]) -> Result<Self, FlowReason> {
        let mut course = Self { key: *key, tag: Tag::of(key), dec_ttl: false, is_resized: false };
        edits.iter().try_for_each(|action| course.edit(action).map_err(FlowReason::Edits))?;
        Ok(course)
    }

    fn edit(&mut self, action: &Action) -> Result<(), EditKind> {
        match *action {
            Action::PushVlan(tpid) => self.push(tpid),
            Action::EnsureVlan if self.tag.is_none() => self.push(Tag::TPID),
            Action::PopVlan => {
                self.is_resized |= self.tag.take().is_some();
                Ok(())
            }
            Action::SetField { of: Some(transport), .. } if !transport.is_named_by(&self.key) => {
                Ok(())
            }
            Action::SetField { field, value, mask, .. } => self.set(field, value, mask),
            Action::DecNwTtl if self.dec_ttl => Err(EditKind::DecTtlTwice),
            Action::DecNwTtl => {
                self.dec_ttl = true;
                Ok(())
            }
            Action::SetNwTtl(_) => Err(EditKind::SetTtl),
            Action::CopyTtlOut | Action::CopyTtlIn => Err(EditKind::CopyTtl),
            Action::PushMpls(_) => Err(EditKind::Mpls),
            Action::PushPbb(_) => Err(EditKind::Pbb),
            // Such headers a flow's frames do not have, and what is sent was said apart.
            Action::EnsureVlan
            | Action::PopMpls(_)
            | Action::PopPbb
            | Action::SetMplsTtl(_)
            | Action::DecMplsTtl
            | Action::Output(_)
            | Action::Group(_)
            | Action::SetQueue(_) => Ok(()),
        }
    }

    fn push(&mut self, tpid: u16) -> Result<(), EditKind> {
        self.is_resized = true;
        match self.tag.replace(Tag { tpid, tci: 0 }) {
            None => Ok(()),
            Some(_) => Err(EditKind::TwoTags),
        }
    }

    fn set(&mut self, field: Field, value: u128, mask: u128) -> Result<(), EditKind> {
        let is_ipv6 = self.key.get(Field::EthType) as u16 == eth_type::IPV6;
        let has_ports = matches!(self.key.get(Field::IpProto) as u8, ip_proto::TCP | ip_proto::UDP);
        let is_there = match field {
            Field::VlanVid | Field::VlanPcp => {
                self.set_tag(field, value, mask);
                return Ok(());
            }
            Field::EthDst | Field::EthSrc | Field::IpDscp => true,
            Field::Ipv4Src | Field::Ipv4Dst => !is_ipv6,
            Field::Ipv6Src | Field::Ipv6Dst => is_ipv6,
            Field::TpSrc | Field::TpDst => has_ports,
            // Headers that no frame of such a flow has.
            Field::ArpOp | Field::ArpSpa | Field::ArpTpa | Field::ArpSha | Field::ArpTha => false,
            Field::Ipv6NdTarget | Field::Ipv6NdSll | Field::Ipv6NdTll => false,
            Field::MplsLabel | Field::MplsTc | Field::MplsBos => false,
            Field::PbbIsid | Field::PbbUca => false,
            Field::Ipv6Flabel if !is_ipv6 => false,
            Field::IcmpType | Field::IcmpCode if has_ports => false,
            Field::TunnelId | Field::TunDst => return Err(EditKind::Tunnel),
            other => return Err(EditKind::Set(other)),
        };
        if is_there {
            let old = self.key.get(field);
            self.key.set(field, old & !mask | value & mask);
        }
        Ok(())
    }

    fn set_tag(&mut self, field: Field, value: u128, mask: u128) {
        let (bits, shift) = if field == Field::VlanPcp { (0xe000, 13) } else { (0xfff, 0) };
        let (value, mask) = ((value as u16) << shift, ((mask as u16) << shift) & bits);
        if let Some(tag) = &mut self.tag {
            tag.tci = tag.tci & !mask | value & mask;
        }
    }

    /// What makes `came` into this.
    fn edits(&self, came: &Key) -> ArrayVec<Edit, { crate::program::MAX_EDITS }> {
        let mut edits = ArrayVec::new();
        let had = Tag::of(came);
        if had.is_some() && had != self.tag {
            edits.push(Edit::PopVlan);
        }
        // Fields that share bits are told apart by what the frame is.
        let is_ipv6 = came.get(Field::EthType) as u16 == eth_type::IPV6;
        let is_shared = |field| matches!(field, Field::Ipv4Src | Field::Ipv4Dst) && is_ipv6;
        for &field in SETTABLE.iter().filter(|&&field| !is_shared(field)) {
            let (old, new) = (came.get(field), self.key.get(field));
            if old != new {
                edits.push(Edit::Set { field, old, new });
            }
        }
        if self.dec_ttl {
            edits.push(Edit::DecTtl);
        }
        if let Some(Tag { tpid, tci }) = self.tag.filter(|_| had != self.tag) {
            edits.push(Edit::PushVlan { tpid, tci });
        }
        edits
    }
}
