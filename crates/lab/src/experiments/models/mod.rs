//! `models`: driver, packet processing, vhost and guest of one flow, shared out over cores as in the models A to D of the authors' slides.
//!
//! VM 1's flow is watched. Each model's cores are those that [`place::StageModel`] assigns: the packet stage goes there by a rule (`place(core=…)`), vhost and guest are
//! threads ([`vhost`]) that are pinned there, the driver is where the wire interrupts. VM 2 is a neighbour with a flow of the same rate, which the policy places
//! (`place(core=auto)`) knowing where VM 1 is pinned; its threads run anywhere but there, as an administrator would have it.
//!
//! Beside the models: no model, with the kernel's choices of cores (`default`, `rps`) and all threads wherever the scheduler puts them; and "packet only", where the policy places both flows
//! and the scheduler the threads: the slides' "soft-IRQ only". A model that the host has too few cores for is named with what is missing.
//!
//! The packet stage's program counts who processed which frame, each thread counts for itself. The driver's frames are not counted: the wire knows one core.

mod contender;
mod goals;
mod vhost;

use super::findings::{Findings, REORDERED};
use super::paper::Key;
use super::stage::{Count, Counts};
use super::steering::{Steering, Told};
use super::traffic::receiver::{self, Vm};
use super::traffic::{Flow, Work};
use super::trial::{Lab, Trial, prepare};
use super::window::{Measured, Receiver};
use super::{Experiment, Settings};
use anyhow::Result;
use contender::Contender;
use goals::goals;
use place::Stage;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::AtomicBool;
use vhost::{Cores, Done, Served};

/// The VM whose flow is watched, and the other one.
const WATCHED: u8 = 1;
const NEIGHBOUR: u8 = 2;

/// Work of a guest for a byte, as a share of the stage's: where there is a core for it, and where the watched guest shares one with all else.
const WORK: f64 = 0.3;
const WORK_SHARED: f64 = 0.1;

/// Datagrams of the watched flow that go ahead of a window and are nobody's. Rules come into force when the interrupted core has worked off what it had received before
/// (`docs/explanation/steering.md`); of a core that has not received anything yet, that is seen by the first frames.
const AHEAD: u64 = 4;

/// The stages that are counted.
const COUNTED: [(Stage, &str); 3] =
    [(Stage::Packet, "packet"), (Stage::Vhost, "vhost"), (Stage::Guest, "guest")];

/// Runs it.
///
/// # Errors
/// The step that failed.
pub fn run(experiment: &Experiment, settings: &Settings) -> Result<Findings> {
    let hosts = prepare(settings, NEIGHBOUR)?;
    let taps = [hosts.join_by_tap(WATCHED)?, hosts.join_by_tap(NEIGHBOUR)?];
    let mut lab = Lab::new(settings, &hosts)?;
    let (mut contenders, refused) = contender::all(&hosts.layout)?;
    contenders.retain(|contender| lab.wants(contender.steering));
    for &size in &settings.sizes {
        for round in 1..=settings.rounds {
            eprintln!("{}: {size} B, round {round}/{}", experiment.name, settings.rounds);
            let ports = [lab.any_port(), lab.any_port()];
            let flows = [lab.flow(WATCHED, ports[0], size), lab.flow(NEIGHBOUR, ports[1], size)];
            let mut rps = None;
            for contender in &contenders {
                let trial = trial(&lab, contender, &flows);
                let (measured, served) = measure(&mut lab, contender, &trial, &taps)?;
                count(&mut lab, &trial, &measured, &served);
                note(&mut lab, &trial, &measured, &served[0]);
                note_against(&mut lab, &trial, &measured, &mut rps);
            }
        }
    }
    let goals = settings.sizes.iter().flat_map(|&size| goals(&lab, &contenders, size)).collect();
    let share = share(&lab);
    let mut findings = lab.findings(experiment, goals)?;
    findings.notes.push(format!(
        "VM 1 is watched, VM 2 is its neighbour; a guest works {share} of the stage's work for a byte"
    ));
    findings.notes.extend(contenders.iter().filter_map(Contender::describe));
    if settings.steering.contains(&Steering::Vse) {
        findings.notes.extend(refused.iter().map(ToString::to_string));
    }
    Ok(findings)
}

fn share(lab: &Lab<'_>) -> f64 {
    if lab.hosts.layout.is_roomy(1) { WORK } else { WORK_SHARED }
}

fn trial(lab: &Lab<'_>, contender: &Contender, flows: &[Flow]) -> Trial {
    let Contender { case, steering, .. } = *contender;
    let vm = |number, core| lab.vm(number, core, share(lab));
    let vms = vec![vm(WATCHED, contender.core(Stage::Guest)), vm(NEIGHBOUR, None)];
    Trial { case, steering, flows: flows.to_vec(), vms, priority: None }
}

/// One window.
fn measure(
    lab: &mut Lab<'_>,
    contender: &Contender,
    trial: &Trial,
    taps: &[OwnedFd],
) -> Result<(Measured, [Served; 2])> {
    let fixed = contender.core(Stage::Packet).map(|core| (WATCHED, core));
    let told = Told { vms: &trial.vms, fixed, ..Told::default() };
    let mut served = <[Served; 2]>::default();
    let measured = lab.measure_by(trial, told, |windows| {
        windows.probe(trial.flows[0], AHEAD)?;
        (0..AHEAD).try_for_each(|_| vhost::discard(taps[0].as_fd()))?;
        let vms = trial.vms.iter().zip(taps).zip(&mut served);
        let receiver = |((&vm, tap), served): ((&Vm, _), _)| {
            let cores = |stage| contender.cores(vm.number, stage, &lab.hosts.layout);
            let cores = Cores { vhost: cores(Stage::Vhost), guest: cores(Stage::Guest) };
            receiver(vm, tap, cores, windows.work, served)
        };
        windows.run_to(&trial.flows, vms.map(receiver).collect())
    })?;
    Ok((measured, served))
}

/// A VM behind its TAP, for one window.
fn receiver<'r>(
    vm: Vm,
    tap: &'r OwnedFd,
    cores: Cores,
    work: Work,
    served: &'r mut Served,
) -> Receiver<'r> {
    let receive = move |run, mut tally, over: &AtomicBool| {
        let take = |payload: &[u8]| receiver::take(vm, payload, run, work, &mut tally);
        *served = vhost::serve(tap.as_fd(), &cores, over, take)?;
        Ok(tally)
    };
    (vm.number, Box::new(receive))
}

/// The name of a stage's counts.
fn stage_key(trial: &Key, stage: &str) -> Key {
    Key { case: format!("{}: {stage}", trial.case), ..trial.clone() }
}

/// Who processed what: the program's counts, and the threads'.
fn count(lab: &mut Lab<'_>, trial: &Trial, measured: &Measured, served: &[Served; 2]) {
    let frames = trial.key("frames", None);
    for (stage, name) in COUNTED {
        let counts = match stage {
            Stage::Vhost => counts_of(served, |served| &served.vhost),
            Stage::Guest => counts_of(served, |served| &served.guest),
            _ => measured.counts.clone(),
        };
        lab.count(&stage_key(&frames, name), &counts);
    }
}

fn counts_of(served: &[Served; 2], thread: fn(&Served) -> &Done) -> Counts {
    let count = |&frames: &u64| Count { frames, ..Count::default() };
    let vm = |served: &Served| thread(served).frames.iter().map(count).collect();
    // Frames that are no VM's come first.
    Counts::by_vm(std::iter::once(Vec::new()).chain(served.iter().map(vm)).collect())
}

/// The figures of a window; of the watched VM, unless they say "all".
fn note(lab: &mut Lab<'_>, trial: &Trial, measured: &Measured, served: &Served) {
    let watched = &measured.outcomes[0];
    let figures = [
        ("throughput of all", "Mbit/s", measured.total()),
        ("throughput", "Mbit/s", watched.throughput()),
        ("loss", "%", watched.loss()),
        ("delay p50", "us", watched.tally.delay_us(50)),
        ("delay p99", "us", watched.tally.delay_us(99)),
        ("packet stage's program", "us a frame", program_us(lab, measured)),
        ("vhost's thread", "us a frame", served.vhost.time_us()),
        ("guest's thread", "us a frame", served.guest.time_us()),
        ("guest's context switches", "a frame", served.guest.switches()),
        (REORDERED, "", measured.late() as f64),
    ];
    for (quantity, unit, value) in figures {
        lab.sheet.add(trial.key(quantity, None), unit, value, measured.class);
    }
}

/// Time of the packet stage's program for a frame of the watched flow, in microseconds.
fn program_us(lab: &Lab<'_>, measured: &Measured) -> f64 {
    let counts = (0..lab.hosts.layout.host).map(|core| measured.counts.of(core, WATCHED));
    let (ns, frames) = counts.fold((0, 0), |sum, count| (sum.0 + count.ns, sum.1 + count.frames));
    ns as f64 / 1e3 / frames.max(1) as f64
}

/// Throughput over that of RPS in the same round: the one thing that the paper's rates and ours can be compared by.
fn note_against(lab: &mut Lab<'_>, trial: &Trial, measured: &Measured, rps: &mut Option<[f64; 2]>) {
    const QUANTITIES: [&str; 2] = ["throughput of all, of rps's", "throughput, of rps's"];
    let rates = [measured.total(), measured.outcomes[0].throughput()];
    if trial.steering == Steering::Rps {
        *rps = Some(rates);
    }
    let Some(base) = *rps else { return };
    for ((quantity, rate), base) in QUANTITIES.into_iter().zip(rates).zip(base) {
        if base > 0.0 {
            lab.sheet.add(trial.key(quantity, None), "", rate / base, measured.class);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_counts_are_those_of_the_vms_and_nobody_elses() {
        let done = |frames: &[u64]| Done { frames: frames.to_vec(), ..Done::default() };
        let served = [
            Served { vhost: done(&[0, 5]), ..Served::default() },
            Served { vhost: done(&[2]), ..Served::default() },
        ];
        let counts = counts_of(&served, |served| &served.vhost);
        assert_eq!((counts.frames_of(WATCHED, 2), counts.frames(2)), (vec![0, 5], vec![2, 5]));
    }
}
