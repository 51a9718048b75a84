//! Controllers of switches: a guest of the slice, or a host outside that the operator allows.

use super::Found;
use crate::fault::Fault;
use crate::file::slice::SliceSpec;
use crate::words::Name;
use crate::world::World;
use api::{Controller, Host};

/// The guest that a controller is, if it is one of the slice's.
pub fn inside<'a>(spec: &'a SliceSpec, controller: &Controller) -> Option<&'a Name> {
    let Host::Name(host) = &controller.target().host else { return None };
    spec.guests.get_key_value(host.as_str()).map(|(name, _)| name)
}

/// A host as the operator writes it.
fn host(controller: &Controller) -> String {
    match &controller.target().host {
        Host::Ip(address) => address.to_string(),
        Host::OnLink(address, interface) => format!("{address}%{interface}"),
        Host::Name(name) => name.clone(),
    }
}

/// Every controller that may not be called.
pub fn check(world: &World, spec: &SliceSpec) -> Vec<Found> {
    let allowed = &world.domain().tenants[&spec.tenant].controllers;
    let mut found = Vec::new();
    for (name, switch) in &spec.switches {
        let (thing, settings) = (format!("switch {name}"), spec.switch(switch));
        let controllers = settings.controllers.unwrap_or_default();
        let mut note =
            |fault: Fault| found.push(Found::new(format!("/switches/{name}/controllers"), fault));
        for controller in &controllers {
            let host = host(controller);
            match inside(spec, controller).map(|guest| &spec.guests[guest]) {
                Some(guest) if !guest.control => {
                    let fault = Fault::new(
                        thing.clone(),
                        format!(
                            "has guest {host} as controller, which is not on the control network"
                        ),
                    );
                    note(fault.remedy(format!("add control: true to guest {host}")));
                }
                None if !allowed.contains(&host) => {
                    let what = format!(
                        "has controller {host}, which is no guest of the slice and no host that the operator allows"
                    );
                    note(Fault::new(thing.clone(), what).remedy(match allowed.len() {
                        0 => "name a guest with control: true, or ask the operator to allow the host".into(),
                        _ => format!("allowed are: {}", allowed.join(", ")),
                    }));
                }
                _ => {}
            }
        }
        let guests =
            controllers.iter().filter(|controller| inside(spec, controller).is_some()).count();
        if guests > 0 && guests < controllers.len() {
            let fault = Fault::new(
                thing,
                "has controllers inside and outside of the slice, which is not built yet",
            );
            note(fault.remedy("keep those of one kind"));
        }
    }
    found
}
