//! From format 1 to format 2: records get checksums, rules a note and the moment they were added, groups and meters leave their text.
//!
//! One transaction: a process that is killed meanwhile leaves a file of format 1. Of what format 1 did not keep, the rules say
//! that they were added at the moment of the upgrade.

use super::database::{Records, put_aside, table};
use super::encode::BEFORE_NOTE;
use super::pending::Kind;
use super::stamp::{self, Moment};
use super::{checksum, described};
use openflow::{GroupDesc, GroupModCommand, MeterConfig, MeterModCommand, text};
use redb::{ReadableTable, TableDefinition};

/// Where the records of one table stay until all are written.
const NEW: Records = TableDefinition::new("upgraded");

/// Rewrites every record.
///
/// # Errors
/// The disk refuses; nothing was written.
pub fn records(transaction: &redb::WriteTransaction, now: Moment) -> Result<(), redb::Error> {
    for kind in Kind::ALL {
        rewrite(transaction, kind, now)?;
        transaction.delete_table(table(kind))?;
        transaction.rename_table(NEW, table(kind))?;
    }
    Ok(())
}

fn rewrite(
    transaction: &redb::WriteTransaction,
    kind: Kind,
    now: Moment,
) -> Result<(), redb::Error> {
    let old = transaction.open_table(table(kind))?;
    let mut new = transaction.open_table(NEW)?;
    for entry in old.iter()? {
        let (key, record) = entry?;
        let (switch, id) = key.value();
        match payload(kind, record.value(), now) {
            Some(payload) => {
                new.insert((switch, id), &*checksum::seal(kind, switch, id, &payload))?;
            }
            None => {
                tracing::error!(
                    remedy = "make it anew",
                    "state file: a record of {:?}, switch {switch:?}, cannot be read: set aside",
                    kind.table()
                );
                put_aside(transaction, kind, (switch, id), record.value())?;
            }
        }
    }
    Ok(())
}

/// The payload of a record of format 1; `None` if it cannot be read.
fn payload(kind: Kind, record: &[u8], now: Moment) -> Option<Vec<u8>> {
    let stamp = stamp::bytes(0, now);
    match kind {
        Kind::Flow => {
            let (head, instructions) = record.split_at_checked(BEFORE_NOTE)?;
            Some([head, &[0; 4], &stamp, instructions].concat())
        }
        Kind::Group => Some([&stamp[..], &described::group_bytes(&group(record)?)].concat()),
        Kind::Meter => Some([&stamp[..], &described::meter_bytes(&meter(record)?)].concat()),
        Kind::Switch
        | Kind::Port
        | Kind::Number
        | Kind::PortConfig
        | Kind::Used
        | Kind::Counts
        | Kind::Tables
        | Kind::Steer
        | Kind::Node
        | Kind::Offload
        | Kind::Part => Some(record.to_vec()),
    }
}

fn group(record: &[u8]) -> Option<GroupDesc> {
    let words = std::str::from_utf8(record).ok()?;
    let found = text::parse_group(words, GroupModCommand::Add, &text::no_ports).ok()?;
    Some(GroupDesc { kind: found.kind, id: found.id, buckets: found.buckets })
}

fn meter(record: &[u8]) -> Option<MeterConfig> {
    let words = std::str::from_utf8(record).ok()?;
    let found = text::parse_meter(words, MeterModCommand::Add).ok()?;
    Some(MeterConfig { flags: found.flags, id: found.id, bands: found.bands })
}
