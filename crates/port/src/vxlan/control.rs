//! What the node keeps of a tunnel.

use super::group::Membership;
use super::outside;
use super::path::Path;
use super::security::{Sealed, Security};
use super::senders::Senders;
use super::way::Way;
use crate::bypass::{Came, Claims, Outlet, Wrapping};
use crate::chosen::Chosen;
use crate::control::{Keep, PortControl};
use crate::detail::{Details, Outside, PortDetail};
use crate::error::ControlError;
use crate::facts::PortFacts;
use crate::vxlan::tunnel::Tunnel;
use api::PortSpec;
use offload::{Declined, FlowReason, PortReason};
use std::io;
use std::net::IpAddr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wire::tunnel::Dscp;

/// The least MTU of any IPv6 link (RFC 8200 §5).
const LEAST_V6: u32 = 1280;

pub(super) struct VxlanControl {
    name: String,
    mac: [u8; 6],
    tunnel: Tunnel,
    path: Arc<Path>,
    way: Arc<Way>,
    /// Why its interface has no link, as the facts last told.
    unlinked_told: Mutex<Option<String>>,
    /// One for each family of addresses.
    memberships: Vec<Membership>,
    sealed: Option<Sealed>,
    /// Of a port that goes past the kernel: its way there, and what comes by it.
    past: Option<(Arc<Senders>, Option<Claims>)>,
    /// What comes by that way, to a port that is not encrypted.
    came: Option<Came>,
    up: AtomicBool,
    /// The path's MTU that the facts last told; 0: there was none.
    told: AtomicU32,
    /// The strays that they last told.
    strays_told: AtomicU64,
    /// Why packets went through the kernel, as they last told.
    hindrance_told: Mutex<Option<String>>,
}

impl VxlanControl {
    pub(super) fn new(
        (name, mac): (String, [u8; 6]),
        tunnel: Tunnel,
        (path, way): (Arc<Path>, Arc<Way>),
        memberships: Vec<Membership>,
        sealed: Option<Sealed>,
    ) -> Self {
        Self {
            name,
            mac,
            tunnel,
            path,
            way,
            unlinked_told: Mutex::default(),
            memberships,
            sealed,
            past: None,
            came: None,
            up: true.into(),
            told: 0.into(),
            strays_told: 0.into(),
            hindrance_told: Mutex::default(),
        }
    }

    /// The same of a port with these ways out, which holds these claims.
    pub(super) fn past(
        self,
        senders: Arc<Senders>,
        claims: Option<Claims>,
        came: Option<Came>,
    ) -> Self {
        let past = senders.outlet().is_some().then_some((senders.clone(), claims));
        Self { past, came, ..self }
    }

    fn hindrance(&self) -> Option<String> {
        self.past.as_ref()?.0.outlet()?.hindrance()
    }

    pub(super) fn read(&self) -> PortFacts {
        let path = self.path.mtu();
        let fits = path.as_ref().map_or(self.path.usual_mtu(), |mtu| *mtu);
        self.told.store(path.as_ref().map_or(0, |mtu| *mtu), Relaxed);
        let wanted = self.path.wanted();
        let unlinked = self.way.hindrance();
        lock(&self.unlinked_told).clone_from(&unlinked);
        PortFacts {
            interface: self.name.clone(),
            mac: self.mac,
            mtu: if wanted == 0 { fits } else { wanted },
            refuses_longer: true,
            up: self.up.load(Relaxed),
            carrier: path.is_ok() && unlinked.is_none(),
            mode: self.mode(),
            notes: unlinked.into_iter().chain(self.notes(path, fits)).collect(),
            ..PortFacts::default()
        }
    }

    /// Of an encrypted port.
    pub(super) fn sealed(&self) -> Option<&Sealed> {
        self.sealed.as_ref()
    }

    fn mode(&self) -> String {
        let vni = self.tunnel.vni.map_or("of each flow".into(), |vni| vni.to_string());
        let end = match self.tunnel.is_flow_based() {
            true => "the end of each flow".into(),
            false => match &self.tunnel.zone {
                Some(zone) => format!("{}%{zone}", self.tunnel.remote),
                None => self.tunnel.remote.to_string(),
            },
        };
        let plain = format!("vxlan to {end}, vni {vni}");
        let sealed = self.sealed.as_ref().map(|sealed| format!(", {}", sealed.security().words()));
        let past = self.past.as_ref().map_or("", |_| ", past the kernel");
        plain + &sealed.unwrap_or_default() + past
    }

    fn strays(&self) -> u64 {
        self.memberships.iter().map(Membership::strays).sum()
    }

    fn notes(&self, path: io::Result<u32>, fits: u32) -> Vec<String> {
        let remote = self.tunnel.remote;
        let wanted = self.path.wanted();
        let strays = self.strays();
        self.strays_told.store(strays, Relaxed);
        let no_route = path.err().map(|error| format!("no route to {remote}: {error}"));
        // Of many ends each has its own.
        let is_known = !self.tunnel.is_flow_based();
        let too_long = (is_known && wanted > fits).then(|| {
            format!("the path to {remote} carries frames of MTU {fits}, less than the {wanted} asked for")
        });
        let strays = (strays > 0).then(|| {
            format!(
                "{strays} datagrams came to UDP port {} whose VNI or sender no port has",
                self.tunnel.port
            )
        });
        let short = (fits < LEAST_V6).then(|| {
            format!(
                "the path to {remote} carries MTU {fits}, less than the {LEAST_V6} that IPv6 needs"
            )
        });
        let no_ecn = (self.tunnel.dscp == Dscp::WholeByte).then(|| {
            "flow_id tos: the ECN bits outside are the flow's identity, so no congestion that the underlay marks reaches a guest; flow_id dscp keeps ECN"
                .into()
        });
        let sealed = self.sealed.iter().flat_map(Sealed::notes);
        let hindrance = self.hindrance();
        lock(&self.hindrance_told).clone_from(&hindrance);
        let through = hindrance.map(|why| format!("packets go through the kernel: {why}"));
        [no_route, through, too_long, short, strays, no_ecn]
            .into_iter()
            .flatten()
            .chain(sealed)
            .collect()
    }
}

impl PortControl for VxlanControl {
    fn facts(&self) -> Result<PortFacts, ControlError> {
        Ok(self.read())
    }

    /// The path's MTU, the link of its interface, and what nobody got: no event of a port's own link tells of a route, of a router's
    /// message or of a stray.
    fn has_news(&self) -> bool {
        self.path.mtu().unwrap_or(0) != self.told.load(Relaxed)
            || self.strays() != self.strays_told.load(Relaxed)
            || self.hindrance() != *lock(&self.hindrance_told)
            || self.way.hindrance() != *lock(&self.unlinked_told)
            || self.way.is_another().is_some()
    }

    fn outgrown(&self) -> Option<String> {
        self.way.is_another()
    }

    fn wrapping(&self) -> Option<Result<Arc<Wrapping>, Declined>> {
        let &Tunnel { vni, dscp, mss_clamp, .. } = &self.tunnel;
        let outlet = self.past.as_ref().and_then(|past| past.0.outlet());
        Some(match (outlet, vni, &self.came) {
            _ if self.sealed.is_some() => Err(FlowReason::Encrypted.into()),
            (Some(outlet), Some(vni), Some(came)) => {
                let (outlet, came) = (outlet.clone(), came.clone());
                Ok(Arc::new(Wrapping { outlet, came, vni, dscp, mss_clamp }))
            }
            _ => Err(PortReason::ThroughKernel.into()),
        })
    }

    fn details(&self) -> Option<Arc<dyn Details>> {
        let security = self.sealed.as_ref().map(|sealed| sealed.security().clone());
        let outlet = self.past.as_ref().and_then(|past| past.0.outlet().cloned());
        let (tunnel, path, way) = (self.tunnel.clone(), self.path.clone(), self.way.clone());
        Some(Arc::new(TunnelDetails { tunnel, path, way, security, outlet }))
    }

    fn reload(&self) -> Result<(), ControlError> {
        self.sealed.as_ref().map_or(Ok(()), Sealed::reload)
    }

    fn change(&self, key: &str, _: &PortSpec, chosen: &Chosen) -> Result<(), ControlError> {
        match (key, &self.sealed) {
            ("seal_core", Some(sealed)) => {
                sealed.seal_on(chosen.seal_on.clone()).map_err(|source| {
                    ControlError::io(&self.name, "start the thread that seals", source)
                })
            }
            // Nothing is sealed on a tunnel that is not encrypted.
            ("seal_core", None) => Ok(()),
            _ => Err(ControlError::Fixed { interface: self.name.clone(), key: key.into() }),
        }
    }

    fn set_admin(&self, up: bool) -> Result<(), ControlError> {
        self.up.store(up, Relaxed);
        Ok(())
    }

    fn set_mtu(&self, mtu: u32) -> Result<(), ControlError> {
        self.path.want(mtu);
        Ok(())
    }

    /// There is nothing to keep: the sockets go, and the last one's program with them.
    fn close(self: Box<Self>, _: Keep) -> Result<(), ControlError> {
        Ok(())
    }
}

/// What a tunnel shares with who shows it.
struct TunnelDetails {
    tunnel: Tunnel,
    path: Arc<Path>,
    way: Arc<Way>,
    security: Option<Arc<Security>>,
    outlet: Option<Arc<Outlet>>,
}

impl Details for TunnelDetails {
    fn read(&self) -> PortDetail {
        PortDetail {
            sas: self.security.as_ref().map(|security| security.facts()).unwrap_or_default(),
            sealing: self.security.as_ref().map(|security| security.sealing()),
            forwarding: self.outlet.as_ref().map(|outlet| outlet.facts()),
            ..PortDetail::default()
        }
    }

    fn outside(&self, end: Option<IpAddr>) -> Option<Outside> {
        let port = if self.security.is_some() { esp::udp::PORT } else { self.tunnel.port };
        outside::look(&self.tunnel, (&self.path, &self.way), end, port)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
