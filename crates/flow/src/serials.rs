//! Serial numbers of snapshots.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A source of serial numbers, which all switches of a node share.
///
/// So what a worker keeps of one switch is never taken for another's, also when a switch has gone and a new one has its number.
#[derive(Clone, Debug, Default)]
pub struct Serials(Arc<AtomicU64>);

impl Serials {
    /// A number that was never given before; never 0.
    pub(crate) fn next(&self) -> u64 {
        self.0.fetch_add(1, Relaxed) + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_shares_them_gets_other_numbers() {
        let (one, another) = (Serials::default(), Serials::default());
        let shared = one.clone();
        assert_eq!([one.next(), shared.next(), one.next(), another.next()], [1, 2, 3, 1]);
    }
}
