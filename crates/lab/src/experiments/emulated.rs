//! The experiments inside a machine that has the cores which this one lacks: QEMU, in software emulation.
//!
//! **Question answered**: who processes which frame, where there are as many cores as the papers' hosts had and one more for the senders? And what comes of the
//! experiments under a kernel that has what this one lacks (ESP)?
//!
//! The machine boots Debian's kernel with this very program, which does there what it does here. With more cores than this host has it says `--counts`: two of them
//! may be one of ours, so that a count means something and a rate does not. With no more, each is slow and all are as slow: then rates are to scale. What it says of its progress comes through at once; its tables and files at the end.
//! It needs no privilege on this host, steers nothing here, and ends with this process ([`testbed::guest`]).

use super::quiet::{Others, is_spoiled};
use super::steering::binary;
use super::{Experiment, Settings};
use anyhow::{Context, Result, ensure};
use rustix::process::Signal;
use std::io::{BufRead, BufReader, ErrorKind};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;
use testbed::guest::{Guest, GuestSpec, LOG};

/// Room for a program with its line tables twice (as the kernel gets it, and unpacked), and for the run.
const MEMORY_MIB: u32 = 1536;

/// What the testbed is made of. Modules that no kernel loads by itself in a machine that has no `/sbin/modprobe`.
const MODULES: [&str; 16] = [
    "veth",
    "tun",
    "bridge",
    "vxlan",
    "sch_ingress",
    "cls_bpf",
    "act_bpf",
    // What `seqiv(rfc4106(gcm(aes)))` is made of, a random number for its first IV included.
    "ctr",
    "ghash-generic",
    "gcm",
    "sha512_generic",
    "jitterentropy_rng",
    "drbg",
    "seqiv",
    "esp4",
    "xfrm_user",
];

/// Longest setting up of a testbed, longest time between two windows, and most windows of a size in a round. Chosen: several times what two busy cores need.
const SET_UP: Duration = Duration::from_secs(120);
const BETWEEN: Duration = Duration::from_secs(30);
const WINDOWS: u32 = 16;

/// Longest copy of a file out of the machine.
const COPY: Duration = Duration::from_secs(60);

/// Status of a command that lasted too long ([`testbed::guest::Said`]).
const KILLED: i32 = 137;

/// Files inside; names as in [`Settings`].
const JSON: &str = "/tmp/figures.json";
const CSV: &str = "/tmp/csv";
const REPORT: &str = "/tmp/report.html";

/// Runs experiments there.
///
/// # Errors
/// What is not installed, an experiment that only measures time, or what went wrong inside.
pub fn run(settings: &Settings, wanted: &[&Experiment]) -> Result<()> {
    let names = countable(wanted)?;
    let cores = settings.cores;
    let mut others = Others::default();
    others.look()?;
    eprintln!("guest: a machine of {cores} cores starts in software emulation");
    let mut guest = Guest::boot(&machine(settings).program(binary()?))?;
    eprintln!("guest: Linux {}, at work after {:.0} s", guest.release, guest.start.as_secs_f64());
    let log = guest.log.take().context("the guest's log was asked for")?;
    let (machine, silence) = (guest.process(), SET_UP + window(settings));
    let progress = std::thread::spawn(move || {
        let end = repeat(log, silence);
        if end == LogEnd::Silence {
            // Gone already, or gone now: the answer that is waited for below fails either way.
            let _ = rustix::process::kill_process(machine, Signal::KILL);
        }
        end
    });
    let limit = longest(settings, names.len());
    let said = guest.says(&format!("{} 2>{LOG}", command(settings, &names)?), limit);
    let copied = said.as_ref().map_or(Ok(()), |said| {
        print!("{}", said.output);
        busy(&others).iter().for_each(|busy| println!("  {busy}"));
        copy_out(settings, &guest)
    });
    drop(guest);
    let end = progress.join().expect("who repeats the progress does not panic");
    ensure!(
        end == LogEnd::Machine,
        "the machine hung: it said nothing for {silence:?} and was ended; see how far it came above"
    );
    let status = said?.status;
    ensure!(
        status != KILLED,
        "the run inside the guest was ended after {limit:?}; see how far it came above"
    );
    ensure!(status == 0, "the run inside the guest ended with {status}; the lines above say why");
    copied
}

/// What is to be said of a host that others have: inside, nothing shows it.
fn busy(others: &Others) -> Option<String> {
    let percent = others.percent();
    is_spoiled(percent).then(|| {
        format!(
            "others had {percent:.0} % of this host's cores before the machine started: a goal that is not kept says nothing of who chose the cores; run it again when this host has nothing else to do"
        )
    })
}

/// The machine; where rates mean nothing its processors take turns, which is as fast when they are more than this host's.
fn machine(settings: &Settings) -> GuestSpec {
    let spec =
        GuestSpec::new("lab").cpus(settings.cores).memory_mib(MEMORY_MIB).modules(&MODULES).log();
    if settings.counts_only() { spec.in_turn() } else { spec }
}

/// Longest from the beginning of a window to that of the next; each is told.
fn window(settings: &Settings) -> Duration {
    Duration::from_secs_f64(settings.seconds) + BETWEEN
}

/// How long so many experiments may take.
fn longest(settings: &Settings, experiments: usize) -> Duration {
    let of_one = window(settings) * settings.rounds * WINDOWS * settings.sizes.len().max(2) as u32;
    (SET_UP + of_one) * experiments as u32
}

/// The names of experiments that count something.
fn countable<'e>(wanted: &[&'e Experiment]) -> Result<Vec<&'e str>> {
    let name = |experiment: &&'e Experiment| {
        ensure!(
            experiment.counts,
            "{}: measures time, of which an emulated machine knows nothing; run it without --guest",
            experiment.name
        );
        Ok(experiment.name)
    };
    wanted.iter().map(name).collect()
}

/// What is typed inside.
fn command(settings: &Settings, names: &[&str]) -> Result<String> {
    let program = binary()?;
    let program = program.file_name().and_then(|name| name.to_str());
    let mut words = vec![program.context("own program: no name")?.to_owned(), "lab run".into()];
    words.extend(names.iter().map(|&name| name.to_owned()));
    let list = |items: Vec<String>| items.join(",");
    words.extend(settings.counts_only().then(|| "--counts".into()));
    words.extend([
        format!("--rounds {}", settings.rounds),
        format!("--seconds {}", settings.seconds),
        format!("--capacity {}", settings.capacity),
        format!("--sizes {}", list(settings.sizes.iter().map(usize::to_string).collect())),
        format!(
            "--steering {}",
            list(settings.steering.iter().map(|steering| steering.name().into()).collect())
        ),
    ]);
    words.extend(settings.json.iter().map(|_| format!("--json {JSON}")));
    words.extend(settings.csv.iter().map(|_| format!("--csv {CSV}")));
    words.extend(settings.report.iter().map(|_| format!("--report {REPORT}")));
    Ok(words.join(" "))
}

/// Why no more is said inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LogEnd {
    /// The machine has ended.
    Machine,
    /// It still runs, but hangs: seen once with QEMU 7.2, cause unknown.
    Silence,
}

/// Says what is said inside, until the machine ends or says nothing for so long.
fn repeat(log: UnixStream, silence: Duration) -> LogEnd {
    let limited = log.set_read_timeout(Some(silence));
    limited.expect("a time above zero is a valid limit of a socket");
    for line in BufReader::new(log).lines() {
        match line {
            Ok(line) => eprintln!("guest: {line}"),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return LogEnd::Silence,
            Err(_) => break,
        }
    }
    LogEnd::Machine
}

/// The files that the user asked for, as far as the run came.
fn copy_out(settings: &Settings, guest: &Guest) -> Result<()> {
    let files = [(JSON, &settings.json), (REPORT, &settings.report)];
    for (inside, here) in files {
        here.iter().try_for_each(|here| copy(guest, inside, here))?;
    }
    let Some(directory) = &settings.csv else { return Ok(()) };
    std::fs::create_dir_all(directory)
        .with_context(|| format!("{}: cannot be made", directory.display()))?;
    let names = guest.run(&format!("ls {CSV}"))?;
    names.lines().try_for_each(|name| copy(guest, &format!("{CSV}/{name}"), &directory.join(name)))
}

fn copy(guest: &Guest, inside: &str, here: &Path) -> Result<()> {
    let said = guest.says(&format!("cat {inside}"), COPY)?;
    ensure!(said.status == 0, "{inside} inside the guest: {}", said.output.trim());
    std::fs::write(here, said.output)
        .with_context(|| format!("{}: cannot be written", here.display()))
}

#[cfg(test)]
mod tests {
    use super::super::EXPERIMENTS;
    use super::*;
    use clap::Parser;
    use std::io::Write;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        settings: Settings,
    }

    #[test]
    fn a_silent_machine_is_told_from_one_that_ended() {
        let (here, mut there) = UnixStream::pair().unwrap();
        there.write_all(b"a line\n").unwrap();
        // However short: the line is there, and no other one comes.
        let limit = Duration::from_millis(1);
        assert_eq!(repeat(here.try_clone().unwrap(), limit), LogEnd::Silence);
        drop(there);
        assert_eq!(repeat(here, Duration::from_secs(60)), LogEnd::Machine);
    }

    #[test]
    fn the_guest_is_asked_for_the_same_and_for_counts() {
        let typed = "x fragments --guest --cores 16 --sizes 1400 --steering default,vse --seconds 0.5 --csv d";
        let Line { settings } = Line::try_parse_from(typed.split(' ')).unwrap();
        let command = command(&settings, &["fragments"]).unwrap();
        let (_, arguments) = command.split_once(" lab run ").unwrap();
        assert_eq!(
            arguments,
            "fragments --counts --rounds 1 --seconds 0.5 --capacity 2 --sizes 1400 --steering default,vse --csv /tmp/csv"
        );
        let again = Line::try_parse_from(format!("x {arguments}").split(' ')).unwrap().settings;
        assert!(again.counts && !again.guest);
    }

    #[test]
    fn processors_take_turns_where_rates_mean_nothing() {
        let asked = |line: &str| Line::try_parse_from(line.split(' ')).unwrap().settings;
        assert!(machine(&asked("x x --guest --cores 2 --counts")).in_turn);
        let has_two = std::thread::available_parallelism().unwrap().get() >= 2;
        assert_eq!(machine(&asked("x x --guest --cores 2")).in_turn, !has_two);
    }

    #[test]
    fn what_only_measures_time_is_refused_by_name() {
        let all: Vec<_> = EXPERIMENTS.iter().collect();
        let error = countable(&all).unwrap_err().to_string();
        assert!(error.starts_with("vse-entries: measures time"), "{error}");
        let counting: Vec<_> = EXPERIMENTS.iter().filter(|one| one.counts).collect();
        assert_eq!(countable(&counting).unwrap().len(), counting.len());
    }
}
