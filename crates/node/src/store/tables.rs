//! The tables of a pipeline as bytes: `(number:1 length:1 name:length)*`.

use crate::journal::TableNames;
use openflow::FixedText;

/// The record of these tables.
pub fn bytes(tables: &TableNames) -> Vec<u8> {
    let mut out = Vec::with_capacity(tables.len() * 10);
    for (table, name) in tables {
        let name = name.as_bytes();
        out.extend([*table, name.len() as u8]); // a name has 32 bytes at most
        out.extend(name);
    }
    out
}

/// Reads [`bytes`]; `None` when the record is damaged.
pub fn read(mut record: &[u8]) -> Option<TableNames> {
    let mut tables = TableNames::new();
    while let [table, length, rest @ ..] = record {
        let (name, next) = rest.split_at_checked(usize::from(*length))?;
        tables.insert(*table, FixedText::new(name));
        record = next;
    }
    record.is_empty().then_some(tables)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_read_are_the_tables_written() {
        let tables = TableNames::from([(0, "".into()), (7, "routes".into())]);
        let written = bytes(&tables);
        assert_eq!(written, [&[0, 0, 7, 6][..], b"routes"].concat());
        assert_eq!(read(&written), Some(tables));
        assert_eq!(read(&written[..9]), None);
        assert_eq!(read(&written[..3]), None);
    }
}
