//! Meters, read and printed.

use super::actions_print::print_meter_id;
use super::error::TextError;
use super::obeyed::{not_everything, only_number};
use super::scan::{Item, Span, items};
use super::value::{self, print_duration};
use crate::ids::MeterId;
use crate::meter::{
    BandKind, MeterBand, MeterConfig, MeterFlags, MeterMod, MeterModCommand, MeterStats,
};

/// Reads a meter: `meter=N,kbps|pktps[,burst][,stats],bands=type=drop,rate=N[,burst_size=N]...`.
///
/// A deletion takes the number alone.
///
/// # Errors
/// What is wrong, where, and what to write instead.
pub fn parse_meter(text: &str, command: MeterModCommand) -> Result<MeterMod, TextError> {
    let whole = Span::whole(text);
    if command == MeterModCommand::Delete {
        return deletion(whole);
    }
    let mut id = None;
    let mut flags = MeterFlags::empty();
    let mut bands = Vec::new();
    for item in flatten(whole)? {
        match item.key.text.to_ascii_lowercase().as_str() {
            "meter" => id = Some(meter_id(item.required()?)?),
            "kbps" => flags |= item.bare().map(|()| MeterFlags::KBPS)?,
            "pktps" => flags |= item.bare().map(|()| MeterFlags::PKTPS)?,
            "burst" => flags |= item.bare().map(|()| MeterFlags::BURST)?,
            "stats" => flags |= item.bare().map(|()| MeterFlags::STATS)?,
            "type" => bands.push(band_type(item.required()?)?),
            _ => band_option(&item, bands.last_mut())?,
        }
    }
    let id = id.ok_or_else(|| whole.error("no meter number", "write meter=N"))?;
    let meter = MeterMod { command, flags, id, bands };
    check(&meter, whole)?;
    Ok(meter)
}

/// The deletion of the one meter that `whole` names.
fn deletion(whole: Span<'_>) -> Result<MeterMod, TextError> {
    let id = meter_id(only_number(whole, "meter", "write meter=N")?)?;
    not_everything(whole, id == MeterId::ALL)?;
    let command = MeterModCommand::Delete;
    let meter = MeterMod { command, flags: MeterFlags::empty(), id, bands: Vec::new() };
    meter.check().map_err(|fault| whole.error(fault.what, "write meter=N"))?;
    Ok(meter)
}

/// The items, with `bands=type=drop` and `band=type=drop` as `type=drop`.
fn flatten(text: Span<'_>) -> Result<Vec<Item<'_>>, TextError> {
    let mut flat = Vec::new();
    for item in items(text)? {
        match item.is("bands") || item.is("band") {
            true => flat.extend(items(item.value)?),
            false => flat.push(item),
        }
    }
    Ok(flat)
}

/// A meter's number, or `controller`, `slowpath`, `all`.
fn meter_id(word: Span<'_>) -> Result<MeterId, TextError> {
    match word.text.to_ascii_lowercase().as_str() {
        "controller" => Ok(MeterId::CONTROLLER),
        "slowpath" => Ok(MeterId::SLOWPATH),
        "all" => Ok(MeterId::ALL),
        _ => Ok(MeterId(value::small(word, MeterId::MAX.0)?)),
    }
}

fn band_type(word: Span<'_>) -> Result<MeterBand, TextError> {
    let kind = match word.text.to_ascii_lowercase().as_str() {
        "drop" => BandKind::Drop,
        "dscp_remark" => BandKind::DscpRemark { prec_level: 0 },
        _ => return Err(word.error("not a band type", "give drop or dscp_remark")),
    };
    Ok(MeterBand { kind, rate: 0, burst_size: 0 })
}

fn band_option(item: &Item<'_>, band: Option<&mut MeterBand>) -> Result<(), TextError> {
    let Some(band) = band else {
        return Err(item
            .whole
            .error("not part of a meter", "write meter=N,kbps,bands=type=drop,rate=N"));
    };
    match (item.key.text.to_ascii_lowercase().as_str(), &mut band.kind) {
        ("rate", _) => band.rate = value::small(item.required()?, u32::MAX)?,
        ("burst_size", _) => band.burst_size = value::small(item.required()?, u32::MAX)?,
        ("prec_level", BandKind::DscpRemark { prec_level }) => {
            *prec_level = value::small(item.required()?, u8::MAX)?
        }
        ("prec_level", _) => {
            return Err(item.whole.error("only dscp_remark has a level", "leave it out"));
        }
        _ => {
            return Err(item
                .whole
                .error("not part of a band", "bands have type, rate, burst_size, prec_level"));
        }
    }
    Ok(())
}

fn check(meter: &MeterMod, whole: Span<'_>) -> Result<(), TextError> {
    meter.check().map_err(|fault| {
        whole.error(fault.what, "give each band a rate, and one of kbps and pktps")
    })?;
    if meter.flags.intersection(MeterFlags::KBPS | MeterFlags::PKTPS).is_empty() {
        return Err(whole.error("rates without a unit", "add kbps or pktps"));
    }
    if meter.bands.is_empty() {
        return Err(whole.error("a meter without bands", "add bands=type=drop,rate=N"));
    }
    let bursts = meter.flags.contains(MeterFlags::BURST);
    if meter.bands.iter().any(|band| (band.burst_size != 0) != bursts) {
        return Err(
            whole.error("burst and burst_size go together", "give both, in each band, or neither")
        );
    }
    Ok(())
}

/// A meter as `ovs-ofctl dump-meters` prints it, one line and one more per band; it reads back.
pub fn print_meter(meter: &MeterConfig) -> String {
    let flags = [
        (MeterFlags::KBPS, "kbps "),
        (MeterFlags::PKTPS, "pktps "),
        (MeterFlags::BURST, "burst "),
        (MeterFlags::STATS, "stats "),
    ];
    let flags: String =
        flags.iter().filter(|(f, _)| meter.flags.contains(*f)).map(|(_, name)| *name).collect();
    let bands: String = meter.bands.iter().map(|band| print_band(band, meter.flags)).collect();
    format!("meter={} {flags}bands=\n{bands}", print_meter_id(meter.id))
}

fn print_band(band: &MeterBand, flags: MeterFlags) -> String {
    let burst = match flags.contains(MeterFlags::BURST) {
        true => format!(" burst_size={}", band.burst_size),
        false => String::new(),
    };
    let (kind, level) = match band.kind {
        BandKind::Drop => ("drop".to_owned(), String::new()),
        BandKind::DscpRemark { prec_level } => {
            ("dscp_remark".to_owned(), format!(" prec_level={prec_level}"))
        }
        BandKind::Experimenter { experimenter } => {
            (format!("experimenter:{experimenter:#x}"), String::new())
        }
    };
    format!("type={kind} rate={}{burst}{level}\n", band.rate)
}

/// A meter's counters as `ovs-ofctl meter-stats` prints them, one line and one more per band.
pub fn print_meter_stats(meter: &MeterStats) -> String {
    let age = print_duration(meter.duration_s, meter.duration_ns);
    let bands = meter.bands.iter().enumerate();
    let bands = bands
        .map(|(i, band)| format!("{i}: packet_count:{} byte_count:{}\n", band.packets, band.bytes));
    format!(
        "meter:{} flow_count:{} packet_in_count:{} byte_in_count:{} duration:{age} bands:\n{}",
        print_meter_id(meter.id),
        meter.flow_count,
        meter.input.packets,
        meter.input.bytes,
        bands.collect::<String>()
    )
}
