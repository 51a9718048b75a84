//! Ports come, change and go.

use super::Node;
use super::directory::{Member, MemberPort};
use super::plan::Origin;
use crate::ports::{Door, OnFailure, Wanted};
use crate::refusal::{Refusal, Why};
use api::{
    Fault, FlowId, Forwarding, NewRate, Peer, PortKind, PortName, PortNumber, PortPatch, PortSpec,
    PortView,
};
use openflow::{Mac, PortConfig, PortFeatures, PortMod, PortNo};
use port::Keep;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

impl Node {
    /// Makes a port.
    ///
    /// # Errors
    /// It cannot be right, contradicts another one, or cannot be opened now; or it is made but not saved.
    pub async fn add_port(&self, switch: &str, mut spec: PortSpec) -> Result<PortView, Refusal> {
        let change = self.change.lock().await;
        let member = self.member(switch)?;
        let name = checked_name(switch, &spec)?;
        let taken = self.taken();
        taken.check_port(&member.name(), &name, &spec)?;
        let thing = label(switch, &name);
        let asked = spec.number.is_some();
        let number = self.number_for(&member, &taken, &spec, &thing).await?;
        spec.number = Some(number);
        let given = number;
        let number = number.get();
        self.check_sealing(&thing, spec.seal_core)?;
        let wanted = self.wanted(&member, &name, &spec, PortConfig::empty()).await;
        let added = self.ports.add(wanted, OnFailure::Forget).await;
        added.map_err(|fault| Refusal::new(Why::Impossible, fault))?;
        let port = MemberPort { spec: spec.clone(), number, origin: Origin::Api };
        member.state().ports.insert(name.clone(), port);
        member.switch.publish();
        self.store.put_port(&member.name(), &name, &spec);
        self.store.put_number(&member.name(), &name, number);
        self.note_number(&member, given, asked);
        drop(change);
        self.saved(&thing).await?;
        self.port(switch, &name)
    }

    /// Removes a port; a TAP goes with it.
    ///
    /// # Errors
    /// There is none of that name or number, it is the file's, or it is gone but that is not saved.
    pub async fn remove_port(&self, switch: &str, key: &str) -> Result<(), Refusal> {
        let change = self.change.lock().await;
        let member = self.member(switch)?;
        let (name, port) = member.port(key).ok_or_else(|| Refusal::no_port(switch, key))?;
        let thing = label(switch, &name);
        if port.origin == Origin::File {
            return Err(Refusal::declared(thing, "remove it"));
        }
        let removed = self.ports.remove(member.at(port.number), Keep::Nothing).await;
        member.state().ports.remove(&name);
        member.switch.publish();
        self.store.forget_port(&member.name(), &name, port.number);
        drop(change);
        self.saved(&thing).await?;
        removed.map_err(|fault| Refusal::new(Why::Impossible, fault))
    }

    /// Changes a port.
    ///
    /// # Errors
    /// There is none of that name or number, the interface refuses, or it is changed but not saved.
    pub async fn patch_port(
        &self,
        switch: &str,
        key: &str,
        patch: &PortPatch,
    ) -> Result<PortView, Refusal> {
        let change = self.change.lock().await;
        let member = self.member(switch)?;
        let (name, port) = member.port(key).ok_or_else(|| Refusal::no_port(switch, key))?;
        let thing = label(switch, &name);
        if let Some(mtu) = patch.mtu {
            self.set_mtu(&member, (&name, &port), mtu).await?;
        }
        if let Some(NewRate(rate)) = patch.rate {
            let (name, port) = member.port(key).ok_or_else(|| Refusal::no_port(switch, key))?;
            let spec = PortSpec { rate, ..port.spec.clone() };
            self.change_queues(&member, (&name, &port), spec).await?;
        }
        if patch.seal_core.is_some() {
            let (name, port) = member.port(key).ok_or_else(|| Refusal::no_port(switch, key))?;
            let spec = PortSpec { seal_core: patch.seal_core, ..port.spec.clone() };
            self.change_sealing(&member, (&name, &port), &spec).await?;
        }
        if patch.rekey == Some(true) {
            let read = self.ports.reload(member.at(port.number)).await;
            read.map_err(|fault| Refusal::new(Why::Impossible, fault))?;
        }
        if let Some(up) = patch.up {
            set_up(&member, port.number, up).map_err(|fault| rejected(&thing, &fault))?;
        }
        member.switch.publish();
        drop(change);
        self.saved(&thing).await?;
        self.port(switch, &name)
    }

    async fn set_mtu(
        &self,
        member: &Member,
        (name, port): (&PortName, &MemberPort),
        mtu: u32,
    ) -> Result<(), Refusal> {
        let thing = label(&member.name(), name);
        if port.origin == Origin::File {
            return Err(Refusal::declared(thing, "set its MTU"));
        }
        let mut spec = port.spec.clone();
        spec.mtu = Some(mtu);
        checked_name(&member.name(), &spec)?;
        let set = self.ports.set_mtu(member.at(port.number), mtu).await;
        set.map_err(|fault| Refusal::new(Why::Impossible, fault))?;
        if let Some(port) = member.state().ports.get_mut(name) {
            port.spec = spec.clone();
        }
        self.store.put_port(&member.name(), name, &spec);
        Ok(())
    }

    /// The ports of a switch, by number.
    ///
    /// # Errors
    /// There is no switch of that name.
    pub fn ports(&self, switch: &str) -> Result<Vec<PortView>, Refusal> {
        Ok(self.ports_of(&*self.member(switch)?))
    }

    /// The ports of every switch, by switch and number.
    pub fn all_ports(&self) -> Vec<PortView> {
        self.directory.all().iter().flat_map(|member| self.ports_of(member)).collect()
    }

    fn ports_of(&self, member: &Member) -> Vec<PortView> {
        let ports = member.state().ports.clone();
        let configs = configs(member);
        let mut views: Vec<_> =
            ports.iter().map(|(name, port)| self.view_port(member, name, port, &configs)).collect();
        views.sort_by_key(|view| view.number);
        views
    }

    /// One port, by name or number.
    ///
    /// # Errors
    /// There is no such switch or port.
    pub fn port(&self, switch: &str, key: &str) -> Result<PortView, Refusal> {
        let member = self.member(switch)?;
        let (name, port) = member.port(key).ok_or_else(|| Refusal::no_port(switch, key))?;
        Ok(self.view_port(&member, &name, &port, &configs(&member)))
    }
}

impl Node {
    /// The port as its thread wants to know it.
    pub(super) async fn wanted(
        &self,
        member: &Member,
        name: &PortName,
        spec: &PortSpec,
        config: PortConfig,
    ) -> Wanted {
        let number = spec.number.map_or(0, PortNumber::get);
        let mut door = door(member, number, spec);
        if let Door::Interface(wanted) = &mut door {
            wanted.seal_on = self.sealing(spec).await;
        }
        Wanted {
            at: member.at(number),
            label: label(&member.name(), name),
            name: name.to_string(),
            door,
            config,
            queues: spec.port_queues(),
            switch: member.switch.clone(),
        }
    }
}

fn door(member: &Member, number: u32, spec: &PortSpec) -> Door {
    if let (Some(peer), Some(name)) = (&spec.peer, spec.effective_name()) {
        let mac = own_mac(member.switch.datapath_id(), number);
        let end = Peer::new(member.name(), name).to_string();
        return Door::Vlink { end, peer: peer.to_string(), mac };
    }
    let mut wanted = interface_of(spec);
    if matches!(spec.kind, PortKind::VhostUser | PortKind::Vxlan) {
        wanted.mac.get_or_insert_with(|| own_mac(member.switch.datapath_id(), number));
    }
    Door::Interface(wanted.into())
}

/// A port's interface as the port crate wants to know it.
pub fn interface_of(spec: &PortSpec) -> port::PortSpec {
    let interface = spec.effective_interface().map(|name| name.to_string());
    // Without one, the port's own name stands for it in messages.
    let named = || spec.name.as_ref().map(|name| name.to_string());
    let interface = interface.or_else(named).unwrap_or_default();
    port::PortSpec {
        netns: spec.netns.as_deref().map(Into::into),
        queues: spec.queues.unwrap_or(0),
        mtu: spec.mtu,
        mac: spec.mac.as_ref().map(api::Mac::bytes),
        xdp_mode: xdp_mode(spec.xdp_mode.unwrap_or_default()),
        take_over: spec.take_over.unwrap_or_default(),
        host: spec.host.unwrap_or_default(),
        socket: spec.socket.as_deref().unwrap_or_default().into(),
        role: if spec.server == Some(true) { port::Role::Server } else { port::Role::Client },
        tunnel: tunnel(spec),
        encrypt: spec.encrypt.as_deref().map(Into::into),
        ..port::PortSpec::new(kind(spec.kind), interface)
    }
}

fn tunnel(spec: &PortSpec) -> Option<port::Tunnel> {
    let local = spec.local.as_ref().map_or_else(Vec::new, |local| local.get().to_vec());
    let (remote, from) = match spec.remote.as_ref()?.addresses() {
        Some(addresses) => addresses.split_first().map(|(first, from)| (*first, from))?,
        // Each frame's own, of the family of this end's addresses if it has any.
        None if local.first().is_some_and(IpAddr::is_ipv6) => {
            (Ipv6Addr::UNSPECIFIED.into(), &[][..])
        }
        None => (Ipv4Addr::UNSPECIFIED.into(), &[][..]),
    };
    let usual = port::Tunnel::new(remote, 0);
    let dscp = || spec.dscp.as_ref().map_or(usual.dscp, api::Dscp::get);
    Some(port::Tunnel {
        from: from.to_vec(),
        local,
        vni: spec.key?.vni(),
        port: spec.udp_port.unwrap_or(usual.port),
        dscp: match spec.flow_id {
            Some(FlowId::Dscp) => wire::tunnel::Dscp::Identity,
            Some(FlowId::Tos) => wire::tunnel::Dscp::WholeByte,
            Some(FlowId::Underlay) | None => dscp(),
        },
        ttl: spec.ttl.unwrap_or(usual.ttl),
        mss_clamp: spec.mss_clamp.unwrap_or(usual.mss_clamp),
        checksum: spec.outer_checksum.unwrap_or(usual.checksum),
        forwarding: match spec.forwarding {
            Some(Forwarding::Own) => port::Forwarding::Own,
            Some(Forwarding::Kernel) | None => port::Forwarding::Kernel,
        },
        ..usual
    })
}

fn kind(kind: PortKind) -> port::PortKind {
    match kind {
        PortKind::Tap => port::PortKind::Tap,
        PortKind::AfXdp => port::PortKind::AfXdp,
        PortKind::VhostUser => port::PortKind::VhostUser,
        PortKind::Vxlan => port::PortKind::Vxlan,
        PortKind::AfPacket | PortKind::Vlink => port::PortKind::AfPacket,
    }
}

fn xdp_mode(mode: api::XdpMode) -> port::XdpMode {
    match mode {
        api::XdpMode::Auto => port::XdpMode::Auto,
        api::XdpMode::ZeroCopy => port::XdpMode::ZeroCopy,
        api::XdpMode::Native => port::XdpMode::Native,
        api::XdpMode::Generic => port::XdpMode::Generic,
    }
}

/// `port guest1 of switch sw0`.
pub(super) fn label(switch: &str, name: &str) -> String {
    format!("port {name} of switch {switch}")
}

pub(super) fn checked_name(switch: &str, spec: &PortSpec) -> Result<PortName, Refusal> {
    let name = spec.effective_name();
    let shown = label(switch, name.as_deref().unwrap_or("without a name"));
    let faults = spec.faults();
    if let Some(first) = faults.first() {
        let causes: Vec<_> = faults.iter().map(|fault| fault.cause.as_str()).collect();
        let fault = Fault::new(shown, "check what was asked", causes.join("; "), &*first.remedy);
        return Err(Refusal::new(Why::Invalid, fault));
    }
    Ok(name.expect("a port without a name has a fault"))
}

/// What controllers and users configured of each port.
pub(super) fn configs(member: &Member) -> HashMap<u32, PortConfig> {
    member.switch.ports().into_iter().map(|port| (port.number.0, port.config)).collect()
}

fn set_up(member: &Member, number: u32, up: bool) -> Result<(), openflow::Fault> {
    let port = member.switch.ports().into_iter().find(|port| port.number.0 == number);
    let hw_addr = port.map_or(Mac::default(), |port| port.hw_addr);
    let config = if up { PortConfig::empty() } else { PortConfig::PORT_DOWN };
    let mask = PortConfig::PORT_DOWN;
    member.switch.port_mod(&PortMod {
        number: PortNo(number),
        hw_addr,
        config,
        mask,
        advertise: PortFeatures::empty(),
    })
}

fn rejected(thing: &str, fault: &openflow::Fault) -> Refusal {
    let remedy = "see its state with: suiro port list";
    Refusal::new(Why::Impossible, Fault::new(thing, "set it up or down", fault.to_string(), remedy))
}

/// A locally administered address, the same for a port at each start.
fn own_mac(dpid: u64, number: u32) -> [u8; 6] {
    let [_, _, _, _, _, a, b, c] = dpid.to_be_bytes();
    let [_, _, d, e] = number.to_be_bytes();
    [0x02, a, b, c, d, e]
}
