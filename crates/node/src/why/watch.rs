//! How the real packets of a flow are found: what they have in common all the way, and where they are foretold to be seen.

use super::words;
use ::offload::told_apart;
use api::WhyWatch;
use flow::Asked;
use openflow::text;
use port::Ends;
use wire::{DropReason, Field, Key};

/// What is known of them so far.
#[derive(Default)]
pub struct Watch {
    switches: Vec<String>,
    seen: Vec<String>,
    /// The key at the entry.
    key: Key,
    /// Bits of it that are known and the same everywhere.
    same: Key,
}

impl Watch {
    /// A packet comes in there.
    pub fn enters(&mut self, switch: &str, port: &str, frame: &Asked) {
        if self.seen.is_empty() {
            self.key = frame.key;
            self.same = told_apart(&frame.key).masked(&frame.known);
            for field in [Field::InPort, Field::Metadata, Field::TunnelId, Field::TunSrc] {
                self.same.set(field, 0);
            }
        }
        if !self.switches.iter().any(|known| known == switch) {
            self.switches.push(switch.into());
        }
        self.narrow(frame);
        self.note(format!("{switch}:{port} rx"));
    }

    /// It leaves there, to another switch or as it is then.
    pub fn leaves(&mut self, switch: &str, port: &str, frame: Option<&Asked>) {
        frame.into_iter().for_each(|frame| self.narrow(frame));
        self.note(format!("{switch}:{port} tx"));
    }

    /// It is lost there.
    pub fn lost(&mut self, switch: &str, reason: DropReason) {
        self.note(format!("{switch} drop={}", reason.name()));
    }

    fn note(&mut self, at: String) {
        if !self.seen.contains(&at) {
            self.seen.push(at);
        }
    }

    fn narrow(&mut self, frame: &Asked) {
        for &field in Field::ALL {
            if frame.key.get(field) != self.key.get(field) {
                self.same.set(field, 0);
            }
        }
    }

    /// In words.
    pub fn told(mut self, ends: &Ends) -> WhyWatch {
        // A match on a field names the protocol first.
        if self.same.get(Field::EthType) != Field::EthType.full() {
            let macs = [Field::EthSrc, Field::EthDst].map(|field| (field, self.same.get(field)));
            self.same = Key::default();
            macs.into_iter().for_each(|(field, bits)| self.same.set(field, bits));
        } else if self.same.get(Field::IpProto) != Field::IpProto.full() {
            for field in [Field::TpSrc, Field::TpDst, Field::IcmpType, Field::IcmpCode] {
                self.same.set(field, 0);
            }
        }
        WhyWatch {
            entry: self.seen.first().cloned().unwrap_or_default(),
            switches: self.switches,
            matching: words::packet(&self.key, &self.same, ends, &text::no_names),
            seen: self.seen,
        }
    }
}
