//! The queues of a port, as a user wants them: what `set_queue` chooses among (OpenFlow 1.3.5 §7.2.2).

mod rates;

pub use rates::{BadQueues, PortQueues, QUEUES_MAX, QueueRates};

use crate::{KeyFault, Kind, Latency, PortSpec, Rate};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A queue of a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct QueueSpec {
    /// Its number, which `set_queue` names; 0 is where packets go for which no queue was chosen.
    pub id: u32,
    /// Bit/s that it gets whatever the other queues want; a part of the port's `rate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_rate: Option<Rate>,
    /// Bit/s that it never exceeds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_rate: Option<Rate>,
}

/// What a queue of a number is to be given and held to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct QueueLimits {
    /// Bit/s that it gets whatever the other queues want; a part of the port's `rate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_rate: Option<Rate>,
    /// Bit/s that it never exceeds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_rate: Option<Rate>,
}

/// A queue that packets wait in which leave by a port.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct PortQueueView {
    /// Its number.
    pub id: u32,
    /// Bit/s that it gets whatever the other queues want.
    pub min_rate: Option<Rate>,
    /// Bit/s that it never exceeds.
    pub max_rate: Option<Rate>,
    /// Frames that left.
    pub tx_frames: u64,
    /// Their bytes.
    pub tx_bytes: u64,
    /// Frames that did not leave: too many, or the port dropped them.
    pub tx_errors: u64,
    /// Frames that wait now.
    pub waiting: u64,
    /// How long frames waited in it that had to wait, from the beginning of their round.
    #[serde(default)]
    pub wait: Latency,
    /// Nanoseconds since it counts; 0 while the port is not open.
    pub age_ns: u64,
}

impl QueueLimits {
    /// The queue of that number.
    pub fn of(self, id: u32) -> QueueSpec {
        QueueSpec { id, min_rate: self.min_rate, max_rate: self.max_rate }
    }
}

impl QueueSpec {
    fn rates(&self) -> QueueRates {
        let Self { id, min_rate, max_rate } = *self;
        QueueRates { id, min: min_rate.map(Rate::bits), max: max_rate.map(Rate::bits) }
    }
}

impl PortSpec {
    /// Its queues as the workers want to know them.
    pub fn port_queues(&self) -> PortQueues {
        let queues = self.queue.iter().map(QueueSpec::rates).collect();
        PortQueues { rate: self.rate.map(Rate::bits), queues }
    }

    /// The port with this queue, in place of the one of its number if there is one; by number.
    pub fn with_queue(&self, queue: QueueSpec) -> Self {
        let mut spec = self.without_queue(queue.id);
        spec.queue.push(queue);
        spec.queue.sort_by_key(|queue| queue.id);
        spec
    }

    /// The port without that queue.
    pub fn without_queue(&self, id: u32) -> Self {
        let mut spec = self.clone();
        spec.queue.retain(|queue| queue.id != id);
        spec
    }

    /// Only what carries frames at a pace of its own can be held to one: a vlink hands them on within one pass.
    pub(crate) fn check_queues(&self, faults: &mut Vec<KeyFault>) {
        if matches!(self.kind, Kind::Vlink(_)) {
            let found = [("rate", self.rate.is_some()), ("queue", !self.queue.is_empty())];
            for (key, _) in found.into_iter().filter(|(_, present)| *present) {
                let cause = "a vlink has no queues: frames pass it without waiting";
                let remedy = "remove it, and give it to the port behind the vlink";
                faults.push(KeyFault::new(key, cause, remedy));
            }
        } else if let Err(bad) = self.port_queues().check() {
            faults.push(KeyFault::new("queue", bad.to_string(), remedy(&bad)));
        }
    }
}

fn remedy(bad: &BadQueues) -> String {
    match bad {
        BadQueues::TooMany(_) => format!("keep at most {}", QUEUES_MAX),
        BadQueues::Twice(_) => "give each queue an id of its own".into(),
        BadQueues::Reserved => "choose an id from 0 to 4294967294".into(),
        BadQueues::MinAboveMax(_) => "lower min_rate, or raise max_rate".into(),
        BadQueues::NoRate(_) => {
            "give the port a rate, such as rate = \"1G\" (suiro port mod --rate 1G)".into()
        }
        BadQueues::TooMuch { .. } => "lower the min_rates, or raise the port's rate".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reading;
    use serde_json::json;

    fn port(kind: &str, rate: Option<&str>, queues: &[(u32, &str, &str)]) -> Reading {
        let text = |text: &str| (!text.is_empty()).then(|| text.parse().unwrap());
        let queue = |&(id, min, max): &(u32, &str, &str)| QueueSpec {
            id,
            min_rate: text(min),
            max_rate: text(max),
        };
        let queue: Vec<_> = queues.iter().map(queue).collect();
        let mut keys = json!({"name": "g1", "type": kind, "rate": rate, "queue": queue});
        if kind == "vlink" {
            keys["peer"] = "a:b".into();
        }
        PortSpec::read_partly(serde_json::from_value(keys).unwrap())
    }

    #[test]
    fn queues_that_contradict_themselves_are_a_fault_with_its_remedy() {
        let tap = |rate, queues| port("tap", rate, queues).faults;
        assert_eq!(tap(Some("1G"), &[(0, "", "10M"), (5, "600M", "900M"), (6, "400M", "")]), []);
        for (rate, queues, cause, remedy) in [
            (None, &[(1, "1M", "")][..], "no rate", "give the port a rate"),
            (Some("1M"), &[(1, "1M", ""), (2, "1k", "")], "1001000 bit/s in all", "raise the port"),
            (Some("1G"), &[(1, "2M", "1M")], "above max_rate", "lower min_rate"),
            (None, &[(1, "", ""), (1, "", "")], "twice", "id of its own"),
            (None, &[(u32::MAX, "", "")], "all queues", "choose an id"),
        ] {
            let faults = tap(rate, queues);
            let [fault] = &faults[..] else { panic!("{faults:?}") };
            assert!(fault.cause.contains(cause) && fault.remedy.contains(remedy), "{fault:?}");
        }
    }

    #[test]
    fn a_vlink_takes_neither_a_rate_nor_queues() {
        let faults = port("vlink", Some("1G"), &[(1, "", "1M")]).faults;
        let keys: Vec<_> = faults.iter().map(|fault| fault.key.as_str()).collect();
        assert_eq!(keys, ["rate", "queue"]);
    }

    #[test]
    fn a_queue_replaces_the_one_of_its_number_and_all_stand_by_number() {
        let spec = port("tap", None, &[(1, "", "1M"), (9, "", "")]).spec.unwrap();
        let more = spec.with_queue(QueueLimits::default().of(4));
        let changed =
            more.with_queue(QueueLimits { max_rate: "2M".parse().ok(), min_rate: None }.of(1));
        let ids: Vec<_> = changed.queue.iter().map(|queue| queue.id).collect();
        assert_eq!((ids, changed.queue[0].max_rate), (vec![1, 4, 9], "2M".parse().ok()));
        assert_eq!(changed.without_queue(4).without_queue(9).without_queue(7).queue.len(), 1);
    }

    #[test]
    fn what_the_store_keeps_of_a_port_holds_its_queues() {
        let spec = port("tap", Some("1G"), &[(1, "5M", "64001k")]).spec.unwrap();
        let text = serde_json::to_string(&spec).unwrap();
        let queue = r#""queue":[{"id":1,"max_rate":"64001k","min_rate":"5M"}]"#;
        assert!(text.contains(queue) && text.contains(r#""rate":"1G""#), "{text}");
        assert_eq!(serde_json::from_str::<PortSpec>(&text).unwrap(), spec);
        let plain = serde_json::to_string(&port("tap", None, &[]).spec.unwrap()).unwrap();
        assert!(!plain.contains("rate") && !plain.contains("queue"), "{plain}");
    }
}
