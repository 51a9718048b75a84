//! One edit on one frame, judged: used by the property test and by the fuzz target.

use super::sums::{State, check};
use wire::{Edit, EditError, Field, HEAD_MAX, Head, Key, Layers, Offload, PartialChecksum, parse};

/// One edit.
#[derive(Clone, Copy, Debug)]
pub enum Op {
    PushVlan(u16),
    PopVlan,
    PushMpls(u16),
    PopMpls(u16),
    PushPbb(u16),
    PopPbb,
    Set(Field, u128, u128),
    CopyTtlOut,
    CopyTtlIn,
    SetMplsTtl(u8),
    DecMplsTtl,
    SetNwTtl(u8),
    DecNwTtl,
}

impl Op {
    /// Whether the frame is called something else afterwards, so that other checksums are looked at.
    fn renames(self) -> bool {
        matches!(self, Self::PushMpls(_) | Self::PopMpls(_) | Self::PushPbb(_) | Self::PopPbb)
            || matches!(self, Self::Set(Field::EthType | Field::IpProto | Field::MplsBos, ..))
    }
}

/// A frame under edit, head and body apart as in a worker.
#[derive(Clone)]
pub struct Subject {
    pub head: Head,
    pub body: Vec<u8>,
    pub key: Key,
    pub layers: Layers,
    pub offload: Offload,
    pub frame_len: u32,
}

impl Subject {
    pub fn new(frame: &[u8], checksum: Option<PartialChecksum>) -> Self {
        let head = Head::copy_of(frame);
        let (key, layers) = parse(&head, 3);
        let offload = Offload { checksum, ..Offload::default() };
        let body = frame.get(HEAD_MAX..).unwrap_or_default().to_vec();
        Self { head, body, key, layers, offload, frame_len: frame.len() as u32 }
    }

    pub fn frame(&self) -> Vec<u8> {
        [self.head.bytes(), &self.body].concat()
    }

    /// Whether the frame has the field: a write under an empty mask is refused only where there is none.
    pub fn has(&self, field: Field) -> bool {
        self.clone().apply(Op::Set(field, 0, 0)).is_ok()
    }

    fn apply(&mut self, op: Op) -> Result<(), EditError> {
        let Self { head, key, layers, offload, frame_len, .. } = self;
        let mut edit = Edit { head, key, layers, offload, frame_len };
        match op {
            Op::PushVlan(tpid) => edit.push_vlan(tpid),
            Op::PopVlan => edit.pop_vlan(),
            Op::PushMpls(eth_type) => edit.push_mpls(eth_type),
            Op::PopMpls(eth_type) => edit.pop_mpls(eth_type),
            Op::PushPbb(eth_type) => edit.push_pbb(eth_type),
            Op::PopPbb => edit.pop_pbb(),
            Op::Set(field, value, mask) => edit.set_field(field, value, mask),
            Op::CopyTtlOut => edit.copy_ttl_out(),
            Op::CopyTtlIn => edit.copy_ttl_in(),
            Op::SetMplsTtl(ttl) => edit.set_mpls_ttl(ttl),
            Op::DecMplsTtl => edit.dec_mpls_ttl(),
            Op::SetNwTtl(ttl) => edit.set_nw_ttl(ttl),
            Op::DecNwTtl => edit.dec_nw_ttl(),
        }
    }

    /// Applies `op` and checks everything that must hold afterwards, whatever the frame.
    ///
    /// # Panics
    /// When something does not hold.
    pub fn edit_and_check(&mut self, op: Op) -> Result<(), EditError> {
        let before = self.clone();
        let result = self.apply(op);
        if result.is_err() {
            self.is_unchanged(&before, op);
            return result;
        }
        self.is_in_step(op);
        self.keeps_checksums(&before, op);
        self.has_the_value(&before, op);
        result
    }

    fn is_unchanged(&self, before: &Self, op: Op) {
        assert_eq!(self.head.bytes(), before.head.bytes(), "refused {op:?} changed the head");
        assert_eq!(
            (self.key, self.layers),
            (before.key, before.layers),
            "refused {op:?} changed the key"
        );
        assert_eq!(
            (self.offload, self.frame_len),
            (before.offload, before.frame_len),
            "refused {op:?}"
        );
    }

    /// Key and layers equal a fresh parse; the length is the frame's.
    fn is_in_step(&self, op: Op) {
        let (mut key, layers) = parse(&self.head, 3);
        for noted in [Field::TunnelId, Field::TunDst] {
            key.set(noted, self.key.get(noted));
        }
        assert_eq!((self.key, self.layers), (key, layers), "{op:?}");
        assert_eq!(self.frame_len as usize, self.frame().len(), "{op:?}");
    }

    /// What was right is right, what was partial is partial, what was unused is unused.
    fn keeps_checksums(&self, before: &Self, op: Op) {
        if op.renames() {
            return;
        }
        let old = check(&before.frame(), before.offload.checksum);
        let new = check(&self.frame(), self.offload.checksum);
        for (old, new) in old.into_iter().zip(new) {
            let must_stay = matches!(old, State::Right | State::Partial | State::Unused);
            assert!(!must_stay || old == new, "{op:?}: {old:?} became {new:?}");
        }
    }

    /// A field that was set has the new bits under the mask and the old ones elsewhere.
    fn has_the_value(&self, before: &Self, op: Op) {
        let Op::Set(field, value, mask) = op else { return };
        if op.renames() || matches!(field, Field::VlanVid) {
            return;
        }
        let mask = mask & field.full();
        let expected = before.key.get(field) & !mask | value & mask;
        assert_eq!(self.key.get(field), expected, "{op:?}");
    }
}
