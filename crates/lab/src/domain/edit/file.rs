//! The slice that is edited: what always stays, what comes and goes, and the next random edit. A value.
//!
//! `s1` to `s3` are a line over three sites, with a guest at each end that talks. `e1` to `e6` take the links that come and go. They have no rules and no
//! controller, so loops between them carry nothing.

use std::collections::BTreeMap;
use std::fmt::Write;
use testbed::driver::flows::Random;

const HEAD: &str = include_str!("head.yaml");
/// Most extra links and guests at a time. Chosen: the file stays one screen.
const MOST: usize = 12;
/// Rates of extra links, in Mbit/s.
const RATES: [u32; 4] = [1, 5, 10, 20];
/// Ports of the switches that links and guests come to are numbered from here.
const PORTS: u32 = 10;

/// One end of an extra link or guest: a switch of [`HEAD`], and a number there.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct End {
    /// The switch.
    pub switch: String,
    /// The number of its port.
    pub port: u32,
}

/// An extra link.
#[derive(Clone, Debug)]
struct Link {
    ends: [End; 2],
    rate: u32,
}

/// The slice as it is wanted.
#[derive(Clone, Debug, Default)]
pub struct Slice {
    links: BTreeMap<u32, Link>,
    guests: BTreeMap<u32, End>,
    next: u32,
}

impl Slice {
    /// Its file.
    pub fn text(&self) -> String {
        let mut text = HEAD.to_owned();
        for (n, end) in &self.guests {
            let site = site(&end.switch);
            // Writing to a text cannot fail.
            let _ = writeln!(
                text,
                "  g{n}: {{kind: process, site: {site}, ports: {{eth0: {{to: \"{}:{}\"}}}}}}",
                end.switch, end.port
            );
        }
        text += "links:\n  a: {between: [\"s1:2\", \"s2:2\"], rate: 100M}\n  b: {between: [\"s2:3\", \"s3:3\"], rate: 100M}\n";
        for (n, Link { ends: [a, b], rate }) in &self.links {
            let _ = writeln!(
                text,
                "  x{n}: {{between: [\"{}:{}\", \"{}:{}\"], rate: {rate}M}}",
                a.switch, a.port, b.switch, b.port
            );
        }
        text
    }

    /// Whose each port is that an edit has made: `link x3`, `guest g4`.
    pub fn things(&self) -> BTreeMap<End, String> {
        let links = self.links.iter().flat_map(|(n, link)| {
            link.ends.iter().map(move |end| (end.clone(), format!("link x{n}")))
        });
        let guests = self.guests.iter().map(|(n, end)| (end.clone(), format!("guest g{n}")));
        links.chain(guests).collect()
    }

    /// Makes one change, and says in a word of which kind.
    pub fn edit(&mut self, random: &mut Random) -> &'static str {
        loop {
            match random.below(5) {
                0 if self.links.len() < MOST => return self.add_link(random),
                1 if self.guests.len() < MOST => return self.add_guest(random),
                2 if !self.links.is_empty() => return self.change_rate(random),
                3 if !self.links.is_empty() => {
                    let n = any(random, &self.links);
                    self.links.remove(&n);
                    return "link removed";
                }
                4 if !self.guests.is_empty() => {
                    let n = any(random, &self.guests);
                    self.guests.remove(&n);
                    return "guest removed";
                }
                _ => {}
            }
        }
    }

    fn add_link(&mut self, random: &mut Random) -> &'static str {
        let a = 1 + random.below(6);
        let b = 1 + (a + random.below(5)) % 6;
        let ends = [a, b].map(|n| self.free(&format!("e{n}")));
        let rate = RATES[random.below(4) as usize];
        self.next += 1;
        self.links.insert(self.next, Link { ends, rate });
        "link added"
    }

    fn add_guest(&mut self, random: &mut Random) -> &'static str {
        let switch = match random.below(9) {
            n @ 0..6 => format!("e{}", n + 1),
            n => format!("s{}", n - 5),
        };
        let end = self.free(&switch);
        self.next += 1;
        self.guests.insert(self.next, end);
        "guest added"
    }

    fn change_rate(&mut self, random: &mut Random) -> &'static str {
        let n = any(random, &self.links);
        if let Some(link) = self.links.get_mut(&n) {
            let others: Vec<u32> = RATES.into_iter().filter(|rate| *rate != link.rate).collect();
            link.rate = others[random.below(3) as usize];
        }
        "rate changed"
    }

    /// The lowest port of a switch that nobody has.
    fn free(&self, switch: &str) -> End {
        let taken = self.things();
        let end = |port| End { switch: switch.into(), port };
        let free = (PORTS..).map(end).find(|end| !taken.contains_key(end));
        free.expect("a switch has more ports than an edit makes")
    }
}

fn any<T>(random: &mut Random, of: &BTreeMap<u32, T>) -> u32 {
    let at = random.below(of.len() as u32) as usize;
    of.keys().copied().nth(at).expect("it is below the length")
}

/// Where a switch of [`HEAD`] is.
fn site(switch: &str) -> &'static str {
    match switch {
        "s1" | "e1" | "e2" => "tokyo",
        "s2" | "e3" | "e4" => "osaka",
        _ => "sendai",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_never_share_a_port_and_every_kind_comes() {
        let (mut slice, mut random) = (Slice::default(), Random(7));
        let mut kinds = std::collections::BTreeSet::new();
        for _ in 0..500 {
            kinds.insert(slice.edit(&mut random));
            let ends = slice.links.len() * 2 + slice.guests.len();
            assert_eq!(slice.things().len(), ends);
            assert!(slice.links.values().all(|link| link.ends[0].switch != link.ends[1].switch));
        }
        assert_eq!(kinds.len(), 5);
    }
}
