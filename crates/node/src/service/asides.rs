//! Points of captures that no worker sees: sessions of switches.

use super::Node;
use super::directory::Member;
use crate::captures::{Aside, Asker, Ear, PointName, Source};
use crate::refusal::Refusal;
use ::capture::pcapng::UPPER_PDU;
use api::CaptureSpec;
use std::sync::Arc;

/// Bytes of what was seen that may wait. Chosen: as much as a worker's ring.
const ROOM: usize = api::CAPTURE_RING as usize;

/// Where something is seen.
pub(super) enum Place {
    /// In the sessions of a switch.
    Sessions(Arc<Member>),
}

/// Whether no worker sees this point.
pub(super) fn is_elsewhere(text: &str) -> bool {
    text.starts_with("openflow:")
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
        texts.iter().map(|text| self.place_elsewhere(text)).collect()
    }

    fn place_elsewhere(&self, text: &str) -> Result<(Place, PointName), Refusal> {
        let member = text.strip_prefix("openflow:").and_then(|name| self.directory.by_name(name));
        let member = member.ok_or_else(|| self.no_such_point(text))?;
        let name = member.name();
        let shown = PointName {
            link: UPPER_PDU,
            name: format!("openflow:{name}"),
            description: format!("OpenFlow messages of {name}; those that TLS hides are for root"),
            hardware: "",
        };
        Ok((Place::Sessions(member), shown))
    }
}

/// Begins to see what is at these places; their points are numbered from `first` on.
pub(super) fn watch(
    places: Vec<Place>,
    (first, snap): (usize, u32),
    spec: &CaptureSpec,
    who: &Asker,
) -> (Arc<Aside>, Vec<Source>) {
    let aside = Arc::new(Aside::new(first, places.len(), ROOM));
    let sources = (first..).zip(places).map(|(point, place)| -> Source {
        match place {
            Place::Sessions(member) => {
                let aside = aside.clone();
                let (snap, payload, hears_tls) = (snap as usize, spec.payload, who.is_root());
                Box::new(member.switch.listen(Ear { aside, point, snap, payload, hears_tls }))
            }
        }
    });
    let sources = sources.collect();
    (aside, sources)
}
