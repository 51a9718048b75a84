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
/// `flags=N` says OpenFlow's bits as they are, instead of the words; then nothing is asked that OpenFlow does not ask.
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
    let mut as_it_is = false;
    let mut bands = Vec::new();
    for item in flatten(whole)? {
        match item.key.text.to_ascii_lowercase().as_str() {
            "meter" => id = Some(meter_id(item.required()?)?),
            "flags" => {
                let bits = value::small(item.required()?, MeterFlags::all().bits())?;
                (flags, as_it_is) = (flags | MeterFlags::from_bits_retain(bits), true);
            }
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
    check(&meter, whole, as_it_is)?;
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

fn check(meter: &MeterMod, whole: Span<'_>, as_it_is: bool) -> Result<(), TextError> {
    meter.check().map_err(|fault| {
        whole.error(fault.what, "give each band a rate, and one of kbps and pktps")
    })?;
    if as_it_is {
        return Ok(());
    }
    if !has_unit(meter.flags) {
        return Err(whole.error("rates without a unit", "add kbps or pktps"));
    }
    if meter.bands.is_empty() {
        return Err(whole.error("a meter without bands", "add bands=type=drop,rate=N"));
    }
    if !bursts_count(meter.flags, &meter.bands) {
        return Err(
            whole.error("burst and burst_size go together", "give both, in each band, or neither")
        );
    }
    Ok(())
}

fn has_unit(flags: MeterFlags) -> bool {
    flags.intersects(MeterFlags::KBPS | MeterFlags::PKTPS)
}

/// Whether each band has a burst if the flag says so, and none if not.
fn bursts_count(flags: MeterFlags, bands: &[MeterBand]) -> bool {
    let wanted = flags.contains(MeterFlags::BURST);
    bands.iter().all(|band| (band.burst_size != 0) == wanted)
}

/// A meter as `ovs-ofctl dump-meters` prints it, one line and one more per band; it reads back. One that people cannot write, without unit
/// or bands, or with bursts that do not count, has its flags as a number.
pub fn print_meter(meter: &MeterConfig) -> String {
    let flags = [
        (MeterFlags::KBPS, "kbps "),
        (MeterFlags::PKTPS, "pktps "),
        (MeterFlags::BURST, "burst "),
        (MeterFlags::STATS, "stats "),
    ];
    let is_usual =
        has_unit(meter.flags) && !meter.bands.is_empty() && bursts_count(meter.flags, &meter.bands);
    let flags: String = match is_usual {
        true => {
            flags.iter().filter(|(f, _)| meter.flags.contains(*f)).map(|(_, name)| *name).collect()
        }
        false => format!("flags={:#x} ", meter.flags.bits()),
    };
    let bands: String = meter.bands.iter().map(print_band).collect();
    format!("meter={} {flags}bands=\n{bands}", print_meter_id(meter.id))
}

fn print_band(band: &MeterBand) -> String {
    let burst = match band.burst_size {
        0 => String::new(),
        size => format!(" burst_size={size}"),
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
