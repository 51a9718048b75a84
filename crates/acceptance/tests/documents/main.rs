//! Documents as their readers use them: every command of a `console` block is run, and its output compared with what the document promises.
//!
//! Each document has a host of its own ([`session`]); its blocks go on from each other. `CONTRIBUTING.md` says how blocks are written.
//! A case is a document: `cargo test -p suiro-acceptance --test documents -- --list` lists them.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod page;
mod pattern;
mod session;

use acceptance::privileged;
use libtest_mimic::{Arguments, Failed, Trial};
use page::Step;
use session::Session;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn main() -> ExitCode {
    let mut trials = vec![
        plain(
            "page::commands_and_their_output_are_told_apart_and_other_blocks_are_left_out",
            page::commands_and_their_output_are_told_apart_and_other_blocks_are_left_out,
        ),
        plain(
            "pattern::what_varies_is_matched_and_all_else_is_literal",
            pattern::what_varies_is_matched_and_all_else_is_literal,
        ),
        plain(
            "pattern::the_first_line_that_differs_is_named",
            pattern::the_first_line_that_differs_is_named,
        ),
    ];
    trials.push(Trial::test("suiro --help", first_steps));
    let root = Path::new(ROOT).canonicalize().unwrap();
    let mut pages = vec![root.join("README.md")];
    collect(&root.join("docs"), &mut pages);
    for page in pages {
        let name = page.strip_prefix(&root).unwrap().display().to_string();
        let steps = page::steps(&std::fs::read_to_string(&page).unwrap());
        if !steps.is_empty() {
            trials.push(Trial::test(name.clone(), move || follow(&name, &steps)));
        }
    }
    let conclusion = libtest_mimic::run(&Arguments::from_args(), trials);
    Session::clear_up();
    conclusion.exit_code()
}

fn plain(name: &str, test: fn()) -> Trial {
    Trial::test(name, move || {
        test();
        Ok(())
    })
}

/// All pages below a directory, in the order of their names.
fn collect(directory: &Path, pages: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> =
        std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            collect(&path, pages);
        } else if path.extension().is_some_and(|ending| ending == "md") {
            pages.push(path);
        }
    }
}

fn follow(name: &str, steps: &[Step]) -> Result<(), Failed> {
    if !privileged() {
        return Ok(());
    }
    let mut session = Session::start();
    for step in steps {
        let (code, got) = session.run(&step.command);
        let is_refusal = step.expected.iter().any(|line| line.contains("error:"));
        let differs = pattern::mismatch(&step.expected, &got);
        if differs.is_some() || (code != 0) != is_refusal {
            return Err(report(name, step, code, differs, &got).into());
        }
    }
    Ok(())
}

/// The steps that `suiro --help` begins with, in their order. `suiro top` would go on for ever.
fn first_steps() -> Result<(), Failed> {
    if !privileged() {
        return Ok(());
    }
    let mut session = Session::start();
    let (_, help) = session.run("suiro --help");
    let steps = help.iter().skip_while(|line| !line.starts_with("First steps")).skip(1);
    let mut done = 0;
    let steps = steps.take_while(|line| !line.is_empty()).map(|line| line.trim_start());
    for step in steps.filter(|step| step.starts_with("suiro ")) {
        let command = step.split("   ").next().unwrap();
        let command = if command == "suiro top" { "suiro top --once" } else { command };
        let (code, said) = session.run(command);
        assert_eq!(code, 0, "{command}: {said:?}");
        done += 1;
    }
    assert!(done > 5, "{help:?}");
    Ok(())
}

fn report(name: &str, step: &Step, code: i32, differs: Option<usize>, got: &[String]) -> String {
    let line = step.line + differs.map_or(0, |at| at + 1);
    let [expected, got] = [&step.expected[..], got].map(|lines| lines.join("\n  "));
    format!(
        "{name}:{line}: # {}\nexit code {code}; expected:\n  {expected}\ngot:\n  {got}",
        step.command
    )
}
