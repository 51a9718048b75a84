//! Virtual machines: declared, found, or both.

use super::Agent;
use crate::desired::Change;
use crate::error::SteerError;
use crate::surroundings::SeenVm;
use api::steer::VmSpec;
use api::steer::VmView;
use place::{CoreId, VmId};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// A machine as it matters for placing.
pub struct Machine {
    /// Its name.
    pub name: String,
    /// Its number, if anybody gave it one.
    pub id: Option<VmId>,
    /// Cores that its vCPUs are pinned to.
    pub cores: Vec<CoreId>,
}

/// All machines, by name. What is declared wins, except that a machine declared without cores has those that were found.
pub fn known(declared: &BTreeMap<String, VmSpec>, seen: &[SeenVm]) -> Vec<Machine> {
    let found = |name: &str| seen.iter().find(|vm| vm.name == name);
    let of_declared = declared.iter().map(|(name, spec)| {
        let cores: Vec<CoreId> = spec.cores.iter().copied().map(CoreId).collect();
        let cores = match found(name) {
            Some(vm) if cores.is_empty() => vm.cores.clone(),
            _ => cores,
        };
        Machine { name: name.clone(), id: VmId::new(spec.id), cores }
    });
    let of_seen = seen.iter().filter(|vm| !declared.contains_key(&vm.name));
    let of_seen =
        of_seen.map(|vm| Machine { name: vm.name.clone(), id: None, cores: vm.cores.clone() });
    of_declared.chain(of_seen).collect()
}

impl Agent {
    /// Declares a machine, or declares it anew. Rules that name it follow.
    ///
    /// # Errors
    /// Its id is another's, or its frames could not be told.
    pub fn put_vm(&mut self, name: &str, spec: VmSpec) -> Result<VmView, SteerError> {
        self.check_vm(name, &spec)?;
        let before = self.vms.insert(name.into(), spec.clone());
        if let Err(error) = self.follow_vm([before.as_ref(), Some(&spec)]) {
            // As it was: the rules must have what they had.
            match &before {
                Some(old) => self.vms.insert(name.into(), old.clone()),
                None => self.vms.remove(name),
            };
            let _ = self.follow_vm([before.as_ref(), Some(&spec)]);
            return Err(error);
        }
        self.refresh_roles();
        self.journal.note(Change::Vm(name, Some(&spec)));
        Ok(self
            .vm_views()
            .into_iter()
            .find(|view| view.name == name)
            .expect("it was just declared"))
    }

    /// Forgets a declared machine. Rules that name it fall back on the flow control field.
    ///
    /// # Errors
    /// None of that name is declared.
    pub fn del_vm(&mut self, name: &str) -> Result<(), SteerError> {
        let Some(spec) = self.vms.remove(name) else {
            return Err(SteerError::NoVm { name: name.into() });
        };
        self.refresh_roles();
        self.journal.note(Change::Vm(name, None));
        self.follow_vm([Some(&spec), None])
    }

    fn check_vm(&self, name: &str, spec: &VmSpec) -> Result<(), SteerError> {
        let bad =
            |cause: String, remedy| Err(SteerError::BadVm { name: name.into(), cause, remedy });
        let plain = |c: char| c.is_ascii_alphanumeric() || "_-.:+@".contains(c);
        if name.is_empty() || name.len() > 64 || !name.chars().all(plain) {
            return bad(
                "its name is no name".into(),
                "use 1 to 64 letters, digits, `_`, `-`, `.`, `:`, `+`, `@`",
            );
        }
        let Some(id) = VmId::new(spec.id) else {
            return bad("its id is 0, which means none".into(), "give an id of 1 to 127");
        };
        if !id.fits_fcf() && spec.addresses.is_empty() {
            let cause = format!("the flow control field has no room for id {}", spec.id);
            return bad(cause, "give an id of 1 to 127, or addresses");
        }
        let same = |(other, spec2): &(&String, &VmSpec)| *other != name && spec2.id == spec.id;
        if let Some((other, _)) = self.vms.iter().find(same) {
            return bad(format!("id {} is {other}'s", spec.id), "give it another id");
        }
        if let Some(missing) =
            spec.cores.iter().find(|&&core| self.table.core(CoreId(core)).is_none())
        {
            return bad(format!("this host has no core {missing}"), "see `suiro steer cores`");
        }
        Ok(())
    }

    /// Addresses of a machine, by its id.
    pub(super) fn addresses_of(&self, id: VmId) -> &[IpAddr] {
        let found = self.vms.values().find(|spec| spec.id == id.get());
        found.map_or(&[], |spec| &spec.addresses)
    }

    /// The machine of an address.
    pub(super) fn vm_of(&self, address: IpAddr) -> Option<VmId> {
        let found = self.vms.values().find(|spec| spec.addresses.contains(&address));
        found.and_then(|spec| VmId::new(spec.id))
    }

    /// Machines as they are shown.
    pub(super) fn vm_views(&self) -> Vec<VmView> {
        let found = |name: &str| self.seen.iter().find(|vm| vm.name == name);
        let machines = known(&self.vms, &self.seen);
        let view = |machine: Machine| {
            let declared = self.vms.get(&machine.name);
            let seen = found(&machine.name);
            let spec = VmSpec {
                cores: machine.cores.iter().map(|core| core.0).collect(),
                ..declared.cloned().unwrap_or_default()
            };
            let sources = [declared.map(|_| "declared"), seen.map(|vm| vm.source)];
            let source = sources.into_iter().flatten().collect::<Vec<_>>().join(", ");
            VmView { name: machine.name, spec, source, pid: seen.map(|vm| vm.pid) }
        };
        machines.into_iter().map(view).collect()
    }
}
