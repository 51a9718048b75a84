//! Matches that are refused, each with its code (OpenFlow 1.3.5 §7.4.4.5).

use super::rows::{ROWS, Row, needs};
use crate::harness::{Bench, Suite, entry, output, plain_frame};
use crate::oracle::{Framing, Sample};
use openflow::{CLASS_BASIC, CLASS_EXPERIMENTER, ErrorCode, Match, ONF, Oxm, OxmField, UnknownOxm};

/// The cases.
pub fn cases(suite: &mut Suite) {
    for row in ROWS {
        let needed = needed(row);
        for (nth, missing) in needed.0.iter().enumerate() {
            let what = missing.field().unwrap();
            let what = ROWS.iter().find(|row| row.field == what).unwrap().name;
            prerequisite(suite, row, &needed, (nth, what));
        }
        let case = |what: &str| format!("match::{what}::{}", row.name);
        let refuse = |suite: &mut Suite, what: &str, oxm: Oxm, code: ErrorCode| {
            let mut fields = needed.clone();
            fields.0.push(oxm);
            suite.case(case(what), move |bench| refused(bench, fields, code));
        };
        let twice = Oxm::exact(row.field, 0x1000 & row.full());
        let fields = Match([needed.0.clone(), vec![twice.clone(), twice]].concat());
        suite.case(case("duplicate"), move |bench| {
            refused(bench, fields, ErrorCode::BadMatchDupField);
        });
        let (bytes, ones) = (row.bytes(), vec![0xff; row.bytes()]);
        let zeros = vec![0; bytes];
        for (what, len) in [("too_short", bytes - 1), ("too_long", bytes + 1)] {
            let oxm = row.raw(false, vec![0; len]);
            refuse(suite, what, oxm, ErrorCode::BadMatchBadLen);
        }
        if !row.bits.is_multiple_of(8) {
            let oxm = row.raw(false, ones.clone());
            refuse(suite, "bad_value", oxm, ErrorCode::BadMatchBadValue);
        }
        let masked = |value: &[u8], mask: &[u8]| row.raw(true, [value, mask].concat());
        if !row.maskable {
            // A mask of all bits would be no mask (§7.2.3.5), and one bit is all of `mpls_bos`.
            let oxm = masked(&zeros, &[vec![u8::from(row.bits > 1)], zeros[1..].to_vec()].concat());
            refuse(suite, "mask_not_allowed", oxm, mask_code(row.field));
            continue;
        }
        if !row.bits.is_multiple_of(8) {
            let oxm = masked(&zeros, &ones);
            refuse(suite, "bad_mask", oxm, mask_code(row.field));
        }
        let low = [vec![0; bytes - 1], vec![1]].concat();
        let oxm = masked(&low, &zeros);
        refuse(suite, "value_outside_mask", oxm, ErrorCode::BadMatchBadWildcards);
    }
    unknown(suite);
}

/// What a field needs, with values of a frame that has it.
fn needed(row: Row) -> Match {
    let ipv6 = Framing::Untagged.around(Sample::Ipv6Udp);
    let frame = row.frames().next().map_or(ipv6, |(_, _, frame)| frame);
    needs(row.field, &frame)
}

/// Without one of the fields that it needs, and with that field of another value.
fn prerequisite(suite: &mut Suite, row: Row, needed: &Match, (nth, what): (usize, &str)) {
    let own = Oxm::exact(row.field, 1);
    let code = ErrorCode::BadMatchBadPrereq;
    let mut without = needed.clone();
    without.0.remove(nth);
    // What needs the missing field itself goes with it, or the refusal would be about that.
    without.0.truncate(nth);
    without.0.push(own.clone());
    let name = format!("match::prerequisite_missing::{}::{what}", row.name);
    suite.case(name, move |bench| refused(bench, without, code));
    let wrong = match needed.0[nth].field().unwrap() {
        OxmField::InPort => return, // any ingress port will do
        OxmField::VlanVid => 0,     // "untagged"
        OxmField::EthType => 0x88b6,
        _ => 253,
    };
    let mut other = Match(needed.0[..nth].to_vec()).with(needed.0[nth].field().unwrap(), wrong);
    other.0.push(own);
    let name = format!("match::prerequisite_wrong::{}::{what}", row.name);
    suite.case(name, move |bench| refused(bench, other, code));
}

fn unknown(suite: &mut Suite) {
    let unknown = |class, number, body: &[u8]| {
        Match(vec![Oxm::Unknown(UnknownOxm { class, number, masked: false, body: body.to_vec() })])
    };
    let experimenter = [ONF.to_be_bytes().to_vec(), vec![0; 4]].concat();
    let cases = [
        ("of_basic_class", unknown(CLASS_BASIC, 40, &[0, 0, 0, 0])),
        ("of_nxm_class", unknown(1, 127, &[0, 0, 0, 0])),
        ("of_reserved_class", unknown(0x7fff, 1, &[0, 0])),
        ("of_experimenter", unknown(CLASS_EXPERIMENTER, 1, &experimenter)),
    ];
    for (name, fields) in cases {
        suite.case(format!("match::unknown_field::{name}"), move |bench| {
            refused(bench, fields, ErrorCode::BadMatchBadField);
        });
    }
}

/// The flow-mod is refused with this code, and nothing was added.
fn refused(bench: &mut Bench, fields: Match, code: ErrorCode) {
    bench.refuse(&entry(1, fields, vec![output(2)]), code);
    bench.send(1, &plain_frame("nothing was added")).is_nothing();
}

/// Addresses have mask errors of their own (§7.4.4.5).
fn mask_code(field: OxmField) -> ErrorCode {
    use OxmField::{ArpSha, ArpTha, EthDst, EthSrc, Ipv6NdSll, Ipv6NdTarget, Ipv6NdTll};
    match field {
        EthDst | EthSrc | ArpSha | ArpTha | Ipv6NdSll | Ipv6NdTll => {
            ErrorCode::BadMatchBadDlAddrMask
        }
        Ipv6NdTarget => ErrorCode::BadMatchBadNwAddrMask,
        _ => ErrorCode::BadMatchBadMask,
    }
}

impl Row {
    /// Bytes of the value on the wire (openflow.h: the 20-bit labels have four).
    pub fn bytes(self) -> usize {
        if self.bits == 20 { 4 } else { self.bits.div_ceil(8) as usize }
    }

    /// The TLV of this field with any bytes after its header.
    pub fn raw(self, masked: bool, body: Vec<u8>) -> Oxm {
        let (class, number, body) = match self.field {
            OxmField::TcpFlags => {
                (CLASS_EXPERIMENTER, 42, [ONF.to_be_bytes().to_vec(), body].concat())
            }
            _ => {
                (CLASS_BASIC, ROWS.iter().position(|r| r.field == self.field).unwrap() as u8, body)
            }
        };
        Oxm::Unknown(UnknownOxm { class, number, masked, body })
    }
}
