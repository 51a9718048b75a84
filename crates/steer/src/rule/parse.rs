//! Rules and filters of rules, read.
//!
//! Steering's own words are taken out of the text, blanks put in their place, and the rest is `openflow::text`'s: its errors keep their
//! columns.

use super::Rule;
use super::own::{self, Frag, Own, Underlay};
use super::placing::Placing;
use openflow::text::{TextError, no_ports};
use openflow::{DEFAULT_PRIORITY, Match, Oxm, OxmField};
use place::steering::Target;
use place::{CoreId, VmId};
use std::ops::Range;

/// The OpenFlow fields that the steering program looks at.
const SEEN: &[OxmField] = &[
    OxmField::EthType,
    OxmField::VlanVid,
    OxmField::EthSrc,
    OxmField::EthDst,
    OxmField::IpDscp,
    OxmField::IpEcn,
    OxmField::Fcf,
    OxmField::IpProto,
    OxmField::Ipv4Src,
    OxmField::Ipv4Dst,
    OxmField::ArpSpa,
    OxmField::ArpTpa,
    OxmField::ArpOp,
    OxmField::Ipv6Src,
    OxmField::Ipv6Dst,
    OxmField::TcpSrc,
    OxmField::TcpDst,
    OxmField::UdpSrc,
    OxmField::UdpDst,
    OxmField::SctpSrc,
    OxmField::SctpDst,
    OxmField::TunnelId,
];
const SEEN_TEXT: &str = "match on dl_src, dl_dst, dl_type, dl_vlan, nw_src, nw_dst, arp_spa, arp_tpa, arp_op, ipv6_src, ipv6_dst, nw_proto, nw_tos, nw_ecn, fcf, tp_src, tp_dst, tun_id, tun_src, tun_dst, vm_id, ip_frag";

/// VXLAN's network id has 24 bits (RFC 7348 §5).
const TUN_ID_MAX: u128 = 0xff_ffff;

/// Which rules are meant: those at least as specific as this.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Filter {
    fields: Match,
    own: Own,
    priority: Option<u16>,
    cookie: Option<(u64, u64)>,
}

impl Filter {
    /// Whether a rule is at least as specific, and of the priority and cookie if they are named.
    pub fn selects(&self, rule: &Rule) -> bool {
        let narrower = |oxm: &Oxm| {
            let Some((value, mask)) = oxm.field().and_then(|field| self.fields.get(field)) else {
                return false;
            };
            let found = oxm.field().and_then(|field| rule.fields.get(field));
            found.is_some_and(|(v, m)| m & mask == mask && v & mask == value & mask)
        };
        self.fields.0.iter().all(narrower)
            && self.own_selects(&rule.own)
            && self.priority.is_none_or(|priority| priority == rule.priority)
            && self.cookie.is_none_or(|(value, mask)| (rule.cookie ^ value) & mask == 0)
    }

    /// Whether it selects every rule there is.
    pub fn is_everything(&self) -> bool {
        let without_cookie = self.cookie.is_none_or(|(_, mask)| mask == 0);
        without_cookie && Self { cookie: None, ..self.clone() } == Self::default()
    }

    /// Whether a rule has exactly this match and this priority.
    pub fn is_exactly(&self, rule: &Rule) -> bool {
        (&self.fields, &self.own) == (&rule.fields, &rule.own)
            && self.priority.unwrap_or(DEFAULT_PRIORITY) == rule.priority
    }

    fn own_selects(&self, own: &Own) -> bool {
        let within = |wide: &Option<Underlay>, narrow: &Option<Underlay>| match (wide, narrow) {
            (None, _) => true,
            (Some(wide), Some(narrow)) => wide.covers(narrow),
            (Some(_), None) => false,
        };
        (self.own.vm.is_none() || self.own.vm == own.vm)
            && (self.own.frag.is_none() || self.own.frag == own.frag)
            && within(&self.own.tun_src, &own.tun_src)
            && within(&self.own.tun_dst, &own.tun_dst)
    }
}

/// Reads a rule: match, `priority`, `cookie` and `actions=place(...)`.
///
/// # Errors
/// What is wrong, where, and what to write instead.
pub fn parse_rule(text: &str) -> Result<Rule, TextError> {
    let parts = Parts::read(text)?;
    let Some(actions) = parts.actions.clone() else {
        let whole = Word { at: 0, text: text.trim_end() };
        return Err(whole.error("no actions", "end it with actions=place(core=auto)"));
    };
    let cookie = match parts.cookie {
        None => 0,
        Some((value, u64::MAX)) => value,
        Some(_) => {
            let whole = Word { at: 0, text };
            return Err(whole.error("a cookie mask in an addition", "give the value alone"));
        }
    };
    Ok(Rule {
        priority: parts.priority.unwrap_or(DEFAULT_PRIORITY),
        cookie,
        fields: parts.fields(text)?,
        own: parts.own,
        placing: parse_placing(Word { at: actions.start, text: &text[actions] })?,
    })
}

/// Reads a filter: match, `priority`, `cookie=V/M`, no actions.
///
/// # Errors
/// What is wrong, where, and what to write instead.
pub fn parse_filter(text: &str) -> Result<Filter, TextError> {
    let parts = Parts::read(text)?;
    if let Some(actions) = parts.actions {
        let actions = Word { at: actions.start, text: &text[actions] };
        return Err(actions.error("actions in a filter", "leave them out"));
    }
    if let Some((at, word)) = parts.past {
        let remedy = "select by match, priority or cookie=VALUE/MASK, an interface with --on";
        return Err(Word { at, text: &word }.error("rules are not selected by this word", remedy));
    }
    let fields = parts.fields(text)?;
    Ok(Filter { fields, own: parts.own, priority: parts.priority, cookie: parts.cookie })
}

/// A piece of the text and where it stands.
#[derive(Clone, Copy)]
struct Word<'a> {
    at: usize,
    text: &'a str,
}

impl Word<'_> {
    fn error(self, problem: &'static str, remedy: &'static str) -> TextError {
        TextError { at: self.at, word: self.text.into(), problem, remedy: remedy.into() }
    }
}

/// A text taken apart.
#[derive(Default)]
struct Parts {
    priority: Option<u16>,
    cookie: Option<(u64, u64)>,
    own: Own,
    actions: Option<Range<usize>>,
    /// The first word that only a dump has, and where it stands.
    past: Option<(usize, String)>,
    /// The text with blanks where steering's words and the actions stood.
    rest: String,
}

impl Parts {
    fn read(text: &str) -> Result<Self, TextError> {
        let mut parts = Self { rest: text.into(), ..Self::default() };
        let mut at = 0;
        while let Some(word) = next_word(text, at) {
            let (key, value) = cut(&text[word.clone()]);
            if ["actions", "action"].iter().any(|name| key.eq_ignore_ascii_case(name)) {
                parts.actions = Some(text.len().min(word.start + key.len() + 1)..text.len());
                parts.blank(word.start..text.len());
                break;
            }
            if parts.take(key, value, Word { at: word.start, text: &text[word.clone()] })? {
                parts.blank(word.clone());
            }
            at = word.end;
        }
        Ok(parts)
    }

    fn blank(&mut self, range: Range<usize>) {
        let blanks = " ".repeat(range.len());
        self.rest.replace_range(range, &blanks);
    }

    /// Takes a word that is steering's; false when it is OpenFlow's.
    fn take(&mut self, key: &str, value: &str, word: Word<'_>) -> Result<bool, TextError> {
        match key.to_ascii_lowercase().as_str() {
            "priority" => self.priority = Some(number(value, 65_535, word)? as u16),
            "cookie" => self.cookie = Some(cookie(value, word)?),
            "vm_id" => self.own.vm = Some(vm(value, word)?),
            "tun_src" | "tun_ipv6_src" => self.own.tun_src = Some(underlay(value, word)?),
            "tun_dst" | "tun_ipv6_dst" => self.own.tun_dst = Some(underlay(value, word)?),
            "ip_frag" => self.own.frag = Some(frag(value, word)?),
            "in_port" => {
                let remedy = "leave it out, and name the interface with --on";
                return Err(word.error("a steering rule has no port", remedy));
            }
            // What a line of `dump` says of the past.
            "n_packets" | "n_bytes" | "duration" | "on" => {
                self.past.get_or_insert_with(|| (word.at, word.text.into()));
            }
            "table" | "out_port" | "out_group" => {
                return Err(
                    word.error("a steering rule has neither table nor output", "leave it out")
                );
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn fields(&self, text: &str) -> Result<Match, TextError> {
        let fields = openflow::text::parse_filter(&self.rest, &no_ports)?.fields;
        let unseen = |oxm: &&Oxm| oxm.field().is_none_or(|field| !SEEN.contains(&field));
        if let Some(oxm) = fields.0.iter().find(unseen) {
            let name = oxm.field().map_or("this field", |field| field.spec().name);
            let at = text.find(name).unwrap_or(0);
            let word = Word { at, text: name };
            return Err(word.error("the steering program does not look at this field", SEEN_TEXT));
        }
        let wide = fields.get(OxmField::TunnelId).is_some_and(|(value, _)| value > TUN_ID_MAX);
        if wide {
            let word = Word { at: text.find("tun").unwrap_or(0), text: "tun_id" };
            return Err(word.error("a VXLAN network id has 24 bits", "give 0 to 16777215"));
        }
        Ok(fields)
    }
}

fn is_separator(c: char) -> bool {
    c == ',' || c.is_ascii_whitespace()
}

fn next_word(text: &str, from: usize) -> Option<Range<usize>> {
    let start = from + text[from..].find(|c| !is_separator(c))?;
    let length = text[start..].find(is_separator).unwrap_or(text.len() - start);
    Some(start..start + length)
}

fn cut(word: &str) -> (&str, &str) {
    word.find(['=', ':']).map_or((word, ""), |at| (&word[..at], &word[at + 1..]))
}

fn number(text: &str, max: u64, word: Word<'_>) -> Result<u64, TextError> {
    let hex = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let read = hex.map_or_else(|| text.parse(), |digits| u64::from_str_radix(digits, 16));
    let found =
        read.map_err(|_| word.error("not a number", "write it as in key=17 or key=0x11"))?;
    if found > max {
        return Err(word.error("the number is too large", "see `suiro steer flow add --help`"));
    }
    Ok(found)
}

/// `VALUE[/MASK]`; -1 means every bit.
fn cookie(text: &str, word: Word<'_>) -> Result<(u64, u64), TextError> {
    let read = |text| if text == "-1" { Ok(u64::MAX) } else { number(text, u64::MAX, word) };
    match text.split_once('/') {
        Some((value, mask)) => Ok((read(value)?, read(mask)?)),
        None => Ok((read(text)?, u64::MAX)),
    }
}

fn vm(text: &str, word: Word<'_>) -> Result<VmId, TextError> {
    let id = VmId::new(number(text, u16::MAX.into(), word)? as u16);
    id.ok_or_else(|| word.error("0 means that no machine is named", "give its id, 1 to 65535"))
}

fn underlay(text: &str, word: Word<'_>) -> Result<Underlay, TextError> {
    let remedy = "write ADDRESS or ADDRESS/PREFIX, such as tun_src=192.0.2.0/24";
    own::parse_underlay(text).ok_or_else(|| word.error("not an address", remedy))
}

fn frag(text: &str, word: Word<'_>) -> Result<Frag, TextError> {
    let found = Frag::ALL.into_iter().find(|frag| frag.name().eq_ignore_ascii_case(text));
    found.ok_or_else(|| {
        word.error("no kind of fragment", "write no, yes, first, later or not_later")
    })
}

const PLACE_FORM: &str = "write place(core=auto|N|hash[,priority][,own])";

fn parse_placing(word: Word<'_>) -> Result<Placing, TextError> {
    let text = word.text.trim();
    let inner = text.strip_prefix("place").map(str::trim_start);
    let inner = inner.and_then(|text| text.strip_prefix('(')?.strip_suffix(')'));
    let inner = inner.ok_or_else(|| word.error("not an action of steering", PLACE_FORM))?;
    let (mut target, mut priority, mut own) = (None, false, false);
    for part in inner.split(is_separator).filter(|part| !part.is_empty()) {
        match cut(part) {
            ("core", value) => target = Some(parse_target(value, word)?),
            ("priority", "") => priority = true,
            ("own", "") => own = true,
            _ => return Err(word.error("place does not have this option", PLACE_FORM)),
        }
    }
    let target = target.unwrap_or(Target::Auto);
    if target != Target::Auto && (priority || own) {
        let remedy = "leave them out, or write core=auto";
        return Err(word.error("priority and own are for a policy that chooses", remedy));
    }
    Ok(Placing { target, priority, own })
}

fn parse_target(text: &str, word: Word<'_>) -> Result<Target, TextError> {
    match text {
        "auto" => Ok(Target::Auto),
        "hash" => Ok(Target::Hash),
        number => {
            let core = number.parse().map(|core| Target::Core(CoreId(core)));
            core.map_err(|_| word.error("no core of that name", PLACE_FORM))
        }
    }
}
