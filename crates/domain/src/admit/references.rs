//! What a slice names of the domain is there.

use super::Found;
use crate::fault::Fault;
use crate::file::check::unknown;
use crate::file::slice::SliceSpec;
use crate::words::Name;
use crate::world::World;

/// Every name that the domain does not have. Other tenants' names are not told.
pub fn check(world: &World, spec: &SliceSpec) -> Vec<Found> {
    let domain = world.domain();
    let mut found = Vec::new();
    if !domain.tenants.contains_key(&spec.tenant) {
        let fault = Fault::new(format!("tenant {:?}", spec.tenant.to_string()), "is unknown");
        found.push(Found::new(
            "/tenant",
            fault.remedy("the operator declares tenants in the domain's file"),
        ));
    }
    let switches =
        spec.switches.iter().map(|(name, it)| ("switch", "switches", name, &it.site, &it.place));
    let guests =
        spec.guests.iter().map(|(name, it)| ("guest", "guests", name, &it.site, &it.place));
    for (kind, table, name, site, wish) in switches.chain(guests) {
        let here = format!("/{table}/{name}");
        if !domain.sites.contains_key(site) {
            let fault = unknown(
                format!("site {:?}", site.to_string()),
                site,
                domain.sites.keys().map(Name::to_string),
            );
            found.push(Found::new(format!("{here}/site"), fault));
            continue;
        }
        let Some(node) = &wish.node else { continue };
        let nodes = || domain.nodes_at(site).map(|(name, _)| name.to_string());
        match domain.nodes.get(node) {
            None => {
                let fault = unknown(format!("node {:?}", node.to_string()), node, nodes());
                found.push(Found::new(format!("{here}/place/node"), fault));
            }
            Some(it) if it.site != *site => {
                let what = format!("is at {site}, and node {node} is at {}", it.site);
                let nodes: Vec<_> = nodes().collect();
                let fault = Fault::new(format!("{kind} {name}"), what);
                let fault = fault.remedy(format!("nodes at {site} are {}", nodes.join(", ")));
                found.push(Found::new(format!("{here}/place/node"), fault));
            }
            Some(_) => {}
        }
    }
    for (guest, file, path) in spec.files_from() {
        let fault = Fault::new(format!("file {file} of guest {guest}"), "has not been sent");
        let fault =
            fault.remedy(format!("apply by `suiro apply`, which reads {path}, or give its text"));
        found.push(Found::new(format!("/guests/{guest}/files/{file}"), fault));
    }
    found
}
