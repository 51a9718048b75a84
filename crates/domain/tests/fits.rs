//! What `fits` says is admitted; a step more is not.

mod common;

use common::{DEMO, UID, all, facts, slice, world};
use domain::{Cpu, Delay, Fault, Name, Size, World, admit};
use proptest::prelude::*;

/// What one wish of the example is about.
#[derive(Clone, Copy, Debug)]
enum Wish {
    Memory,
    Cpu,
    Rate,
    Mtu,
    Delay,
}

impl Wish {
    /// The example with that wish and no budget of its own.
    fn text(self, value: u64) -> String {
        let demo = DEMO
            .replace("guests: {cpu: 2.5, memory: 2G, pids: 2000}", "packet_ins: 7")
            .replace("rate: 500M", "");
        let demo = demo.replace("  packet_ins: 1000", "");
        let guest = |key: String| {
            demo.replace(
                "h2: {kind: process, site: osaka",
                &format!("h2: {{kind: process, site: osaka, {key}"),
            )
        };
        let link =
            |keys: String| demo.replace("\"s2:2\"], rate: 100M}", &format!("\"s2:2\"], {keys}}}"));
        match self {
            Self::Memory => guest(format!("memory: {}", Size(value))),
            Self::Cpu => guest(format!("cpu: {}", Cpu(value as u32))),
            Self::Rate => link(format!("rate: {value}")),
            Self::Mtu => link(format!("mtu: {value}")),
            Self::Delay => link(format!("max_delay: {}", Delay(value))),
        }
    }

    /// The value that a text of `fits` says.
    fn read(self, fits: &str) -> Option<u64> {
        let before_at = || fits.split_once(" at osaka").map(|(value, _)| value);
        match self {
            Self::Memory => before_at()?.parse::<Size>().ok().map(|size| size.0),
            Self::Cpu => {
                let number =
                    before_at()?.strip_suffix('s').or_else(before_at)?.strip_suffix(" core")?;
                number.parse::<Cpu>().ok().map(|cpu| cpu.0.into())
            }
            Self::Rate => {
                fits.strip_prefix("rate ")?.parse::<api::Rate>().ok().map(|rate| rate.bits().get())
            }
            Self::Mtu => fits.strip_prefix("mtu ")?.parse().ok(),
            Self::Delay => {
                fits.strip_prefix("max_delay ")?.parse::<Delay>().ok().map(|delay| delay.0)
            }
        }
    }

    /// The value one step harder.
    fn harder(self, value: u64) -> u64 {
        match self {
            Self::Memory => value + (1 << 20),
            Self::Cpu => value + 10,
            Self::Rate => value + if value >= 2_000_000 { 1_000_000 } else { 1000 },
            Self::Mtu => value + 1,
            Self::Delay => value - 100,
        }
    }
}

fn verdict(world: &World, wish: Wish, value: u64) -> Result<(), Vec<Fault>> {
    admit(world, &slice(&wish.text(value)), UID).map(drop)
}

fn wishes() -> impl Strategy<Value = (Wish, u64)> {
    prop_oneof![
        (1_u64..20_000).prop_map(|mib| (Wish::Memory, mib << 20)),
        (1_u64..2_000).prop_map(|centi| (Wish::Cpu, centi * 10)),
        (2_u64..12_000).prop_map(|mbit| (Wish::Rate, mbit * 1_000_000)),
        (68_u64..9_000).prop_map(|mtu| (Wish::Mtu, mtu)),
        (1_u64..100).prop_map(|steps| (Wish::Delay, steps * 100)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_fits_says_is_admitted_and_a_step_more_is_not(
        (wish, value) in wishes(),
        cores in 1_u32..8,
        mib in 400_u64..9_000,
        elsewhere in 1_u64..30,
    ) {
        let mut world = world();
        for node in ["o1", "o2"] {
            let node: Name = node.parse().unwrap();
            world.set_facts(node, facts(&cores.to_string(), &format!("{mib}M")));
        }
        world.set_facts("s1".parse().unwrap(), facts("32", &format!("{elsewhere}G")));
        let Err(faults) = verdict(&world, wish, value) else { return Ok(()) };
        let fits: Vec<u64> = faults.iter().flat_map(|fault| &fault.fits).filter_map(|fits| wish.read(fits)).collect();
        // A quota of the tenant has no step.
        prop_assume!(!faults.iter().any(|fault| fault.thing.starts_with("tenant")));
        prop_assert_eq!(fits.len(), 1, "{:?} {}: {}", wish, value, all(&faults));
        if let Err(faults) = verdict(&world, wish, fits[0]) {
            // All else fixed: what else does not fit is told, too.
            prop_assert!(false, "{:?} {} fits, and: {}", wish, fits[0], all(&faults));
        }
        prop_assert!(verdict(&world, wish, wish.harder(fits[0])).is_err(), "{:?}: {} fits, and a step more does, too", wish, fits[0]);
    }

    #[test]
    fn another_site_that_fits_says_is_admitted(gib in 9_u64..30, elsewhere in 9_u64..30) {
        let mut world = world();
        world.set_facts("s1".parse().unwrap(), facts("4", &format!("{elsewhere}G")));
        let text = Wish::Memory.text(gib << 30).replace("tenant: red", "tenant: blue").replace("ssl:ofc.example:6653", "tcp:ctl:6653");
        let faults = admit(&world, &slice(&text), UID).unwrap_err();
        let there = text.replace("h2: {kind: process, site: osaka", "h2: {kind: process, site: sendai");
        let says = faults[0].fits.iter().any(|fits| fits.starts_with(&format!("{gib} GiB at sendai (s1)")));
        prop_assert_eq!(says, admit(&world, &slice(&there), UID).is_ok(), "{}", all(&faults));
    }
}
