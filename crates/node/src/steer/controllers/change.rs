//! A controller's entries as steering's rules, and back.

use crate::agent::steering::Refused;
use openflow::steering::{CoreChoice, Place, PlaceFlags, PlaceMod, SteerError as Told};
use openflow::{DEFAULT_PRIORITY, FlowModCommand, Match, Oxm, OxmField};
use place::steering::Target;
use place::{CoreId, Role, VmId};
use steer::{Agent, Frag, Own, Placing, Rule, SteerError, Strictness, Underlay};

/// VXLAN's network id has 24 bits (RFC 7348 §5).
const VNI_MAX: u128 = 0xff_ffff;

/// What the policy does with flows that no rule names.
pub const BY_POLICY: Place = Place::on(CoreChoice::Auto);

/// A change that was read.
pub struct Wanted {
    command: FlowModCommand,
    on: Option<String>,
    cookie_mask: u64,
    rule: Rule,
}

/// Why a change is not made.
pub enum Problem {
    /// It names a core that is not there or excluded.
    NoCore,
    /// The agent refuses.
    Steer(SteerError),
}

impl Wanted {
    /// Reads a change.
    ///
    /// # Errors
    /// Its match is one that no rule can say.
    pub fn of(change: &PlaceMod) -> Result<Self, Refused> {
        let (fields, own) = rule_match(&change.fields)?;
        let name = String::from_utf8_lossy(change.interface.as_bytes()).into_owned();
        Ok(Self {
            command: change.command,
            on: Some(name).filter(|name| !name.is_empty()),
            cookie_mask: change.cookie_mask,
            rule: Rule {
                priority: change.priority,
                cookie: change.cookie,
                fields,
                own,
                placing: placing(change.place),
            },
        })
    }

    /// Makes the change.
    ///
    /// # Errors
    /// See [`Problem`].
    pub fn carry_out(self, agent: &mut Agent) -> Result<(), Problem> {
        use FlowModCommand::{Add, Delete, DeleteStrict, Modify, ModifyStrict};
        match self.command {
            Add | Modify | ModifyStrict => self.check_core(agent)?,
            Delete | DeleteStrict => {}
        }
        match self.command {
            Add => self.add(agent),
            Modify | ModifyStrict => self.modify(agent),
            Delete | DeleteStrict => self.delete(agent),
        }
        .map_err(Problem::Steer)
    }

    fn check_core(&self, agent: &Agent) -> Result<(), Problem> {
        let Target::Core(wanted) = self.rule.placing.target else { return Ok(()) };
        let is_it = |core: &place::Core| core.id() == wanted && core.role != Role::Excluded;
        match agent.host_report().cores.iter().any(is_it) {
            true => Ok(()),
            false => Err(Problem::NoCore),
        }
    }

    fn add(self, agent: &mut Agent) -> Result<(), SteerError> {
        if let Some(on) = self.on.as_ref().filter(|on| !agent.interface_names().contains(on)) {
            return Err(SteerError::NotSteered { interface: on.clone() });
        }
        agent.put_rules(self.on.as_deref(), vec![self.rule]).map(drop)
    }

    /// The entries that are meant get another place; all else of them stays (OpenFlow 1.3.5 §6.4).
    fn modify(self, agent: &mut Agent) -> Result<(), SteerError> {
        for (on, rule) in self.selected(agent)? {
            agent.put_rules(on.as_deref(), vec![Rule { placing: self.rule.placing, ..rule }])?;
        }
        Ok(())
    }

    fn delete(self, agent: &mut Agent) -> Result<(), SteerError> {
        for (on, rule) in self.selected(agent)? {
            agent.del_rules(on.as_deref(), &[rule.key()], Strictness::Strict)?;
        }
        Ok(())
    }

    /// The rules that a modification or deletion means, each with its interface.
    fn selected(&self, agent: &Agent) -> Result<Vec<(Option<String>, Rule)>, SteerError> {
        let is_strict =
            matches!(self.command, FlowModCommand::ModifyStrict | FlowModCommand::DeleteStrict);
        // A filter's text without a priority means any; `key` leaves the default one out.
        let text = Rule { priority: DEFAULT_PRIORITY, ..self.rule.clone() }.key();
        let filter = steer::parse_filter(&text)
            .map_err(|source| SteerError::Text { text: text.clone(), source })?;
        let means = |rule: &Rule| match is_strict {
            true => rule.key() == self.rule.key(),
            false => filter.selects(rule),
        };
        let here = |on: Option<&str>| self.on.is_none() || self.on.as_deref() == on;
        let has_cookie = |rule: &Rule| (rule.cookie ^ self.rule.cookie) & self.cookie_mask == 0;
        let found = agent.rules().filter(|(on, rule)| here(*on) && has_cookie(rule) && means(rule));
        Ok(found.map(|(on, rule)| (on.map(str::to_owned), rule.clone())).collect())
    }
}

fn unsupported(what: &'static str) -> Refused {
    Refused::new(Told::Unsupported, what)
}

/// A match that was checked, as a rule has it.
fn rule_match(fields: &Match) -> Result<(Match, Own), Refused> {
    let (mut rest, mut own) = (Match::default(), Own::default());
    for oxm in &fields.0 {
        let Oxm::Known { field, value, mask } = oxm else { continue };
        let (value, mask) = (*value, mask.unwrap_or(field.full()));
        match field {
            OxmField::VmId => own.vm = VmId::new(value as u16),
            OxmField::IpFrag => own.frag = Some(frag(value, mask)?),
            OxmField::TunIpv4Src => {
                tunnel(&mut own.tun_src, Underlay::V4(value as u32, mask as u32))?
            }
            OxmField::TunIpv4Dst => {
                tunnel(&mut own.tun_dst, Underlay::V4(value as u32, mask as u32))?
            }
            OxmField::TunIpv6Src => tunnel(&mut own.tun_src, Underlay::V6(value, mask))?,
            OxmField::TunIpv6Dst => tunnel(&mut own.tun_dst, Underlay::V6(value, mask))?,
            OxmField::TunnelId if value > VNI_MAX => {
                return Err(unsupported("a tunnel id of more than VXLAN's 24 bits"));
            }
            _ => rest.0.push(oxm.clone()),
        }
    }
    rest.0.sort_by_key(Oxm::field);
    Ok((rest, own))
}

/// A tunnel has addresses of one family.
fn tunnel(place: &mut Option<Underlay>, addresses: Underlay) -> Result<(), Refused> {
    match place.replace(addresses) {
        None => Ok(()),
        Some(_) => Err(unsupported("a tunnel's IPv4 and IPv6 address at once")),
    }
}

/// The lowest two bits are all that a frame has.
fn frag(value: u128, mask: u128) -> Result<Frag, Refused> {
    let bits = ((value & 3) as u8, (mask & 3) as u8);
    let found = Frag::ALL.into_iter().find(|frag| frag.bits() == bits && value & !3 == 0);
    found.ok_or_else(|| unsupported("a kind of fragments that no frame is"))
}

fn placing(place: Place) -> Placing {
    Placing {
        target: match place.core {
            CoreChoice::Auto => Target::Auto,
            CoreChoice::Hash => Target::Hash,
            CoreChoice::Core(core) => Target::Core(CoreId(core)),
        },
        priority: place.flags.contains(PlaceFlags::PRIORITY),
        own: place.flags.contains(PlaceFlags::OWN),
    }
}

/// The way back of a rule's placing.
pub fn place_of(placing: &Placing) -> Place {
    let mut flags = PlaceFlags::empty();
    flags.set(PlaceFlags::PRIORITY, placing.priority);
    flags.set(PlaceFlags::OWN, placing.own);
    let core = match placing.target {
        Target::Auto => CoreChoice::Auto,
        Target::Hash => CoreChoice::Hash,
        Target::Core(core) => CoreChoice::Core(core.0),
    };
    Place { core, flags }
}

/// A rule's match, as a controller has it.
pub fn fields_of(rule: &Rule) -> Match {
    let mut fields = rule.fields.clone();
    let Own { vm, tun_src, tun_dst, frag } = &rule.own;
    let mut add = |field, value, mask| fields.0.push(Oxm::masked(field, value, mask));
    if let Some(vm) = vm {
        add(OxmField::VmId, vm.get().into(), OxmField::VmId.full());
    }
    if let Some(frag) = frag {
        let (value, mask) = frag.bits();
        add(OxmField::IpFrag, value.into(), mask.into());
    }
    for (addresses, v4, v6) in [
        (tun_src, OxmField::TunIpv4Src, OxmField::TunIpv6Src),
        (tun_dst, OxmField::TunIpv4Dst, OxmField::TunIpv6Dst),
    ] {
        match *addresses {
            Some(Underlay::V4(value, mask)) => add(v4, value.into(), mask.into()),
            Some(Underlay::V6(value, mask)) => add(v6, value, mask),
            None => {}
        }
    }
    fields
}
