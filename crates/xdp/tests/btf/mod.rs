//! The structs of a compiled object, by its BTF (linux/btf.h).

use object::{Object, ObjectSection};

const KIND_INT: u32 = 1;
const KIND_ARRAY: u32 = 3;
const KIND_STRUCT: u32 = 4;
const KIND_UNION: u32 = 5;
const KIND_ENUM: u32 = 6;
const KIND_FUNC_PROTO: u32 = 13;
const KIND_VAR: u32 = 14;
const KIND_DATASEC: u32 = 15;
const KIND_DECL_TAG: u32 = 17;
const KIND_ENUM64: u32 = 19;

/// A struct as BTF tells it: size, and (name, byte offset) of each field.
#[derive(PartialEq, Eq, Debug)]
pub struct Layout {
    pub size: usize,
    pub fields: Vec<(String, usize)>,
}

/// BTF's sections: `len` words of types, then strings.
pub struct Btf {
    types: Vec<u32>,
    strings: Vec<u8>,
}

impl Btf {
    /// Of a compiled object.
    pub fn of(object: &[u8]) -> Self {
        let file = object::File::parse(object).expect("an ELF object");
        let bytes = file
            .section_by_name(".BTF")
            .expect("compiled with -g")
            .data()
            .expect("plain bytes")
            .to_vec();
        let word = |at: usize| {
            u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes")) as usize
        };
        // struct btf_header: hdr_len at 4, type_off 8, type_len 12, str_off 16, str_len 20.
        let (header, types, strings) =
            (word(4), word(8)..word(8) + word(12), word(16)..word(16) + word(20));
        Self {
            types: types.step_by(4).map(|at| word(header + at) as u32).collect(),
            strings: bytes[header..][strings].to_vec(),
        }
    }

    fn name(&self, at: u32) -> String {
        let name = self.strings[at as usize..].split(|&byte| byte == 0).next();
        String::from_utf8_lossy(name.unwrap_or_default()).into_owned()
    }

    /// Walks `struct btf_type` { name, info (vlen 0..16, kind 24..29), size } and what follows each.
    pub fn layout_of(&self, wanted: &str) -> Layout {
        let mut at = 0;
        loop {
            let &[name, info, size] =
                self.types[at..at + 3].first_chunk().expect("the struct is in the BTF");
            let (kind, vlen) = (info >> 24 & 0x1f, (info & 0xffff) as usize);
            if kind == KIND_STRUCT && self.name(name) == wanted {
                let members = self.types[at + 3..at + 3 + 3 * vlen].chunks(3);
                let fields =
                    members.map(|member| (self.name(member[0]), member[2] as usize / 8)).collect();
                return Layout { size: size as usize, fields };
            }
            at += 3 + match kind {
                KIND_INT | KIND_VAR | KIND_DECL_TAG => 1,
                KIND_ARRAY => 3,
                KIND_STRUCT | KIND_UNION | KIND_DATASEC | KIND_ENUM64 => 3 * vlen,
                KIND_ENUM | KIND_FUNC_PROTO => 2 * vlen,
                _ => 0,
            };
        }
    }
}
