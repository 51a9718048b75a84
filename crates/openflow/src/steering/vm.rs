//! Virtual machines: whose they are, where they run, and by what their frames are known.

use super::{Wire, count, end_element, take_element, take_u16s};
use crate::bytes::{Reader, Writer};
use crate::envelope::known;
use crate::error::{ErrorCode, Fault};
use crate::ids::PortNo;
use crate::wire_enum::wire_enum;

wire_enum! {
    /// How the host knows of a machine.
    VmSource: u8 {
        /// Somebody declared it.
        Declared = 0,
        /// It was found running.
        Found = 1,
    }
}

wire_enum! {
    /// What happened to a machine; numbered as `OFPPR_*`.
    VmReason: u8 {
        /// It started or was declared; or it was there when the controller subscribed.
        Added = 0,
        /// It is gone.
        Deleted = 1,
        /// Something of what is told of it changed.
        Modified = 2,
    }
}

/// One virtual machine.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Vm {
    /// Its number, as the match field `vm_id` has it; 0 = none was given. Up to 127 the flow control field carries it.
    pub id: u16,
    /// Its tenant; 0 = unknown.
    pub tenant: u32,
    /// Its port on the switch of this connection; [`PortNo::ANY`] = none.
    pub port: PortNo,
    /// How the host knows of it.
    pub source: VmSource,
    /// Cores that it is pinned to; empty = it is not pinned.
    pub cores: Vec<u16>,
    /// What its frames are addressed to, as far as the host knows.
    pub addresses: Vec<VmAddress>,
    /// Its name: at most 255 bytes.
    pub name: Vec<u8>,
}

/// An address, or all of a prefix.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct VmAddress {
    /// 1 = MAC address, 4 = IPv4, 6 = IPv6; others survive.
    pub kind: u8,
    /// Bits of it that count, from the first.
    pub prefix: u8,
    /// The address, in the first bytes.
    pub bytes: [u8; 16],
}

/// News of a machine.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct VmStatus {
    /// What happened.
    pub reason: VmReason,
    /// The machine as it is now, or as it was.
    pub vm: Vm,
}

/// Bytes of a machine before its lists.
const HEAD: usize = 24;

impl Wire for Vm {
    fn put(&self, out: &mut Writer) {
        let name = &self.name[..self.name.len().min(255)];
        let addresses = &self.addresses[..self.addresses.len().min(255)];
        let start = out.len();
        out.u16(0);
        out.u16(self.id);
        out.u32(self.tenant);
        out.u32(self.port.0);
        out.u8(self.source.wire());
        out.u8(name.len() as u8);
        out.u16(count(&self.cores));
        out.u8(addresses.len() as u8);
        out.zeros(7);
        self.cores.iter().for_each(|core| out.u16(*core));
        addresses.iter().for_each(|address| address.put(out));
        out.bytes(name);
        end_element(start, out);
    }

    fn take(input: &mut Reader<'_>) -> Result<Self, Fault> {
        let mut vm = take_element(input, HEAD)?;
        let (id, tenant, port) = (vm.u16()?, vm.u32()?, PortNo(vm.u32()?));
        let source = known(vm.u8()?, VmSource::from_wire, ErrorCode::BadRequestBadLen)?;
        let (name, cores, addresses) = (vm.u8()?, vm.u16()?, vm.u8()?);
        vm.skip(7)?;
        Ok(Self {
            id,
            tenant,
            port,
            source,
            cores: take_u16s(cores, &mut vm)?,
            addresses: (0..addresses).map(|_| Wire::take(&mut vm)).collect::<Result<_, _>>()?,
            name: vm.take(name.into())?.to_vec(),
        })
    }
}

impl Wire for VmAddress {
    fn put(&self, out: &mut Writer) {
        out.u8(self.kind);
        out.u8(self.prefix);
        out.zeros(2);
        out.bytes(&self.bytes);
    }

    fn take(input: &mut Reader<'_>) -> Result<Self, Fault> {
        let (kind, prefix) = (input.u8()?, input.u8()?);
        input.skip(2)?;
        Ok(Self { kind, prefix, bytes: input.array()? })
    }
}

impl Wire for VmStatus {
    fn put(&self, out: &mut Writer) {
        out.u8(self.reason.wire());
        out.zeros(7);
        self.vm.put(out);
    }

    fn take(input: &mut Reader<'_>) -> Result<Self, Fault> {
        let reason = known(input.u8()?, VmReason::from_wire, ErrorCode::BadRequestBadLen)?;
        input.skip(7)?;
        Ok(Self { reason, vm: Wire::take(input)? })
    }
}
