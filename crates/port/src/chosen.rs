//! Choices of the node, where a port's specification leaves them to it.

/// What a port is opened with beside its specification.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Chosen {
    /// MAC address of a port that has no interface to have one, where none is asked for.
    pub mac: [u8; 6],
    /// Where an encrypted port's packets are sealed.
    pub seal_on: SealOn,
}

/// Where an encrypted port's packets are sealed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SealOn {
    /// The core of a thread of their own; `None`: each packet where its frame is forwarded.
    pub core: Option<usize>,
    /// For people.
    pub why: String,
}

impl Default for SealOn {
    fn default() -> Self {
        Self { core: None, why: "as usual".into() }
    }
}
