//! Sets of tables.

/// A set of table numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TableSet([u64; 4]);

impl TableSet {
    /// Whether the table is one of them.
    pub fn contains(&self, table: u8) -> bool {
        self.0[usize::from(table / 64)] >> (table % 64) & 1 == 1
    }

    /// Puts a table in.
    pub(crate) fn insert(&mut self, table: u8) {
        self.0[usize::from(table / 64)] |= 1 << (table % 64);
    }

    /// The tables, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u8> {
        (0..=u8::MAX).filter(|&table| self.contains(table))
    }

    /// The highest table that one of two sets has and the other has not.
    pub(crate) fn last_difference(&self, other: &Self) -> Option<u8> {
        (0..=u8::MAX).rev().find(|&table| self.contains(table) != other.contains(table))
    }
}

impl FromIterator<u8> for TableSet {
    fn from_iter<I: IntoIterator<Item = u8>>(tables: I) -> Self {
        let mut set = Self::default();
        for table in tables {
            set.insert(table);
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_difference_is_found_whichever_set_has_it() {
        let set = |tables: &[u8]| TableSet::from_iter(tables.iter().copied());
        let all = TableSet::from_iter(0..254);
        assert_eq!(set(&[0, 1, 64, 255]).last_difference(&set(&[0, 2, 64, 255])), Some(2));
        assert_eq!(all.last_difference(&set(&[0, 253])), Some(252));
        assert_eq!(set(&[0]).last_difference(&all), Some(253));
        assert_eq!(all.last_difference(&all), None);
        assert!(all.contains(253) && !all.contains(254));
        assert!(set(&[]).iter().eq([]) && set(&[255, 0, 64, 63]).iter().eq([0, 63, 64, 255]));
    }
}
