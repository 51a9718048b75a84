//! What is known of a frame on its way: the bits of its key that edits have made, and those it came with.

use super::asked::Asked;
use crate::action::{Action, Transport};
use arrayvec::ArrayVec;
use wire::{Field, Key, VLAN_PRESENT, WORDS, eth_type, ip_proto};

/// Tags that are kept below pushed ones. Chosen: more than programs push.
const TAGS: usize = 8;

/// The VLAN bits of a key's second word.
const VLAN: u64 = 0xffff;

/// A frame as far as it is known.
#[derive(Clone)]
pub(super) struct Sketch {
    pub key: Key,
    /// Bits of `key` that are known.
    pub known: Key,
    /// Bits that are still those the frame came with.
    pub own: Key,
    /// Bits the frame came with on which all others depend.
    because: Key,
    /// VLAN bits below tags that were pushed: key, known and own.
    tags: ArrayVec<[u64; 3], TAGS>,
    nw_ttl: Ttl,
    mpls_ttl: Ttl,
    /// What the type names was hidden until now, so perhaps it is not whole.
    revealed: bool,
    /// So was what the IP protocol names.
    revealed_transport: bool,
    pub queue: u32,
    /// Header changes so far, in order.
    pub edits: Vec<Action>,
    /// The frame itself, if it is there whole: what it says of itself goes before what the key lets guess.
    pub whole: Option<Box<Asked>>,
}

/// What is known of a TTL.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ttl {
    /// The frame's own.
    Any,
    Is(u8),
    /// One that an edit set, or the frame's own: the Ethernet type says which.
    ByType,
}

/// What an edit does, beside changing the key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Edited {
    Done,
    /// A TTL that is known ran out.
    Expired,
    /// The edit contradicts the frame.
    Malformed,
    /// It depends on this field, which is not known.
    Depends(Field),
}

/// Whether a header is there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Present {
    Yes,
    No,
    /// This field, which is not known, says so.
    Depends(Field),
}

impl Sketch {
    /// A frame that came with the bits of `key` that are in `known`.
    pub fn new(key: &Key, known: &Key) -> Self {
        Self {
            key: key.masked(known),
            known: *known,
            own: Key([u64::MAX; WORDS]),
            because: Key::default(),
            tags: ArrayVec::new(),
            nw_ttl: Ttl::Any,
            mpls_ttl: Ttl::Any,
            revealed: false,
            revealed_transport: false,
            queue: 0,
            edits: Vec::new(),
            whole: None,
        }
    }

    /// A frame that is there whole.
    pub fn of(asked: &Asked) -> Self {
        Self { whole: Some(Box::new(asked.clone())), ..Self::new(&asked.key, &asked.known) }
    }

    /// The frame as it is now, if it is there whole.
    pub fn frame(&self) -> Option<Asked> {
        let frame = self.whole.as_deref()?;
        Some(Asked { known: self.known, ..frame.clone() })
    }

    /// Looks at these bits, and adds to `looked_at` what they rest on of the frame as it came.
    ///
    /// # Errors
    /// A field with a bit that is not known.
    pub fn look(&self, bits: &Key, looked_at: &mut Key) -> Result<(), Field> {
        self.note(bits, looked_at);
        let unknown = bits.without(&self.known);
        if unknown == Key::default() { Ok(()) } else { Err(self.name(&unknown)) }
    }

    /// Adds to `looked_at` what these bits rest on of the frame as it came.
    pub fn note(&self, bits: &Key, looked_at: &mut Key) {
        let mut changed = 0;
        for i in 0..WORDS {
            looked_at.0[i] |= bits.0[i] & self.own.0[i] & self.known.0[i];
            changed |= bits.0[i] & !self.own.0[i];
        }
        if changed != 0 {
            (0..WORDS).for_each(|i| looked_at.0[i] |= self.because.0[i]);
        }
    }

    /// Looks at one field.
    ///
    /// # Errors
    /// The field has a bit that is not known.
    pub fn field(&self, field: Field, looked_at: &mut Key) -> Result<u128, Field> {
        self.look(&whole(field), looked_at).map_err(|_| field)?;
        Ok(self.key.get(field))
    }

    /// Writes metadata.
    pub fn write_metadata(&mut self, value: u128, mask: u128) {
        self.write(Field::Metadata, value, mask);
        if let Some(frame) = &mut self.whole {
            let before = frame.key.get(Field::Metadata);
            frame.key.set(Field::Metadata, before & !mask | value & mask);
        }
    }

    /// Writes bits that do not come from the frame.
    fn write(&mut self, field: Field, value: u128, mask: u128) {
        let bits = under(field, mask);
        let mut new = Key::default();
        new.set(field, value & mask);
        self.replace(&bits, &new);
        (0..WORDS).for_each(|i| self.known.0[i] |= bits.0[i]);
    }

    /// Makes a field any.
    pub fn forget(&mut self, field: Field) {
        self.forget_bits(&whole(field));
    }

    /// Makes an edit, as far as it concerns the key and the TTLs; `looked_at` gets what decides whether it can be made.
    pub fn edit(&mut self, action: &Action, looked_at: &mut Key) -> Edited {
        let guessed = self.guess(action, looked_at);
        let Some(mut frame) = self.whole.take() else { return guessed };
        let edited = frame.edit(action);
        if frame.is_all_known() {
            self.known = Asked::ALL;
        }
        self.key = frame.key.masked(&self.known);
        self.whole = Some(frame);
        edited
    }

    fn guess(&mut self, action: &Action, looked_at: &mut Key) -> Edited {
        self.edits.push(*action);
        match *action {
            Action::PushVlan(_) => self.push_vlan(),
            Action::EnsureVlan => match self.is_tagged() {
                Present::Yes => Edited::Done,
                Present::No => self.push_vlan(),
                Present::Depends(_) => {
                    self.rest_on(Field::VlanVid);
                    self.write(Field::VlanVid, VLAN_PRESENT.into(), VLAN_PRESENT.into());
                    Edited::Done
                }
            },
            Action::PopVlan => self.pop_vlan(),
            Action::PushMpls(shim) => self.push_mpls(shim, looked_at),
            Action::PopMpls(then) => self.pop_mpls(then),
            Action::PushPbb(_) => self.push_pbb(),
            Action::PopPbb => self.pop_pbb(),
            Action::SetField { field: Field::EthType, value, mask, .. } => {
                self.set_type(value as u16, mask as u16, looked_at)
            }
            Action::SetField { field, of, value, mask } => self.set_field(field, of, value, mask),
            Action::CopyTtlOut | Action::CopyTtlIn => {
                (self.nw_ttl, self.mpls_ttl) = (Ttl::Any, Ttl::Any);
                Edited::Done
            }
            Action::SetMplsTtl(ttl) => {
                self.mpls_ttl = Ttl::Is(ttl);
                Edited::Done
            }
            Action::SetNwTtl(ttl) => {
                self.nw_ttl = Ttl::Is(ttl);
                Edited::Done
            }
            Action::DecMplsTtl => {
                let (edited, ttl) = self.decremented(self.mpls_ttl, &MPLS, looked_at);
                self.mpls_ttl = ttl;
                edited
            }
            Action::DecNwTtl => {
                let (edited, ttl) = self.decremented(self.nw_ttl, &IP, looked_at);
                self.nw_ttl = ttl;
                edited
            }
            Action::Output(_) | Action::Group(_) | Action::SetQueue(_) => Edited::Done,
        }
    }

    fn set_field(
        &mut self,
        field: Field,
        of: Option<Transport>,
        value: u128,
        mask: u128,
    ) -> Edited {
        let present = self.has(field, of);
        // That there is a tag is no part of what a set replaces.
        let mask = if field == Field::VlanVid { mask & 0xfff } else { mask };
        match present {
            Present::Yes => self.write(field, value, mask),
            // Frames that have the header get the bits that others keep.
            Present::No => return self.mix(&under(field, mask)),
            Present::Depends(_) => self.forget_bits(&under(field, mask)),
        }
        match field {
            Field::MplsBos => self.forget_all_but(&[&LINK[..], &SHIM].concat()),
            Field::IpProto => self.forget_transport(),
            Field::IcmpType | Field::IcmpCode => {
                ND.into_iter().for_each(|field| self.forget(field))
            }
            _ => {}
        }
        Edited::Done
    }

    fn set_type(&mut self, value: u16, mask: u16, looked_at: &mut Key) -> Edited {
        if self.cannot_take_type(looked_at) || mask == 0xffff && value < eth_type::MIN {
            return Edited::Malformed;
        }
        self.rest_on(Field::EthType);
        self.put_type(Some(value).filter(|_| mask == 0xffff));
        Edited::Done
    }

    /// Another type, and another header behind it.
    fn put_type(&mut self, value: Option<u16>) {
        self.forget_all_but(&LINK);
        (self.nw_ttl, self.mpls_ttl) = (Ttl::Any, Ttl::Any);
        (self.revealed, self.revealed_transport) = (true, false);
        match value {
            Some(value) if !eth_type::is_vlan(value) => {
                self.write(Field::EthType, value.into(), 0xffff);
            }
            // What follows may be a tag.
            _ => {
                self.tags.clear();
                self.forget_all_but(&[Field::EthDst, Field::EthSrc]);
            }
        }
    }

    /// The same for frames of some types; others keep their header, and the TTL that an edit gave it.
    fn may_put_type(&mut self) {
        let kept = [self.nw_ttl, self.mpls_ttl].map(|ttl| match ttl {
            Ttl::Any => Ttl::Any,
            Ttl::Is(_) | Ttl::ByType => Ttl::ByType,
        });
        self.put_type(None);
        [self.nw_ttl, self.mpls_ttl] = kept;
    }

    fn push_vlan(&mut self) -> Edited {
        let below = [self.key.0[1] & VLAN, self.known.0[1] & VLAN, self.own.0[1] & VLAN];
        if self.tags.is_full() {
            self.tags.clear();
        }
        self.tags.push(below);
        self.write(Field::VlanVid, VLAN_PRESENT.into(), VLAN_PRESENT.into());
        Edited::Done
    }

    fn pop_vlan(&mut self) -> Edited {
        let is_tagged = self.is_tagged();
        self.rest_on(Field::VlanVid);
        self.rest_on(Field::VlanPcp);
        match (is_tagged, self.tags.pop()) {
            // Frames with tags have others then.
            (Present::No, _) => {
                self.mix(&whole(Field::VlanVid));
                self.mix(&whole(Field::VlanPcp));
            }
            (Present::Yes, Some([key, known, own])) => {
                for (word, bits) in
                    [(&mut self.key, key), (&mut self.known, known), (&mut self.own, own)]
                {
                    word.0[1] = word.0[1] & !VLAN | bits;
                }
            }
            _ => {
                self.tags.clear();
                self.forget(Field::VlanVid);
                self.forget(Field::VlanPcp);
            }
        }
        Edited::Done
    }

    fn push_mpls(&mut self, shim: u16, looked_at: &mut Key) -> Edited {
        if self.cannot_take_type(looked_at) {
            return Edited::Malformed;
        }
        let (was_mpls, was_ip) = (self.is_type(&MPLS), self.is_type(&IP));
        let labels =
            [Field::MplsLabel, Field::MplsTc].map(|field| (field, self.known_value(field)));
        let (nw_ttl, mpls_ttl) = (self.nw_ttl, self.mpls_ttl);
        SHIM.into_iter().chain([Field::EthType]).for_each(|field| self.rest_on(field));
        self.put_type(Some(shim));
        self.revealed = false;
        match was_mpls {
            Present::Yes => {
                for (field, value) in labels {
                    if let Some(value) = value {
                        self.write(field, value, field.full());
                    }
                }
                self.write(Field::MplsBos, 0, 1);
                self.mpls_ttl = mpls_ttl;
            }
            Present::No => {
                self.write(Field::MplsLabel, 0, Field::MplsLabel.full());
                self.write(Field::MplsTc, 0, Field::MplsTc.full());
                self.write(Field::MplsBos, 1, 1);
                self.mpls_ttl = match was_ip {
                    Present::Yes => nw_ttl,
                    Present::No => Ttl::Is(0),
                    Present::Depends(_) => Ttl::ByType,
                };
            }
            Present::Depends(_) => self.mpls_ttl = Ttl::ByType,
        }
        Edited::Done
    }

    fn pop_mpls(&mut self, then: u16) -> Edited {
        let present = self.is_type(&MPLS);
        self.rest_on(Field::EthType);
        match present {
            Present::No => {}
            Present::Yes if then < eth_type::MIN => return Edited::Malformed,
            Present::Yes => self.put_type(Some(then)),
            Present::Depends(_) => self.may_put_type(),
        }
        Edited::Done
    }

    fn push_pbb(&mut self) -> Edited {
        let isid = self.known_value(Field::PbbIsid);
        self.rest_on(Field::PbbIsid);
        self.put_type(Some(eth_type::PBB));
        self.revealed = false;
        self.tags.clear();
        self.write(Field::VlanVid, 0, Field::VlanVid.full());
        self.write(Field::VlanPcp, 0, Field::VlanPcp.full());
        if let Some(isid) = isid {
            self.write(Field::PbbIsid, isid, Field::PbbIsid.full());
        }
        Edited::Done
    }

    fn pop_pbb(&mut self) -> Edited {
        let present = self.is_type(&[eth_type::PBB]);
        self.rest_on(Field::EthType);
        match present {
            Present::No => return Edited::Done,
            Present::Yes => self.put_type(None),
            Present::Depends(_) => self.may_put_type(),
        }
        self.forget_all_but(&[]);
        Edited::Done
    }

    /// A TTL of a header behind one of these types after one step down.
    fn decremented(&self, ttl: Ttl, types: &[u16], looked_at: &mut Key) -> (Edited, Ttl) {
        match ttl {
            Ttl::Any => return (Edited::Done, ttl),
            Ttl::Is(value @ 2..) => return (Edited::Done, Ttl::Is(value - 1)),
            Ttl::ByType => return (Edited::Depends(Field::EthType), ttl),
            Ttl::Is(0 | 1) => {}
        }
        match self.field(Field::EthType, looked_at) {
            Err(field) => (Edited::Depends(field), ttl),
            Ok(_) => match self.is_type(types) {
                Present::Yes => (Edited::Expired, ttl),
                Present::No => (Edited::Done, ttl),
                Present::Depends(field) => (Edited::Depends(field), ttl),
            },
        }
    }

    /// Whether the frame has the header of a field.
    fn has(&mut self, field: Field, of: Option<Transport>) -> Present {
        use Field::{
            ArpOp, ArpSha, ArpSpa, ArpTha, ArpTpa, EthDst, EthSrc, EthType, IcmpCode, IcmpType,
            InPhyPort, InPort, IpDscp, IpEcn, IpFrag, IpProto, Ipv4Dst, Ipv4Src, Ipv6Dst,
            Ipv6Exthdr, Ipv6Flabel, Ipv6NdSll, Ipv6NdTarget, Ipv6NdTll, Ipv6Src, Metadata, MplsBos,
            MplsLabel, MplsTc, PbbIsid, PbbUca, TcpFlags, TpDst, TpSrc, TunDst, TunSrc, TunnelId,
            VlanPcp, VlanVid,
        };
        match field {
            InPort | InPhyPort | Metadata | TunnelId | TunSrc | TunDst | EthDst | EthSrc
            | EthType => Present::Yes,
            VlanVid | VlanPcp => {
                self.rest_on(VlanVid);
                self.is_tagged()
            }
            IpDscp | IpEcn | IpProto | IpFrag => self.rests_on_type(&IP),
            Ipv4Src | Ipv4Dst => self.rests_on_type(&[eth_type::IPV4]),
            Ipv6Src | Ipv6Dst | Ipv6Flabel | Ipv6Exthdr => self.rests_on_type(&[eth_type::IPV6]),
            ArpOp | ArpSpa | ArpTpa | ArpSha | ArpTha => self.rests_on_type(&[eth_type::ARP]),
            MplsLabel | MplsTc | MplsBos => self.rests_on_type(&MPLS),
            PbbIsid | PbbUca => self.rests_on_type(&[eth_type::PBB]),
            TpSrc | TpDst | TcpFlags | IcmpType | IcmpCode => self.has_transport(field, of),
            // Which message it is, and which options it has, is more than the key says.
            Ipv6NdTarget | Ipv6NdSll | Ipv6NdTll => match self.rests_on_type(&[eth_type::IPV6]) {
                Present::No => Present::No,
                _ => Present::Depends(field),
            },
        }
    }

    fn has_transport(&mut self, field: Field, of: Option<Transport>) -> Present {
        const PORTS: [u8; 3] = [ip_proto::TCP, ip_proto::UDP, ip_proto::SCTP];
        const ICMP: [u8; 2] = [ip_proto::ICMP, ip_proto::ICMPV6];
        let one = of.map(|transport| [transport.ip_proto()]);
        let protos: &[u8] = match (&one, field) {
            (Some(one), _) => one,
            (None, Field::TcpFlags) => &PORTS[..1],
            (None, Field::TpSrc | Field::TpDst) => &PORTS,
            (None, _) => &ICMP,
        };
        let types: &[u16] = match of {
            Some(Transport::Icmpv4) => &IP[..1],
            Some(Transport::Icmpv6) => &IP[1..],
            _ => &IP,
        };
        match self.rests_on_type(types) {
            Present::Yes => {}
            other => return other,
        }
        self.rest_on(Field::IpProto);
        self.rest_on(Field::IpFrag);
        match (self.known_value(Field::IpProto), self.known_value(Field::IpFrag)) {
            (None, _) => Present::Depends(Field::IpProto),
            (Some(proto), _) if !protos.contains(&(proto as u8)) => Present::No,
            (Some(_), None) => Present::Depends(Field::IpFrag),
            (Some(_), Some(frag)) if frag & 2 != 0 => Present::No,
            _ if self.revealed_transport => Present::Depends(Field::IpProto),
            _ => Present::Yes,
        }
    }

    fn rests_on_type(&mut self, types: &[u16]) -> Present {
        self.rest_on(Field::EthType);
        self.is_type(types)
    }

    fn is_type(&self, types: &[u16]) -> Present {
        match self.known_value(Field::EthType) {
            None => Present::Depends(Field::EthType),
            Some(known) if !types.contains(&(known as u16)) => Present::No,
            Some(_) if self.revealed => Present::Depends(Field::EthType),
            Some(_) => Present::Yes,
        }
    }

    fn is_tagged(&self) -> Present {
        let present = u64::from(VLAN_PRESENT);
        match (self.known.0[1] & present, self.key.0[1] & present) {
            (0, _) => Present::Depends(Field::VlanVid),
            (_, 0) => Present::No,
            _ => Present::Yes,
        }
    }

    /// Whether the frame is known to have a length where others have a type.
    fn cannot_take_type(&self, looked_at: &mut Key) -> bool {
        self.field(Field::EthType, looked_at).is_ok_and(|known| known < eth_type::MIN.into())
    }

    /// The value of a field that is wholly known.
    fn known_value(&self, field: Field) -> Option<u128> {
        (self.known.get(field) == field.full()).then(|| self.key.get(field))
    }

    /// From now on bits that edits make depend on this field.
    fn rest_on(&mut self, field: Field) {
        let bits = whole(field);
        (0..WORDS).for_each(|i| self.because.0[i] |= bits.0[i] & self.own.0[i] & self.known.0[i]);
    }

    /// The frame's own bits no longer say what these are without what they rest on.
    fn mix(&mut self, bits: &Key) -> Edited {
        for i in 0..WORDS {
            self.because.0[i] |= bits.0[i] & self.own.0[i] & self.known.0[i];
            self.own.0[i] &= !bits.0[i];
        }
        Edited::Done
    }

    fn replace(&mut self, bits: &Key, new: &Key) {
        for i in 0..WORDS {
            self.key.0[i] = self.key.0[i] & !bits.0[i] | new.0[i] & bits.0[i];
            self.own.0[i] &= !bits.0[i];
        }
    }

    fn forget_bits(&mut self, bits: &Key) {
        self.replace(bits, &Key::default());
        (0..WORDS).for_each(|i| self.known.0[i] &= !bits.0[i]);
    }

    /// Another header follows the IP header.
    fn forget_transport(&mut self) {
        self.revealed_transport = true;
        for field in [Field::TpSrc, Field::TpDst, Field::TcpFlags].into_iter().chain(ND) {
            self.forget(field);
        }
        if self.is_type(&IP[..1]) != Present::Yes {
            // It may be one of IPv6's extension headers.
            [Field::IpProto, Field::IpFrag, Field::Ipv6Exthdr]
                .into_iter()
                .for_each(|field| self.forget(field));
        }
    }

    /// Forgets all that is in the frame but some fields.
    fn forget_all_but(&mut self, kept: &[Field]) {
        let mut gone = Key([u64::MAX; WORDS]);
        NOTED.iter().chain(kept).for_each(|&field| gone.set(field, 0));
        self.forget_bits(&gone);
    }

    /// A field that has one of these bits; of those that share them, the one that the headers name.
    pub fn name(&self, bits: &Key) -> Field {
        let eth_type = self.known_value(Field::EthType).map(|known| known as u16);
        let proto = self.known_value(Field::IpProto).map(|known| known as u8);
        let is_named = |field: &Field| is_named(*field, eth_type, proto);
        let touches = |field: &Field| bits.masked(&whole(*field)) != Key::default();
        let mut fields = Field::ALL.iter().filter(|field| touches(field));
        let named = fields.clone().find(|field| is_named(field));
        *named.or_else(|| fields.next()).unwrap_or(&Field::Metadata)
    }
}

/// Whether a field is what its bits are, of those that share them, where the headers are of these types.
pub(crate) fn is_named(field: Field, eth_type: Option<u16>, proto: Option<u8>) -> bool {
    match field {
        Field::ArpOp | Field::ArpSpa | Field::ArpTpa | Field::ArpSha | Field::ArpTha => {
            eth_type == Some(eth_type::ARP)
        }
        Field::IcmpType | Field::IcmpCode => {
            matches!(proto, Some(ip_proto::ICMP | ip_proto::ICMPV6))
        }
        Field::Ipv4Src | Field::Ipv4Dst => {
            !matches!(eth_type, Some(eth_type::ARP | eth_type::IPV6))
        }
        Field::TpSrc | Field::TpDst => {
            eth_type != Some(eth_type::ARP)
                && !matches!(proto, Some(ip_proto::ICMP | ip_proto::ICMPV6))
        }
        _ => true,
    }
}

const IP: [u16; 2] = [eth_type::IPV4, eth_type::IPV6];
const MPLS: [u16; 2] = [eth_type::MPLS, eth_type::MPLS_UPSTREAM];

/// What a switch notes of a frame, which is not in it.
const NOTED: [Field; 6] = [
    Field::InPort,
    Field::InPhyPort,
    Field::Metadata,
    Field::TunnelId,
    Field::TunSrc,
    Field::TunDst,
];
/// What lies before the network header.
const LINK: [Field; 5] =
    [Field::EthDst, Field::EthSrc, Field::EthType, Field::VlanVid, Field::VlanPcp];
const SHIM: [Field; 3] = [Field::MplsLabel, Field::MplsTc, Field::MplsBos];
const ND: [Field; 3] = [Field::Ipv6NdTarget, Field::Ipv6NdSll, Field::Ipv6NdTll];

/// The field's bits.
pub(super) fn whole(field: Field) -> Key {
    under(field, field.full())
}

fn under(field: Field, mask: u128) -> Key {
    let mut bits = Key::default();
    bits.set(field, mask);
    bits
}
