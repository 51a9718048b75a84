//! `suiro node --check`: what ports of a configuration would take from this host.

use crate::config::Config;
use api::{Fault, Kind, PortSpec, chain};
use port::{HostUse, OpenError};

/// What a check of the host found.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Checked {
    /// Ports that would be refused, and why.
    pub refused: Vec<Fault>,
    /// Losses of the host that its operator has allowed.
    pub notes: Vec<String>,
}

/// Looks at the interfaces that ports would take from this host; one that is not there takes nothing.
pub fn check(config: &Config) -> Checked {
    let mut found = Checked::default();
    for switch in &config.switches {
        for port in switch.ports.iter().filter(|port| takes(&port.value)) {
            let name = &port.value.name;
            let thing = format!("port {name} of switch {} (line {})", switch.spec.name, port.line);
            found.look(&thing, &port.value);
        }
    }
    found
}

/// Whether a port of this kind keeps its interface from the host.
fn takes(spec: &PortSpec) -> bool {
    match &spec.kind {
        Kind::AfXdp(_) => true,
        Kind::AfPacket(packet) => packet.host != Some(true),
        _ => false,
    }
}

/// Whether it may take an interface that the host uses.
fn may_take_over(spec: &PortSpec) -> bool {
    match &spec.kind {
        Kind::AfXdp(xdp) => xdp.take_over == Some(true),
        Kind::AfPacket(packet) => packet.take_over == Some(true),
        _ => false,
    }
}

impl Checked {
    fn look(&mut self, thing: &str, spec: &PortSpec) {
        let interface = spec.interface().map(String::from).unwrap_or_default();
        let refused =
            |error: OpenError| Fault::new(thing, error.step(), chain(&error), error.remedy());
        match HostUse::of(spec) {
            Ok(uses) if uses.is_none() => {}
            Ok(uses) if may_take_over(spec) => {
                self.notes.push(format!("{thing}: takes {interface} over from the host: {uses}"));
            }
            Ok(uses) => {
                self.refused.push(refused(OpenError::HostUse { interface, uses }));
            }
            // A namespace that is made later, or no right to look: nothing is known.
            Err(_) => {}
        }
    }
}
