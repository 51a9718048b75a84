//! `suiro node --check`: what ports of a configuration would take from this host.

use crate::config::Config;
use crate::service::interface_of;
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

impl Checked {
    fn look(&mut self, thing: &str, spec: &PortSpec) {
        let wanted = interface_of(spec);
        let refused =
            |error: OpenError| Fault::new(thing, error.step(), chain(&error), error.remedy());
        match HostUse::of(&wanted) {
            Ok(uses) if uses.is_none() => {}
            Ok(uses) if wanted.take_over => {
                self.notes.push(format!(
                    "{thing}: takes {} over from the host: {uses}",
                    wanted.interface
                ));
            }
            Ok(uses) => {
                self.refused
                    .push(refused(OpenError::HostUse { interface: wanted.interface, uses }));
            }
            // A namespace that is made later, or no right to look: nothing is known.
            Err(_) => {}
        }
    }
}
