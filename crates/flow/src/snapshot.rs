//! What workers see of a switch: immutable, stamped with a generation.

/// One published state of a switch's tables.
#[derive(Default)]
pub struct Snapshot {
    generation: u32,
}

impl Snapshot {
    /// Which publication this is.
    pub fn generation(&self) -> u32 {
        self.generation
    }
}
