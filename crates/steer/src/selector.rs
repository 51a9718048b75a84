//! Which frames a rule selects: its fields as bits of the flow key.
//!
//! What the program matches, the agent can match too, for `why`.

use crate::rule::{Rule, Underlay};
use openflow::{Match, Oxm, OxmField};
use place::VmId;
use place::steering::{Field, FlowKey, Selector};
use std::net::{IpAddr, Ipv6Addr};

/// The part of an address's mask that says "IPv4": the key has such addresses in the low 32 bits.
const FAMILY: u128 = !0 << 32;
/// The flow control field's virtual machine: the seven high bits of the byte (seed 000, figure 3). The low one is priority.
const FCF_VM_MASK: u128 = 0xfe;

/// An address as a key holds it.
pub fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u32::from(address).into(),
        IpAddr::V6(address) => address.into(),
    }
}

const fn ether_type(address: IpAddr) -> u128 {
    if address.is_ipv4() { 0x0800 } else { 0x86dd }
}

/// What a rule says without its `vm_id`.
pub fn of(rule: &Rule) -> Selector {
    let mut selector = of_match(&rule.fields);
    if let Some(frag) = rule.own.frag {
        let (value, mask) = frag.bits();
        selector.set(Field::IpFrag, value.into(), mask.into());
    }
    for (field, underlay) in [(Field::TunSrc, rule.own.tun_src), (Field::TunDst, rule.own.tun_dst)]
    {
        if let Some((value, mask)) = underlay.map(addresses) {
            selector.set(field, value, mask);
        }
    }
    selector
}

/// What OpenFlow says. Fields that the program does not see were refused when the rule was read.
fn of_match(fields: &Match) -> Selector {
    let mut selector = Selector::default();
    for oxm in &fields.0 {
        let Oxm::Known { field, value, mask } = oxm else { continue };
        set_oxm(&mut selector, *field, *value, mask.unwrap_or(field.full()));
    }
    selector
}

fn set_oxm(selector: &mut Selector, field: OxmField, value: u128, mask: u128) {
    match field {
        OxmField::EthSrc => selector.set(Field::DlSrc, value, mask),
        OxmField::EthDst => selector.set(Field::DlDst, value, mask),
        OxmField::EthType => selector.set(Field::DlType, value, mask),
        OxmField::VlanVid => selector.set(Field::DlVlan, value, mask),
        OxmField::IpProto | OxmField::ArpOp => selector.set(Field::NwProto, value, mask),
        OxmField::IpDscp => selector.add(Field::NwTos, value << 2, mask << 2),
        OxmField::IpEcn => selector.add(Field::NwTos, value, mask),
        OxmField::Fcf => selector.set(Field::OuterTos, value, mask),
        OxmField::Ipv4Src | OxmField::ArpSpa => selector.set(Field::NwSrc, value, FAMILY | mask),
        OxmField::Ipv4Dst | OxmField::ArpTpa => selector.set(Field::NwDst, value, FAMILY | mask),
        OxmField::Ipv6Src => selector.set(Field::NwSrc, value, mask),
        OxmField::Ipv6Dst => selector.set(Field::NwDst, value, mask),
        OxmField::TcpSrc | OxmField::UdpSrc | OxmField::SctpSrc => {
            selector.set(Field::TpSrc, value, mask);
        }
        OxmField::TcpDst | OxmField::UdpDst | OxmField::SctpDst => {
            selector.set(Field::TpDst, value, mask);
        }
        // A network id is matched in a tunnel, never outside one.
        OxmField::TunnelId => {
            selector.set(Field::TunId, FlowKey::vni(value as u32), FlowKey::vni(mask as u32))
        }
        _ => {}
    }
}

/// The destination, if the whole of it is matched.
pub fn destination(selector: &Selector) -> Option<IpAddr> {
    let address = selector.key.get(Field::NwDst);
    let is_whole = selector.mask.get(Field::NwDst) == u128::MAX;
    is_whole.then_some(())?;
    match selector.key.get(Field::DlType) {
        0x0800 => Some(IpAddr::from((address as u32).to_be_bytes())),
        0x86dd => Some(Ipv6Addr::from(address).into()),
        _ => None,
    }
}

/// The same frames, as far as they are for that machine by its address. `None` when the rule names other destinations.
pub fn to_address(mut selector: Selector, address: IpAddr) -> Option<Selector> {
    let (ether_type, to) = (ether_type(address), bits(address));
    let fits = selector.allows(Field::DlType, ether_type) && selector.allows(Field::NwDst, to);
    selector.set(Field::DlType, ether_type, u16::MAX.into());
    selector.set(Field::NwDst, to, u128::MAX);
    fits.then_some(selector)
}

/// The same frames, as far as the flow control field says that they are for that machine. `None` when it has no room for its id, or
/// the rule names another one's field.
pub fn to_fcf(mut selector: Selector, vm: VmId) -> Option<Selector> {
    let field = u128::from(vm.get()) << 1;
    let other = (selector.key.get(Field::OuterTos) ^ field) & selector.mask.get(Field::OuterTos);
    selector.add(Field::OuterTos, field, FCF_VM_MASK);
    (vm.fits_fcf() && other & FCF_VM_MASK == 0).then_some(selector)
}

fn addresses(underlay: Underlay) -> (u128, u128) {
    match underlay {
        Underlay::V4(address, mask) => (address.into(), FAMILY | u128::from(mask)),
        Underlay::V6(address, mask) => (address, mask),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::parse_rule;

    fn selector(text: &str) -> Selector {
        of(&parse_rule(&format!("{text},actions=place(core=auto)")).unwrap())
    }

    fn udp(dst: &str) -> FlowKey {
        let fields = [(Field::DlType, 0x0800), (Field::NwProto, 17), (Field::TpDst, 53)];
        let key =
            fields.iter().fold(FlowKey::default(), |key, &(field, value)| key.with(field, value));
        key.with(Field::NwDst, bits(dst.parse().unwrap()))
    }

    #[test]
    fn a_selector_selects_what_its_rule_says() {
        assert!(selector("udp,nw_dst=10.0.0.0/8,tp_dst=53").selects(&udp("10.1.2.3")));
        assert!(!selector("udp,nw_dst=10.0.0.0/8,tp_dst=53").selects(&udp("11.1.2.3")));
        assert!(!selector("tcp,tp_dst=53").selects(&udp("10.1.2.3")));
        assert!(selector("ip_frag=not_later").selects(&udp("10.1.2.3")));
        assert!(!selector("ip_frag=first").selects(&udp("10.1.2.3")));
        assert!(selector("").selects(&FlowKey::default()));
        let marked = udp("10.1.2.3").with(Field::NwTos, 0x22);
        assert!(selector("ip,nw_tos=32,nw_ecn=2").selects(&marked));
        assert!(!selector("ip,nw_tos=32,nw_ecn=1").selects(&marked));
    }

    #[test]
    fn a_network_id_of_zero_is_not_a_frame_outside_a_tunnel() {
        assert!(!selector("tun_id=0").selects(&udp("10.0.0.1")));
        assert!(selector("tun_id=0").selects(&udp("10.0.0.1").with(Field::TunId, FlowKey::vni(0))));
    }

    #[test]
    fn an_ipv4_rule_never_selects_an_ipv6_frame_that_ends_in_the_same_bits() {
        let frame = udp("10.0.0.1").with(Field::NwDst, 0xfd << 120 | 0x0a00_0001);
        assert!(!selector("ip,nw_dst=10.0.0.1").selects(&frame));
        assert!(
            !selector("tun_dst=10.0.0.1")
                .selects(&frame.with(Field::TunDst, 0xfd << 120 | 0x0a00_0001))
        );
    }

    #[test]
    fn a_machine_is_its_address_within_what_the_rule_says() {
        let address = "10.0.0.9".parse().unwrap();
        let to = to_address(selector("ip,nw_src=10.0.0.1"), address).unwrap();
        assert_eq!(destination(&to), Some(address));
        assert_eq!(to_address(selector("ip,nw_dst=10.1.0.0/16"), address), None);
        assert_eq!(to_address(selector("ipv6"), address), None);
    }

    #[test]
    fn a_machine_without_addresses_is_its_flow_control_field() {
        let vm = VmId::new(5).unwrap();
        let to = to_fcf(selector(""), vm).unwrap();
        for priority in [0, 1] {
            assert!(to.selects(&FlowKey::default().with(Field::OuterTos, 5 << 1 | priority)));
        }
        assert!(!to.selects(&FlowKey::default().with(Field::OuterTos, 6 << 1)));
        assert_eq!(to_fcf(selector(""), VmId::new(128).unwrap()), None);
    }
}
