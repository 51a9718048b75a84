//! What a match and the actions so far promise about a packet's headers (OpenFlow 1.3.5 §7.2.3.8, table 12).

use super::ActionError;
use crate::action::{Action, Transport};
use wire::{Field, Key, VLAN_PRESENT, eth_type};

/// What is known of one property of the packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fact<T> {
    /// Neither match nor actions say.
    Unstated,
    /// This.
    Is(T),
    /// A pop has revealed it: it is whatever was behind.
    Revealed,
}

impl<T: Copy> Fact<T> {
    fn allows(self, wanted: impl Fn(T) -> bool) -> bool {
        match self {
            Fact::Unstated => false,
            Fact::Is(value) => wanted(value),
            Fact::Revealed => true,
        }
    }
}

/// The properties that actions have as prerequisites.
#[derive(Clone, Copy, Debug)]
pub(super) struct Promise {
    tagged: Fact<bool>,
    eth_type: Fact<u16>,
    ip_proto: Fact<u8>,
    icmp_type: Fact<u8>,
}

/// Nothing known, and nothing asked: after a pop, and where actions may miss their headers.
pub(super) const REVEALED: Promise = Promise {
    tagged: Fact::Revealed,
    eth_type: Fact::Revealed,
    ip_proto: Fact::Revealed,
    icmp_type: Fact::Revealed,
};

impl Promise {
    /// What a match promises.
    pub fn of(key: &Key, mask: &Key) -> Self {
        let exact = |field: Field| match mask.get(field) == field.full() {
            true => Fact::Is(key.get(field) as u16),
            false => Fact::Unstated,
        };
        let narrow = |field| match exact(field) {
            Fact::Is(value) => Fact::Is(value as u8),
            _ => Fact::Unstated,
        };
        let present = u128::from(VLAN_PRESENT);
        let tagged = match mask.get(Field::VlanVid) & present {
            0 => Fact::Unstated,
            _ => Fact::Is(key.get(Field::VlanVid) & present != 0),
        };
        Self {
            tagged,
            eth_type: exact(Field::EthType),
            ip_proto: narrow(Field::IpProto),
            icmp_type: narrow(Field::IcmpType),
        }
    }

    /// Checks that an action's header is promised, and goes on to what is promised after it.
    pub fn admit(&mut self, action: &Action) -> Result<(), ActionError> {
        if !self.has_header_for(action) {
            return Err(ActionError::MatchInconsistent(*action));
        }
        self.follow(action);
        Ok(())
    }

    fn has_header_for(&self, action: &Action) -> bool {
        match *action {
            Action::PopVlan => self.tagged.allows(|tagged| tagged),
            Action::PopPbb => self.is_pbb(),
            Action::PopMpls(_) | Action::SetMplsTtl(_) | Action::DecMplsTtl => self.is_mpls(),
            // From shim to shim, IP to shim, or IP to IP (§7.2.5); whether there is a second one no match can say.
            Action::CopyTtlOut | Action::CopyTtlIn => self.is_mpls() || self.is_ip(),
            Action::SetNwTtl(_) | Action::DecNwTtl => self.is_ip(),
            Action::SetField { field, of, .. } => {
                self.has_field(field) && of.is_none_or(|transport| self.has(transport))
            }
            _ => true,
        }
    }

    fn has_field(&self, field: Field) -> bool {
        match field {
            Field::VlanVid | Field::VlanPcp => self.tagged.allows(|tagged| tagged),
            Field::IpDscp | Field::IpEcn | Field::IpProto => self.is_ip(),
            Field::Ipv4Src | Field::Ipv4Dst => self.is_type(eth_type::IPV4),
            Field::Ipv6Src | Field::Ipv6Dst | Field::Ipv6Flabel => self.is_type(eth_type::IPV6),
            Field::ArpOp | Field::ArpSpa | Field::ArpTpa | Field::ArpSha | Field::ArpTha => {
                self.is_type(eth_type::ARP)
            }
            Field::TcpFlags => self.has(Transport::Tcp),
            Field::Ipv6NdTarget => self.is_neighbour_discovery(&[135, 136]),
            Field::Ipv6NdSll => self.is_neighbour_discovery(&[135]),
            Field::Ipv6NdTll => self.is_neighbour_discovery(&[136]),
            Field::MplsLabel | Field::MplsTc | Field::MplsBos => self.is_mpls(),
            Field::PbbIsid | Field::PbbUca => self.is_pbb(),
            _ => true,
        }
    }

    fn is_type(&self, wanted: u16) -> bool {
        self.eth_type.allows(|eth_type| eth_type == wanted)
    }

    fn is_mpls(&self) -> bool {
        self.eth_type.allows(eth_type::is_mpls)
    }

    fn is_ip(&self) -> bool {
        self.eth_type.allows(eth_type::is_ip)
    }

    fn is_pbb(&self) -> bool {
        self.is_type(eth_type::PBB)
    }

    fn has(&self, transport: Transport) -> bool {
        let over_ip = match transport {
            Transport::Tcp | Transport::Udp | Transport::Sctp => self.is_ip(),
            Transport::Icmpv4 => self.is_type(eth_type::IPV4),
            Transport::Icmpv6 => self.is_type(eth_type::IPV6),
        };
        over_ip && self.ip_proto.allows(|proto| proto == transport.ip_proto())
    }

    fn is_neighbour_discovery(&self, types: &[u8]) -> bool {
        self.has(Transport::Icmpv6) && self.icmp_type.allows(|icmp_type| types.contains(&icmp_type))
    }

    fn follow(&mut self, action: &Action) {
        match *action {
            Action::PushVlan(_) | Action::EnsureVlan => self.tagged = Fact::Is(true),
            Action::PopVlan => self.tagged = Fact::Revealed, // there may be another tag
            Action::PushMpls(shim) => {
                *self = Self { tagged: self.tagged, eth_type: Fact::Is(shim), ..REVEALED }
            }
            Action::PopMpls(eth_type) => {
                *self = Self { tagged: self.tagged, eth_type: Fact::Is(eth_type), ..REVEALED }
            }
            Action::PushPbb(tag) => {
                *self = Self { tagged: Fact::Is(false), eth_type: Fact::Is(tag), ..REVEALED }
            }
            Action::PopPbb => *self = REVEALED,
            // Only neighbour discovery asks for a type, and it is ICMPv6's.
            Action::SetField { of: Some(Transport::Icmpv4), .. } => {}
            Action::SetField { field, value, mask, .. } if mask == field.full() => {
                self.set(field, value)
            }
            _ => {}
        }
    }

    fn set(&mut self, field: Field, value: u128) {
        match field {
            Field::EthType => {
                *self = Self { tagged: self.tagged, eth_type: Fact::Is(value as u16), ..REVEALED }
            }
            Field::IpProto => {
                (self.ip_proto, self.icmp_type) = (Fact::Is(value as u8), Fact::Revealed)
            }
            Field::IcmpType => self.icmp_type = Fact::Is(value as u8),
            _ => {}
        }
    }
}
