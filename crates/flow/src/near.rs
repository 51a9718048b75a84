//! Entries that a frame nearly finds: what kept each from it.
//!
//! Only those that would have been found instead count, which are those of higher priority; all, where none was found. A field that differs makes one
//! of distance, however many bits it is; the Ethernet type and the IP protocol stand for all that they name.

use crate::resolve::is_named;
use crate::stats::FlowStats;
use std::cmp::Reverse;
use wire::{Field, Key, WORDS};

/// Fields that may differ. Chosen: a person sees no likeness beyond.
const FIELDS: usize = 2;

/// The entries of a table that come nearest to a frame, looked for one by one.
pub struct Near {
    key: Key,
    known: Key,
    above: Option<u16>,
    most: usize,
    best: Vec<NearMiss>,
    looked: u64,
}

/// An entry that a frame nearly finds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NearMiss {
    /// The entry.
    pub entry: FlowStats,
    /// The fields in which the frame differs from its match, and the bits that do.
    pub differs: Vec<(Field, u128)>,
}

impl NearMiss {
    /// The nearest first.
    fn distance(&self) -> (usize, u32, Reverse<u16>) {
        let bits = self.differs.iter().map(|(_, bits)| bits.count_ones()).sum();
        (self.differs.len(), bits, Reverse(self.entry.priority))
    }
}

impl Near {
    /// For a frame of `key`, of which the bits of `known` are known, that found an entry of the priority `above`, or none; keeps the `most`
    /// nearest.
    pub fn new((key, known): (Key, Key), above: Option<u16>, most: usize) -> Self {
        Self { key, known, above, most, best: Vec::new(), looked: 0 }
    }

    /// Looks at an entry of the table.
    pub fn look(&mut self, entry: FlowStats) {
        if self.above.is_some_and(|above| entry.priority <= above) {
            return;
        }
        self.looked += 1;
        let differs = differs(&self.key, &self.known, &entry);
        if differs.is_empty() || differs.len() > FIELDS {
            return;
        }
        let miss = NearMiss { entry, differs };
        let at = self.best.partition_point(|other| other.distance() <= miss.distance());
        self.best.insert(at, miss);
        self.best.truncate(self.most);
    }

    /// The nearest, and how many might have been found.
    pub fn found(self) -> (Vec<NearMiss>, u64) {
        (self.best, self.looked)
    }
}

/// What keeps a frame's way through a table open: a field of the entry of highest priority, of those that the frame may find instead of the one
/// that it finds as it is. `entries` are the table's.
pub fn open_field(
    (key, known): (&Key, &Key),
    found: Option<&FlowStats>,
    entries: impl Iterator<Item = FlowStats>,
) -> Option<(u16, Field)> {
    let may_be_found = |entry: &FlowStats| {
        let comes_first = found.is_none_or(|found| entry.priority > found.priority);
        let open = entry.mask.without(known);
        let agrees = entry.key.masked(known) == key.masked(&entry.mask).masked(known);
        comes_first && agrees && open != Key::default()
    };
    let depends = |found: &&FlowStats| found.mask.without(known) != Key::default();
    let rivals = entries.filter(may_be_found).chain(found.filter(depends).cloned());
    rivals.max_by_key(|entry| entry.priority).map(|rival| (rival.priority, open(known, &rival)))
}

/// A field of an entry's match that is not known.
fn open(known: &Key, entry: &FlowStats) -> Field {
    let bits = entry.mask.without(known);
    let said = |field: Field| (entry.mask.get(field) == field.full()).then(|| entry.key.get(field));
    let (of_type, of_proto) = (said(Field::EthType), said(Field::IpProto));
    let is_it = |field: &&Field| {
        let named = is_named(**field, of_type.map(|is| is as u16), of_proto.map(|is| is as u8));
        bits.get(**field) != 0 && named
    };
    // What names the headers comes first.
    let first = [Field::EthType, Field::IpProto];
    *first.iter().chain(Field::ALL).find(is_it).unwrap_or(&Field::Metadata)
}

/// In which fields a frame differs from an entry's match.
fn differs(key: &Key, known: &Key, entry: &FlowStats) -> Vec<(Field, u128)> {
    let bits = |i| (key.0[i] ^ entry.key.0[i]) & entry.mask.0[i] & known.0[i];
    let bits = Key(std::array::from_fn(bits));
    if bits.0 == [0; WORDS] {
        return Vec::new();
    }
    let wants =
        |field: Field| (entry.mask.get(field) == field.full()).then(|| entry.key.get(field));
    let (of_type, of_proto) = (wants(Field::EthType), wants(Field::IpProto));
    let (mut fields, mut named) = (Vec::new(), Key::default());
    for &field in Field::ALL {
        let differs = bits.without(&named).get(field);
        let is_it = is_named(field, of_type.map(|is| is as u16), of_proto.map(|is| is as u8));
        if differs != 0 && is_it {
            fields.push((field, differs));
            named.set(field, field.full());
        }
    }
    let has = |field| fields.iter().any(|&(other, _)| other == field);
    let (type_differs, proto_differs) = (has(Field::EthType), has(Field::IpProto));
    fields.retain(|&(field, _)| match field {
        Field::EthType => true,
        Field::IpProto => !type_differs,
        _ if type_differs => !is_behind_type(field),
        _ if proto_differs => !is_behind_proto(field),
        _ => true,
    });
    fields
}

/// Whether there is such a field only behind some Ethernet types.
fn is_behind_type(field: Field) -> bool {
    use Field::{
        EthDst, EthSrc, InPhyPort, InPort, Metadata, TunDst, TunSrc, TunnelId, VlanPcp, VlanVid,
    };
    !matches!(
        field,
        InPort
            | InPhyPort
            | Metadata
            | TunnelId
            | TunSrc
            | TunDst
            | EthDst
            | EthSrc
            | VlanVid
            | VlanPcp
    )
}

/// Whether there is such a field only behind some IP protocols.
fn is_behind_proto(field: Field) -> bool {
    use Field::{IcmpCode, IcmpType, Ipv6NdSll, Ipv6NdTarget, Ipv6NdTll, TcpFlags, TpDst, TpSrc};
    matches!(
        field,
        TpSrc | TpDst | TcpFlags | IcmpType | IcmpCode | Ipv6NdTarget | Ipv6NdSll | Ipv6NdTll
    )
}
