//! Groups, read and printed.

use super::actions::parse_bucket_actions;
use super::actions_print::print_actions;
use super::error::TextError;
use super::obeyed::{not_everything, only_number};
use super::ports::{Name, Resolve, port, print_port};
use super::scan::{Item, Span, items, next_item};
use super::value::{self, print_duration};
use crate::group::{Bucket, GroupDesc, GroupMod, GroupModCommand, GroupStats, GroupType};
use crate::ids::{GroupId, PortNo};

/// Reads a group: `group_id=N,type=TYPE,bucket=...,bucket=...`. A deletion takes the number alone.
///
/// # Errors
/// What is wrong, where, and what to write instead.
pub fn parse_group(
    text: &str,
    command: GroupModCommand,
    resolve: Resolve<'_>,
) -> Result<GroupMod, TextError> {
    let whole = Span::whole(text);
    if command == GroupModCommand::Delete {
        return deletion(whole);
    }
    let mut id = None;
    let mut kind = None;
    let mut rest = whole;
    let mut buckets = Vec::new();
    while let Some((item, next)) = next_item(rest)? {
        match item.key.text.to_ascii_lowercase().as_str() {
            "group_id" => id = Some(super::flow::group(item.required()?)?),
            "type" => kind = Some(group_type(item.required()?)?),
            "bucket" | "buckets" => {
                buckets = bucket_texts(rest);
                break;
            }
            _ => {
                return Err(item
                    .whole
                    .error("not part of a group", "write group_id=N,type=TYPE,bucket=ACTION,..."));
            }
        }
        rest = next;
    }
    let id = id
        .filter(|id| *id <= GroupId::MAX)
        .ok_or_else(|| whole.error("no group number", "write group_id=N"))?;
    let kind =
        kind.ok_or_else(|| whole.error("no group type", "add type=all, select, indirect or ff"))?;
    let buckets: Result<Vec<Bucket>, TextError> =
        buckets.iter().map(|b| parse_bucket(*b, kind, resolve)).collect();
    let group = GroupMod { command, kind, id, buckets: buckets? };
    group
        .check()
        .map_err(|fault| whole.error(fault.what, "an indirect group has exactly one bucket"))?;
    Ok(group)
}

/// The deletion of the one group that `whole` names.
fn deletion(whole: Span<'_>) -> Result<GroupMod, TextError> {
    let id = super::flow::group(only_number(whole, "group_id", "write group_id=N")?)?;
    not_everything(whole, id == GroupId::ALL)?;
    let command = GroupModCommand::Delete;
    let group = GroupMod { command, kind: GroupType::All, id, buckets: Vec::new() };
    group.check().map_err(|fault| whole.error(fault.what, "write group_id=N"))?;
    Ok(group)
}

fn group_type(word: Span<'_>) -> Result<GroupType, TextError> {
    match word.text.to_ascii_lowercase().as_str() {
        "all" => Ok(GroupType::All),
        "select" => Ok(GroupType::Select),
        "indirect" => Ok(GroupType::Indirect),
        "ff" | "fast_failover" => Ok(GroupType::FastFailover),
        _ => Err(word.error("not a group type", "give all, select, indirect or ff")),
    }
}

/// The text after each `bucket=`, up to the next one.
fn bucket_texts(text: Span<'_>) -> Vec<Span<'_>> {
    let starts: Vec<usize> =
        text.text.match_indices("bucket").map(|(at, _)| at).filter(|at| opens(text, *at)).collect();
    let ends = starts.iter().skip(1).copied().chain([text.text.len()]);
    let body = |(start, end): (&usize, usize)| {
        let text = text.slice(*start..end);
        text.from(text.text.find(['=', ':']).map_or(text.text.len(), |at| at + 1))
    };
    starts.iter().zip(ends).map(body).collect()
}

/// Whether the word `bucket` at `at` opens a bucket, and is not part of `bucket_id` or of a name.
fn opens(text: Span<'_>, at: usize) -> bool {
    let before =
        text.text[..at].chars().next_back().is_none_or(|c| c == ',' || c.is_ascii_whitespace());
    let after = text.text[at + "bucket".len()..].trim_start_matches('s');
    before && after.starts_with(['=', ':'])
}

fn parse_bucket(
    text: Span<'_>,
    kind: GroupType,
    resolve: Resolve<'_>,
) -> Result<Bucket, TextError> {
    let weight = if kind == GroupType::Select { 1 } else { 0 };
    let mut bucket =
        Bucket { weight, watch_port: PortNo::ANY, watch_group: GroupId::ANY, actions: Vec::new() };
    let mut actions = Vec::new();
    for item in items(text)? {
        match item.key.text.to_ascii_lowercase().as_str() {
            "weight" => bucket.weight = value::small(item.required()?, u16::MAX)?,
            "watch_port" => bucket.watch_port = port(item.required()?, resolve)?,
            "watch_group" => bucket.watch_group = super::flow::group(item.required()?)?,
            "bucket_id" => {
                return Err(item
                    .whole
                    .error("buckets have no numbers in OpenFlow 1.3", "leave it out"));
            }
            "actions" | "action" => actions.extend(first_action(item)?),
            _ => actions.push(item),
        }
    }
    bucket.actions = parse_bucket_actions(&actions, resolve)?;
    Ok(bucket)
}

/// `actions=` stands before the first action without a separator.
fn first_action(item: Item<'_>) -> Result<Vec<Item<'_>>, TextError> {
    items(item.value)
}

fn type_name(kind: GroupType) -> &'static str {
    match kind {
        GroupType::All => "all",
        GroupType::Select => "select",
        GroupType::Indirect => "indirect",
        GroupType::FastFailover => "ff",
    }
}

/// A group as one line of `ovs-ofctl dump-groups`, without its leading space; it reads back.
pub fn print_group(group: &GroupDesc, name: Name<'_>) -> String {
    let buckets: String = group.buckets.iter().map(|b| print_bucket(b, group.kind, name)).collect();
    format!("group_id={},type={}{buckets}", group.id.0, type_name(group.kind))
}

fn print_bucket(bucket: &Bucket, kind: GroupType, name: Name<'_>) -> String {
    let mut text = ",bucket=".to_owned();
    if bucket.weight != (if kind == GroupType::Select { 1 } else { 0 }) {
        text += &format!("weight:{},", bucket.weight);
    }
    if bucket.watch_port != PortNo::ANY {
        text += &format!("watch_port:{},", print_port(bucket.watch_port, name));
    }
    if bucket.watch_group != GroupId::ANY {
        text += &format!("watch_group:{},", bucket.watch_group.0);
    }
    text + "actions=" + &print_actions(&bucket.actions, name)
}

/// A group's counters as one line of `ovs-ofctl dump-group-stats`, without its leading space.
pub fn print_group_stats(group: &GroupStats) -> String {
    let age = print_duration(group.duration_s, group.duration_ns);
    let buckets = group.buckets.iter().enumerate();
    let buckets = buckets
        .map(|(i, c)| format!(",bucket{i}:packet_count={},byte_count={}", c.packets, c.bytes));
    format!(
        "group_id={},duration={age},ref_count={},packet_count={},byte_count={}{}",
        group.id.0,
        group.ref_count,
        group.total.packets,
        group.total.bytes,
        buckets.collect::<String>()
    )
}
