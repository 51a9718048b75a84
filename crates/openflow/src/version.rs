//! Which OpenFlow versions there are, and how two sides agree on one (OpenFlow 1.3.5 §6.3.1).

/// A version of the protocol that this crate encodes and decodes.
///
/// A new version is a variant here and a module beside `v13`; the compiler then names every place to extend.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Version {
    /// OpenFlow 1.3 (wire protocol 0x04), to revision 1.3.5.
    V1_3 = 4,
}

impl Version {
    /// Every version that this crate speaks, oldest first.
    pub const ALL: &'static [Version] = &[Version::V1_3];

    /// The version whose wire number is `number`.
    pub fn from_wire(number: u8) -> Option<Self> {
        Self::ALL.iter().copied().find(|v| *v as u8 == number)
    }

    /// The number in the first byte of each message.
    pub fn wire(self) -> u8 {
        self as u8
    }
}

/// A set of wire versions, as the hello's version bitmap carries it (versions 0..=31; more have never existed).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct VersionSet(pub u32);

impl VersionSet {
    /// The versions of the list.
    pub fn of(versions: &[Version]) -> Self {
        Self(versions.iter().fold(0, |bits, v| bits | 1 << v.wire()))
    }

    /// Version `number` and every older one: what a hello without a bitmap says.
    pub fn up_to(number: u8) -> Self {
        Self(if number >= 31 { u32::MAX } else { (2 << number) - 1 })
    }

    /// Whether wire version `number` is a member.
    pub fn contains(self, number: u8) -> bool {
        number < 32 && self.0 >> number & 1 == 1
    }

    /// The newest version in both sets that this crate speaks.
    pub fn newest_common(self, other: VersionSet) -> Option<Version> {
        Version::ALL
            .iter()
            .rev()
            .copied()
            .find(|v| self.contains(v.wire()) && other.contains(v.wire()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hello_without_bitmap_offers_every_older_version() {
        let ours = VersionSet::of(Version::ALL);
        assert_eq!(VersionSet::up_to(6).newest_common(ours), Some(Version::V1_3));
        assert_eq!(VersionSet::up_to(3).newest_common(ours), None);
        assert_eq!(VersionSet(1 << 1 | 1 << 5).newest_common(ours), None);
        assert!(VersionSet::up_to(255).contains(31));
    }
}
