//! vhost-user ports under drivers that no one here wrote: Debian's kernel in two QEMU machines, and DPDK's testpmd.
//!
//! Two machines are booted once, by the first case that needs them, and every case finds them on the same switch ([`rig::Rig`]). So the
//! cases run one after another, in the order of the list, which ends with those that kill things. `cargo test -p suiro-acceptance --test guests --
//! --list` lists them; a part of a name after `--` chooses.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod dpdk;
mod kills;
mod rig;
mod segments;
mod streams;
mod talk;
mod xfrm;

use acceptance::privileged;
use libtest_mimic::{Arguments, Trial};
use rig::Rig;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

/// All cases, by name.
#[derive(Default)]
struct Suite {
    rig: Arc<Mutex<Option<Rig>>>,
    trials: Vec<Trial>,
}

impl Suite {
    /// A case with the two machines. After a case that failed the next one gets new machines and a new node.
    fn case(&mut self, name: &str, test: impl FnOnce(&mut Rig) + Send + 'static) {
        let rig = self.rig.clone();
        self.plain(name, move || {
            let mut kept = rig.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let mut rig = kept.take().unwrap_or_else(Rig::boot);
            test(&mut rig);
            *kept = Some(rig);
        });
    }

    /// A case that makes what it needs.
    fn plain(&mut self, name: &str, test: impl FnOnce() + Send + 'static) {
        self.trials.push(Trial::test(name, || {
            if privileged() {
                test();
            }
            Ok(())
        }));
    }

    /// Does what the command line asks for. Machines and node end with the last case.
    fn run(self) -> ExitCode {
        let mut arguments = Arguments::from_args();
        arguments.test_threads = Some(1);
        let conclusion = libtest_mimic::run(&arguments, self.trials);
        drop(self.rig);
        conclusion.exit_code()
    }
}

fn main() -> ExitCode {
    let mut suite = Suite::default();
    dpdk::cases(&mut suite);
    talk::cases(&mut suite);
    streams::cases(&mut suite);
    segments::cases(&mut suite);
    xfrm::cases(&mut suite);
    kills::cases(&mut suite);
    suite.run()
}
