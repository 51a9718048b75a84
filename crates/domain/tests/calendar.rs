//! Reservations: never more is promised than there is, at any moment; what does not fit is told when it would.

mod common;

use common::{UID, all, slice, world};
use domain::{Admitted, Moment, Name, Span, Uid, World, admit};
use std::collections::BTreeMap;

/// A slice of one guest at osaka, and a link from there to tokyo, in a span of time.
fn text(name: &str, memory: &str, rate: &str, (from, until): (Option<i64>, Option<i64>)) -> String {
    let line = |key: &str, moment: Option<i64>| {
        moment.map(|moment| format!("{key}: {}\n", Moment::at(moment))).unwrap_or_default()
    };
    format!(
        "suiro: slice/1\nname: {name}\ntenant: blue\n{}{}switches: {{s1: {{site: osaka}}, s2: {{site: sendai}}}}\nguests: {{h1: {{kind: process, site: osaka, cpu: 0.5, memory: {memory}}}}}\nlinks: {{a: {{between: ['s1:1', 's2:1'], rate: {rate}}}}}\n",
        line("from", from),
        line("until", until)
    )
}

/// A generator that has the same numbers each time (Knuth's constants).
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// What is promised at a moment, added up slice by slice.
fn promised(world: &World, at: i64) -> (BTreeMap<Name, (u64, u64)>, BTreeMap<Name, u64>) {
    let (mut nodes, mut segments) = (BTreeMap::new(), BTreeMap::new());
    for (_, Admitted { spec, decision }) in world.slices() {
        let span = Span::of(spec);
        if at < span.from || at >= span.until {
            continue;
        }
        for (name, guest) in &spec.guests {
            let sum: &mut (u64, u64) = nodes.entry(decision.nodes[name].clone()).or_default();
            sum.0 += u64::from(spec.cpu(guest).0);
            sum.1 += spec.memory(guest).0;
        }
        for circuit in decision.circuits.values() {
            for segment in circuit.hops.iter().filter_map(|hop| hop.segment.clone()) {
                *segments.entry(segment).or_default() += circuit.rate;
            }
        }
    }
    (nodes, segments)
}

#[test]
fn a_thousand_random_reservations_never_promise_more_than_there_is_at_any_moment() {
    let mut world = world();
    let mut chance = Chance(7);
    let (mut taken, mut refused, mut later, mut gone) = (0, 0, 0, 0);
    for number in 0..1000_u64 {
        let from = 10_000 + chance.below(5000) as i64;
        let until = from + 1 + chance.below(900) as i64;
        let span = match chance.below(20) {
            0 => (None, Some(until)),
            1 => (Some(from + 5000), None),
            _ => (Some(from), Some(until)),
        };
        let memory = format!("{}M", 256 + 256 * chance.below(12));
        let rate = format!("{}M", 10 + 10 * chance.below(40));
        let mut wished = slice(&text(&format!("r{number}"), &memory, &rate, span));
        let uid = Uid(UID.0 + u128::from(number));
        let mut decided = admit(&world, &wished, uid);
        if let Err(faults) = &decided {
            refused += 1;
            // The first time that it is told is one that fits, and none before it is.
            if let Some(fits) =
                all(faults).split("fits: ").find_map(|fits| fits.split("from: ").nth(1))
            {
                let moment =
                    |text: &str| text.get(..20).unwrap().parse::<Moment>().unwrap().unix_s();
                let again = (Some(moment(fits)), fits.split("until: ").nth(1).map(moment));
                assert!(again.0 > span.0 && (span.1.is_none() || again.1 > span.1), "{fits}");
                wished = slice(&text(&format!("r{number}"), &memory, &rate, again));
                decided = admit(&world, &wished, uid);
                assert!(decided.is_ok(), "{fits}: {}", all(&decided.unwrap_err()));
                later += 1;
            }
        }
        let Ok(decision) = decided else { continue };
        taken += 1;
        world.insert(Admitted { spec: wished.spec.clone(), decision });
        if chance.below(10) == 0 {
            let key = world.slices().nth(chance.below(taken - gone) as usize).unwrap().0.clone();
            world.remove(&key);
            gone += 1;
        }
    }
    assert!(taken > 300 && refused > 100 && later > 100, "{taken} {refused} {later}");
    // Sums change where slices begin alone.
    let starts: Vec<i64> = world.slices().map(|(_, it)| Span::of(&it.spec).from.max(0)).collect();
    for at in starts {
        let (nodes, segments) = promised(&world, at);
        for (node, (cpu, memory)) in &nodes {
            assert!(*cpu <= 4000 && *memory <= 8 << 30, "{node} at {at}: {cpu} {memory}");
        }
        for (segment, rate) in &segments {
            let most = world.domain().segments[segment].capacity.bits().get();
            assert!(*rate <= most, "{segment} at {at}: {rate} of {most}");
        }
        let ledger = world.ledger_at(at);
        for (node, (cpu, memory)) in nodes {
            assert_eq!((ledger.nodes[&node].cpu, ledger.nodes[&node].memory), (cpu, memory));
        }
    }
}

#[test]
fn what_ends_when_another_begins_is_not_in_its_way_and_a_clash_says_when_it_would_fit() {
    let mut world = world();
    world.set_now(500);
    for (number, span) in [(1, (Some(1000), Some(2000))), (2, (Some(1000), Some(3000)))] {
        let whole = slice(&text(&format!("w{number}"), "8G", "10M", span));
        let decision = admit(&world, &whole, Uid(number)).unwrap();
        world.insert(Admitted { spec: whole.spec, decision });
    }
    let asks = |memory: &str, span| admit(&world, &slice(&text("x", memory, "10M", span)), UID);
    assert!(asks("8G", (None, Some(1000))).is_ok(), "before");
    assert!(asks("8G", (Some(2000), Some(2500))).is_ok(), "one node is free then");
    let faults = all(&asks("8G", (Some(1500), Some(1600))).unwrap_err());
    let fits = "from: 1970-01-01T00:33:20Z, until: 1970-01-01T00:35:00Z";
    assert!(faults.contains(fits), "{faults}");
    let faults = all(&asks("9G", (Some(1500), Some(1600))).unwrap_err());
    assert!(!faults.contains("from: "), "no time would do: {faults}");
    let faults = all(&asks("8G", (None, None)).unwrap_err());
    assert!(faults.contains("or from: 1970-01-01T00:33:20Z"), "{faults}");
    let faults = all(&asks("1G", (Some(1500), Some(1500))).unwrap_err());
    assert!(faults.contains("ends before it begins"), "{faults}");
    let faults = all(&asks("1G", (None, Some(500))).unwrap_err());
    assert!(faults.contains("would have ended: it is 1970-01-01T00:08:20Z"), "{faults}");
}
