//! Which OpenFlow versions there are, and how two sides agree on one (OpenFlow 1.3.5 §6.3.1).

use std::fmt;

/// A version of the protocol that this crate encodes and decodes.
///
/// A new version is a variant here and a module beside `v13`; the compiler then names every place to extend. Where versions mean
/// different things by the same request, a predicate here says so, and code elsewhere asks the predicate.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Version {
    /// OpenFlow 1.0 (wire protocol 0x01), 1.0.0 with the clarifications of 1.0.1.
    V1_0 = 1,
    /// OpenFlow 1.3 (wire protocol 0x04), to revision 1.3.5.
    V1_3 = 4,
}

impl Version {
    /// Every version that this crate speaks, oldest first.
    pub const ALL: &'static [Version] = &[Version::V1_0, Version::V1_3];

    /// The version whose wire number is `number`.
    pub fn from_wire(number: u8) -> Option<Self> {
        Self::ALL.iter().copied().find(|v| *v as u8 == number)
    }

    /// The number in the first byte of each message.
    pub fn wire(self) -> u8 {
        self as u8
    }

    /// As people write it: `1.3`.
    pub const fn name(self) -> &'static str {
        match self {
            Version::V1_0 => "1.0",
            Version::V1_3 => "1.3",
        }
    }

    /// The version of that [name](Self::name).
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|version| version.name() == name)
    }

    /// A packet that no entry matches goes to the controller (1.0.0 §3.4); later versions drop it and have table-miss entries
    /// instead (1.3.5 §5.4).
    pub fn sends_misses_to_controller(self) -> bool {
        self < Version::V1_3
    }

    /// An entry that matches everything at priority 0 is the table-miss entry, and what it sends is a miss (1.3.5 §5.4). Before there
    /// were none.
    pub fn has_table_miss_entries(self) -> bool {
        self >= Version::V1_3
    }

    /// There is an error for a set-config whose flags cannot be had (1.3.5 §7.4.4.11); before, they are taken and not obeyed.
    pub fn refuses_configurations(self) -> bool {
        self >= Version::V1_3
    }

    /// A modify that finds no entry adds one (1.0.0 §4.6); later versions change nothing then (1.3.5 §6.4).
    pub fn modify_adds_what_it_misses(self) -> bool {
        self < Version::V1_3
    }

    /// An add that replaces an identical entry begins with counters of 0 (1.0.0 §4.6: the old entry goes with its counters); later
    /// versions keep them unless a flag says otherwise (1.3.5 §6.4).
    pub fn adds_start_afresh(self) -> bool {
        self < Version::V1_3
    }

    /// A modify gives entries its cookie. 1.0.0 §4.6 leaves it open, and Open vSwitch does so for 1.0; later versions keep the entry's
    /// own (1.3.5 §6.4).
    pub fn modify_gives_its_cookie(self) -> bool {
        self < Version::V1_3
    }

    /// Actions on headers that the match does not promise are refused (1.3.5 §7.2.5). In 1.0 they are taken, and do nothing to
    /// packets without the header (1.0.0 §5.2.4 asks only for arguments that make sense).
    pub fn demands_promised_headers(self) -> bool {
        self >= Version::V1_3
    }

    /// The actions that the features reply tells, a bit for each type (1.0.0 §5.3.1): all twelve. Later versions tell none there.
    pub fn actions_in_features(self) -> u32 {
        if self < Version::V1_3 { 0xfff } else { 0 }
    }

    /// The features reply tells the ports (1.0.0 §5.3.1); later versions have a multipart for them.
    pub fn lists_ports_in_features(self) -> bool {
        self < Version::V1_3
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
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

    /// Whether wire version `number` is a member.
    pub fn contains(self, number: u8) -> bool {
        number < 32 && self.0 >> number & 1 == 1
    }

    /// The members that this crate speaks, oldest first.
    pub fn known(self) -> impl DoubleEndedIterator<Item = Version> {
        Version::ALL.iter().copied().filter(move |version| self.contains(version.wire()))
    }

    /// The newest version in both sets that this crate speaks.
    pub fn newest_common(self, other: VersionSet) -> Option<Version> {
        self.known().rfind(|version| other.contains(version.wire()))
    }

    /// Whether a hello must list the set: one that only names its newest member stands for that and every older version back to
    /// 1.0, which is all that a peer before 1.3.1 can understand.
    pub fn needs_bitmap(self) -> bool {
        !(self.0 >> 1).wrapping_add(1).is_power_of_two()
    }

    /// The version that a switch of these versions and a peer agree on, from the peer's hello: the newest common one if both
    /// listed theirs, otherwise the smaller of the versions in the two headers (1.3.5 §6.3.1), if it is one of ours.
    pub fn agree(self, header: u8, listed: Option<VersionSet>) -> Option<Version> {
        if let Some(theirs) = listed {
            return self.newest_common(theirs);
        }
        let newest = self.known().next_back()?;
        Version::from_wire(header.min(newest.wire()))
            .filter(|version| self.contains(version.wire()))
    }
}

impl fmt::Display for VersionSet {
    /// `1.0 and 1.3`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.known().map(Version::name).collect();
        f.write_str(&names.join(" and "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: VersionSet = VersionSet(1 << 1 | 1 << 4);
    const ONLY_1_0: VersionSet = VersionSet(1 << 1);
    const ONLY_1_3: VersionSet = VersionSet(1 << 4);

    #[test]
    fn without_a_list_the_smaller_version_is_agreed_on() {
        for (ours, header, agreed) in [
            (BOTH, 1, Some(Version::V1_0)),
            (BOTH, 2, None),
            (BOTH, 3, None),
            (BOTH, 4, Some(Version::V1_3)),
            (BOTH, 6, Some(Version::V1_3)),
            (BOTH, 255, Some(Version::V1_3)),
            (ONLY_1_0, 4, Some(Version::V1_0)),
            (ONLY_1_3, 1, None),
            (ONLY_1_3, 0, None),
        ] {
            assert_eq!(ours.agree(header, None), agreed, "{ours:?} and a hello of {header}");
        }
    }

    #[test]
    fn with_lists_the_newest_common_version_is_agreed_on() {
        assert_eq!(BOTH.agree(6, Some(VersionSet(1 << 1 | 1 << 6))), Some(Version::V1_0));
        assert_eq!(BOTH.agree(6, Some(VersionSet(0x72))), Some(Version::V1_3));
        assert_eq!(BOTH.agree(6, Some(VersionSet(1 << 5 | 1 << 6))), None);
        assert_eq!(ONLY_1_3.agree(4, Some(ONLY_1_0)), None);
    }

    #[test]
    fn only_a_set_with_gaps_needs_a_list() {
        assert!(BOTH.needs_bitmap() && ONLY_1_3.needs_bitmap());
        assert!(!ONLY_1_0.needs_bitmap() && !VersionSet(0b11110).needs_bitmap());
    }

    #[test]
    fn versions_are_named_as_people_write_them() {
        for &version in Version::ALL {
            assert_eq!(Version::from_name(version.name()), Some(version));
        }
        assert_eq!(BOTH.to_string(), "1.0 and 1.3");
    }
}
