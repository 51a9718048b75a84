//! Hello, error, experimenter, features, configuration, roles, asynchronous events, table-mod.

use super::{Wire, known};
use crate::bytes::{Reader, Writer};
use crate::error::{ErrorCode, ErrorKind, ErrorMsg, Fault};
use crate::ids::TableId;
use crate::message::Message;
use crate::switch::{
    AsyncConfig, Capabilities, Experimenter, Features, FragmentMode, Hello, Role, RoleMsg,
    SwitchConfig, TableMod,
};
use crate::version::VersionSet;

/// `OFPHET_VERSIONBITMAP`.
const VERSION_BITMAP: u16 = 1;

/// A hello of any version (§7.5.1: unknown elements are ignored, and so is what an older version may append).
pub(crate) fn decode_hello(body: &[u8]) -> Result<Message, Fault> {
    let mut input = Reader::new(body, ErrorCode::BadRequestBadLen);
    Hello::take(&mut input).map(Message::Hello)
}

/// The body of a hello, whose layout every version shares.
pub(crate) fn put_hello(hello: &Hello, out: &mut Writer) {
    hello.put(out);
}

impl Wire for Hello {
    fn put(&self, out: &mut Writer) {
        if let Some(versions) = self.versions {
            out.u16(VERSION_BITMAP);
            out.u16(8);
            out.u32(versions.0);
        }
    }

    fn take(input: &mut Reader<'_>) -> Result<Self, Fault> {
        let mut versions = None;
        while let Some(element) = take_element(input) {
            if versions.is_none() {
                versions = bitmap(element);
            }
        }
        Ok(Hello { versions })
    }
}

/// The next hello element with its header, or `None` at the end or at anything that is no element.
fn take_element<'a>(input: &mut Reader<'a>) -> Option<Reader<'a>> {
    let len = usize::from(input.peek_u16(2).ok()?);
    let element = input.part(len, ErrorCode::BadRequestBadLen).ok().filter(|_| len >= 4)?;
    let padding = len.next_multiple_of(8) - len;
    input.skip(padding.min(input.len())).ok()?;
    Some(element)
}

/// The first word of a version bitmap: versions 0..=31.
fn bitmap(mut element: Reader<'_>) -> Option<VersionSet> {
    let kind = element.u16().ok()?;
    element.skip(2).ok()?;
    (kind == VERSION_BITMAP).then(|| element.u32().ok().map(VersionSet)).flatten()
}

/// `OFPET_EXPERIMENTER`.
const ERROR_EXPERIMENTER: u16 = 0xffff;

impl Wire for ErrorMsg {
    fn put(&self, out: &mut Writer) {
        match self.kind {
            ErrorKind::Known(code) => {
                let (kind, code) = code.numbers();
                out.u16(kind);
                out.u16(code);
            }
            ErrorKind::Unknown { kind, code } => {
                out.u16(kind);
                out.u16(code);
            }
            ErrorKind::Experimenter { experimenter, exp_type } => {
                out.u16(ERROR_EXPERIMENTER);
                out.u16(exp_type);
                out.u32(experimenter);
            }
        }
        out.bytes(&self.data);
    }

    fn take(input: &mut Reader<'_>) -> Result<Self, Fault> {
        let (kind, code) = (input.u16()?, input.u16()?);
        let kind = match ErrorCode::from_numbers(kind, code) {
            Some(code) => ErrorKind::Known(code),
            None if kind == ERROR_EXPERIMENTER => {
                ErrorKind::Experimenter { experimenter: input.u32()?, exp_type: code }
            }
            None => ErrorKind::Unknown { kind, code },
        };
        Ok(ErrorMsg { kind, data: input.remaining() })
    }
}

impl Wire for Experimenter {
    fn put(&self, out: &mut Writer) {
        out.u32(self.experimenter);
        out.u32(self.exp_type);
        out.bytes(&self.body);
    }

    fn take(input: &mut Reader<'_>) -> Result<Self, Fault> {
        Ok(Experimenter {
            experimenter: input.u32()?,
            exp_type: input.u32()?,
            body: input.remaining(),
        })
    }
}

impl Wire for Features {
    fn put(&self, out: &mut Writer) {
        out.u64(self.datapath_id);
        out.u32(self.buffers);
        out.u8(self.tables);
        out.u8(self.auxiliary_id);
        out.zeros(2);
        out.u32(self.capabilities.bits());
        out.u32(self.actions);
    }

    fn take(input: &mut Reader<'_>) -> Result<Self, Fault> {
        let (datapath_id, buffers) = (input.u64()?, input.u32()?);
        let (tables, auxiliary_id) = (input.u8()?, input.u8()?);
        input.skip(2)?;
        let capabilities = Capabilities::from_bits_retain(input.u32()?);
        let actions = input.u32()?;
        Ok(Features {
            datapath_id,
            buffers,
            tables,
            auxiliary_id,
            capabilities,
            actions,
            ports: Vec::new(),
        })
    }
}

impl Wire for SwitchConfig {
    fn put(&self, out: &mut Writer) {
        out.u16(self.fragments.wire());
        out.u16(self.miss_send_len);
    }

    fn take(input: &mut Reader<'_>) -> Result<Self, Fault> {
        input.need(4)?;
        let fragments =
            known(input.u16()?, FragmentMode::from_wire, ErrorCode::SwitchConfigFailedBadFlags)?;
        let config = SwitchConfig { fragments, miss_send_len: input.u16()? };
        if !input.is_empty() {
            return Err(input.bad_len("bytes after the switch configuration"));
        }
        Ok(config)
    }
}

impl Wire for RoleMsg {
    fn put(&self, out: &mut Writer) {
        out.u32(self.role.wire());
        out.zeros(4);
        out.u64(self.generation_id);
    }

    fn take(input: &mut Reader<'_>) -> Result<Self, Fault> {
        input.need(16)?;
        let role = known(input.u32()?, Role::from_wire, ErrorCode::RoleRequestFailedBadRole)?;
        input.skip(4)?;
        Ok(RoleMsg { role, generation_id: input.u64()? })
    }
}

impl Wire for AsyncConfig {
    fn put(&self, out: &mut Writer) {
        for [master, slave] in [self.packet_in, self.port_status, self.flow_removed] {
            out.u32(master);
            out.u32(slave);
        }
    }

    fn take(input: &mut Reader<'_>) -> Result<Self, Fault> {
        Ok(AsyncConfig {
            packet_in: [input.u32()?, input.u32()?],
            port_status: [input.u32()?, input.u32()?],
            flow_removed: [input.u32()?, input.u32()?],
        })
    }
}

impl Wire for TableMod {
    fn put(&self, out: &mut Writer) {
        out.u8(self.table.0);
        out.zeros(3);
        out.u32(self.config);
    }

    fn take(input: &mut Reader<'_>) -> Result<Self, Fault> {
        let table = TableId(input.u8()?);
        input.skip(3)?;
        Ok(TableMod { table, config: input.u32()? })
    }
}
