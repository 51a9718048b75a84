//! Which cores did programs hold that are no part of the experiment?
//!
//! A flow cannot leave for a core that something else on the machine has taken. `bpf/witness.bpf.c` adds up, by core, the time of all threads but suiro's own and those that process packets.

use super::super::traffic::now_ns;
use anyhow::{Context, Result};
use aya::maps::PerCpuArray;
use aya::programs::BtfTracePoint;
use aya::{Btf, Ebpf};

static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/witness.bpf.o"));

/// The program in the object.
const SWITCH: &str = "witness_switch";

/// `struct witness_core`: nanoseconds, since when, and a name of 16 bytes.
type Raw = [u64; 4];

/// The program at work, until it is dropped.
pub struct Witness {
    ebpf: Ebpf,
}

/// What others have taken of each core since the beginning.
#[derive(Clone, Default, Debug)]
pub struct Held {
    at_ns: u64,
    cores: Vec<Raw>,
}

impl Witness {
    /// Begins to look.
    ///
    /// # Errors
    /// No permission, or a kernel without BTF (`CONFIG_DEBUG_INFO_BTF`).
    pub fn start() -> Result<Self> {
        let step = "the witness of who holds the cores";
        let mut ebpf = Ebpf::load(OBJECT).with_context(|| format!("{step}: maps"))?;
        let btf = Btf::from_sys_fs().with_context(|| format!("{step}: the kernel's types"))?;
        let program: &mut BtfTracePoint =
            ebpf.program_mut(SWITCH).with_context(|| format!("{step}: program"))?.try_into()?;
        program.load("sched_switch", &btf).with_context(|| format!("{step}: loading"))?;
        program.attach().with_context(|| format!("{step}: attaching"))?;
        Ok(Self { ebpf })
    }

    /// What was held up to now.
    pub fn look(&self) -> Result<Held> {
        let map = self.ebpf.map("held").context("witness: no map held")?;
        let map = PerCpuArray::<_, Raw>::try_from(map)?;
        let cores = map.get(&0, 0)?.iter().copied().collect();
        Ok(Held { at_ns: now_ns(), cores })
    }
}

impl Held {
    /// Nanoseconds of a core's.
    fn ns(&self, core: usize) -> u64 {
        let [ns, since, ..] = self.cores.get(core).copied().unwrap_or_default();
        let now = if since == 0 { 0 } else { self.at_ns.saturating_sub(since) };
        ns + now
    }

    /// Who had it last.
    fn by(&self, core: usize) -> String {
        let [_, _, low, high] = self.cores.get(core).copied().unwrap_or_default();
        let bytes = [low.to_ne_bytes(), high.to_ne_bytes()].concat();
        let name = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
        String::from_utf8_lossy(name).into_owned()
    }

    /// If others took at least `least_ns` of every one of these cores since `before`: the name of one of them.
    pub fn all_since(&self, before: &Self, cores: &[usize], least_ns: u64) -> Option<String> {
        let was_held = |&core: &usize| self.ns(core).saturating_sub(before.ns(core)) >= least_ns;
        let last = *cores.last()?;
        cores.iter().all(was_held).then(|| self.by(last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &[u8; 16]) -> [u64; 2] {
        let word = |at: usize| u64::from_ne_bytes(text[at..at + 8].try_into().unwrap());
        [word(0), word(8)]
    }

    #[test]
    fn a_thread_that_still_runs_counts_up_to_now() {
        let [low, high] = name(b"kdamond.0\0\0\0\0\0\0\0");
        let before = Held { at_ns: 1000, cores: vec![[500, 0, low, high]; 2] };
        let now = Held { at_ns: 2000, cores: vec![[500, 1700, low, high], [900, 0, low, high]] };
        assert_eq!(now.all_since(&before, &[0], 300).as_deref(), Some("kdamond.0"));
        assert_eq!(now.all_since(&before, &[0], 301), None);
        assert!(now.all_since(&before, &[0, 1], 300).is_some());
        assert!(now.all_since(&before, &[0, 1], 301).is_none(), "one of them was free");
        assert_eq!(now.all_since(&before, &[], 0), None, "no other core is none that was held");
    }
}
