//! Who wants a capture.

use std::fmt;

/// A process at the other end of a socket, as the kernel knows it (unix(7), `SO_PEERCRED`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Asker {
    /// Its user and its own number; `None` where the kernel does not say.
    pub process: Option<(u32, i32)>,
    /// It came by the socket of those who may capture and change nothing.
    pub is_of_group: bool,
}

impl Asker {
    /// Whether it may see what is hidden from all others.
    pub fn is_root(&self) -> bool {
        self.process.is_some_and(|(user, _)| user == 0)
    }

    /// Whether it may end a capture that `other` began: who may change everything may, and of others the same user.
    pub fn may_end_of(&self, other: &Self) -> bool {
        let user = |asker: &Self| asker.process.map(|(user, _)| user);
        !self.is_of_group || self.is_root() || (user(self).is_some() && user(self) == user(other))
    }
}

impl fmt::Display for Asker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.process {
            Some((user, process)) => write!(f, "user {user}, process {process}"),
            None => f.write_str("somebody"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_of_the_group_ends_captures_of_its_own_user_alone() {
        let of = |user, is_of_group| Asker { process: Some((user, 7)), is_of_group };
        let nobody = Asker { process: None, is_of_group: true };
        for (asker, other, may) in [
            (of(1000, true), of(1000, true), true),
            (of(1000, true), of(1000, false), true),
            (of(1000, true), of(1001, true), false),
            (of(1000, true), of(0, false), false),
            (of(1000, false), of(1001, true), true),
            (of(0, true), of(1001, true), true),
            (nobody, nobody, false),
        ] {
            assert_eq!(asker.may_end_of(&other), may, "{asker:?} {other:?}");
        }
    }
}
