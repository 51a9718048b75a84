//! Points of captures that no worker sees: sessions of switches, steering's programs in the kernel.

use super::Node;
use super::directory::Member;
use crate::captures::{Aside, Asker, Ear, PointName, Source, Watcher};
use crate::refusal::Refusal;
use ::capture::IdKey;
use ::capture::pcapng::{ETHERNET, UPPER_PDU};
use api::CaptureSpec;
use datapath::{Filter, Share, Sieve};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::runtime::Handle;
use xdp::steer::Side;

/// Bytes of what was seen that may wait. Chosen: as much as a worker's ring.
const ROOM: usize = api::CAPTURE_RING as usize;

/// Where something is seen.
#[derive(Clone)]
pub(super) enum Place {
    /// In the sessions of a switch.
    Sessions(Arc<Member>),
    /// At one side of the programs on an interface.
    Steered(String, Side),
}

/// How a capture sees what is elsewhere.
pub(super) struct Sight<'s> {
    /// What it was asked for.
    pub spec: &'s CaptureSpec,
    /// Number of the first such point.
    pub first: usize,
    /// Bytes of a frame that are in the file, and that are looked at.
    pub snap: u32,
    pub looks_at: u32,
    pub filter: &'s Filter,
    pub share: &'s Share,
    pub key: [u64; 2],
    pub who: &'s Asker,
}

/// Whether no worker sees this point.
pub(super) fn is_elsewhere(text: &str) -> bool {
    text.starts_with("openflow:") || text.starts_with("steer:")
}

impl Node {
    /// The points of these texts.
    ///
    /// # Errors
    /// There is none of a name.
    pub(super) fn places_elsewhere(
        &self,
        texts: &[&String],
    ) -> Result<Vec<(Place, PointName)>, Refusal> {
        let mut places = Vec::new();
        for text in texts {
            places.extend(self.place_elsewhere(text)?);
        }
        Ok(places)
    }

    fn place_elsewhere(&self, text: &str) -> Result<Vec<(Place, PointName)>, Refusal> {
        let parts: Vec<&str> = text.split(':').collect();
        let side = |word| Side::ALL.into_iter().find(|side| side.name() == word);
        match parts[..] {
            ["openflow", name] => {
                let member = self.directory.by_name(name);
                Ok(vec![sessions(member.ok_or_else(|| self.no_such_point(text))?)])
            }
            ["steer", name] => Ok(Side::ALL.into_iter().map(|side| steered(name, side)).collect()),
            ["steer", name, word] => {
                let side = side(word).ok_or_else(|| self.no_such_point(text))?;
                Ok(vec![steered(name, side)])
            }
            _ => Err(self.no_such_point(text)),
        }
    }

    /// Begins to see what is at these places.
    ///
    /// # Errors
    /// An interface is not steered.
    pub(super) fn watch(
        &self,
        places: Vec<Place>,
        sight: &Sight<'_>,
    ) -> Result<(Arc<Aside>, Vec<Source>), Refusal> {
        let aside = Arc::new(Aside::new(sight.first, places.len(), ROOM));
        let mut sources: Vec<Source> = Vec::new();
        let mut interfaces: BTreeMap<String, [Option<usize>; 3]> = BTreeMap::new();
        for (point, place) in (sight.first..).zip(places) {
            match place {
                Place::Sessions(member) => {
                    sources.push(Box::new(member.switch.listen(sight.ear(&aside, point))));
                }
                Place::Steered(interface, side) => {
                    interfaces.entry(interface).or_default()[side as usize] = Some(point);
                }
            }
        }
        for (interface, points) in interfaces {
            let open = || Handle::current().block_on(self.steer.frames(&interface));
            let watcher = sight.watcher(&aside, points);
            sources.push(Box::new(self.lookouts.watch(&interface, watcher, open)?));
        }
        Ok((aside, sources))
    }
}

impl Sight<'_> {
    fn ear(&self, aside: &Arc<Aside>, point: usize) -> Ear {
        Ear {
            aside: aside.clone(),
            point,
            snap: self.snap as usize,
            payload: self.spec.payload,
            hears_tls: self.who.is_root(),
        }
    }

    fn watcher(&self, aside: &Arc<Aside>, points: [Option<usize>; 3]) -> Watcher {
        Watcher {
            aside: aside.clone(),
            points,
            sieve: Sieve::new(self.filter.clone(), self.share),
            key: IdKey(self.key),
            looks_at: self.looks_at,
            snap: self.snap as usize,
            payload: self.spec.payload,
        }
    }
}

fn sessions(member: Arc<Member>) -> (Place, PointName) {
    let name = member.name();
    let shown = PointName {
        link: UPPER_PDU,
        name: format!("openflow:{name}"),
        description: format!("OpenFlow messages of {name}; those that TLS hides are for root"),
        hardware: "",
        queue: None,
    };
    (Place::Sessions(member), shown)
}

fn steered(interface: &str, side: Side) -> (Place, PointName) {
    let what = match side {
        Side::Before => "as they come to steering's program",
        Side::After => "as steering's programs leave them to the host, on the core where that is",
        Side::Dropped => "that steering's programs drop",
    };
    let shown = PointName {
        link: ETHERNET,
        name: format!("steer:{interface}:{}", side.name()),
        description: format!("frames of interface {interface} {what}"),
        hardware: "",
        queue: None,
    };
    (Place::Steered(interface.to_owned(), side), shown)
}
