//! What there is in the domain for slices, and what of it is promised to nobody now: what a user sees before writing a file.

use crate::admit::rooms;
use crate::file::slice::GuestKind;
use crate::path::{free, most};
use crate::words::Name;
use crate::world::World;
use api::{Room, SegmentView, SiteView, SitesView};
use std::collections::BTreeSet;

/// Sites and segments, with what is free; `here` says which nodes are.
pub fn sites(world: &World, here: impl Fn(&Name) -> bool) -> SitesView {
    let (domain, ledger) = (world.domain(), world.ledger_at(world.now()));
    let site = |name| {
        let rooms = rooms(world, name, &ledger);
        let mut view = SiteView { nodes: rooms.len(), ..SiteView::default() };
        let mut kinds = BTreeSet::new();
        for room in rooms.iter().filter(|room| here(room.name)) {
            view.here += 1;
            for (sum, at) in [(&mut view.cpu_milli, 0), (&mut view.memory, 1)] {
                sum.all += room.size[at];
                sum.free += room.free[at];
            }
            kinds.extend(room.kinds);
        }
        view.kinds = kinds.into_iter().map(|kind: &GuestKind| kind.word().to_owned()).collect();
        view
    };
    let segment = |(name, segment): (&_, &crate::file::domain::Segment)| {
        let rate = Room { all: most(segment), free: free(segment, name, &ledger) };
        let between = segment.between.each_ref().map(ToString::to_string);
        (name.to_string(), SegmentView { between, rate, delay_us: segment.delay.0 })
    };
    SitesView {
        sites: domain.sites.keys().map(|name| (name.to_string(), site(name))).collect(),
        segments: domain.segments.iter().map(segment).collect(),
    }
}
