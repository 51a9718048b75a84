//! What stands below the options of a command's help, arranged for a terminal of 80 columns.
//!
//! Paragraphs are filled by whoever prints them. Examples stay as they are typed: an explanation that would be broken stands above its command, as a
//! comment of the shell, and the meaning of a word goes on below itself.

use clap::Command;

/// Columns that a terminal has at least.
const COLUMNS: usize = 80;
/// In front of examples and lists.
const INDENT: &str = "  ";
/// Between a word and what it means: at least.
const GAP: &str = "  ";

/// The command and those below it, with help that fits.
pub fn arranged(command: Command) -> Command {
    let help = command.get_after_help().map(|help| arrange(&help.to_string()));
    let command = help.into_iter().fold(command, |command, help| command.after_help(help));
    command.mut_subcommands(arranged)
}

/// Lines of the same kind, which belong together.
fn arrange(help: &str) -> String {
    let lines: Vec<&str> = help.lines().collect();
    let kind = |line: &str| (line.is_empty(), line.starts_with(INDENT));
    let block = |block: &[&str]| match kind(block[0]) {
        (_, true) => list(block),
        (true, _) => block.join("\n"),
        _ => block.join(" "),
    };
    let blocks: Vec<_> = lines.chunk_by(|a, b| kind(a) == kind(b)).map(block).collect();
    blocks.join("\n")
}

fn list(lines: &[&str]) -> String {
    if lines.iter().all(|line| width(line) <= COLUMNS) {
        return lines.join("\n");
    }
    lines.iter().map(|line| item(line)).collect::<Vec<_>>().join("\n")
}

/// A word or a command, and what it means.
fn item(line: &str) -> String {
    let Some((word, meaning)) = line.trim_start().split_once(GAP) else { return line.to_owned() };
    let meaning = meaning.trim_start();
    if word.contains(' ') {
        return format!("{INDENT}# {meaning}\n{INDENT}{word}");
    }
    hanging(&line[..line.len() - meaning.len()], meaning)
}

/// The meaning behind its word, in lines that begin below each other.
fn hanging(word: &str, meaning: &str) -> String {
    let (mut text, mut at) = (word.to_owned(), width(word));
    for (index, next) in meaning.split(' ').enumerate() {
        if index > 0 && at + 1 + width(next) > COLUMNS {
            text += &format!("\n{}", " ".repeat(width(word)));
            at = width(word);
        } else if index > 0 {
            text.push(' ');
            at += 1;
        }
        text += next;
        at += width(next);
    }
    text
}

fn width(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Cli;
    use clap::CommandFactory;

    fn every_help(command: &Command, found: &mut Vec<(String, String)>) {
        if let Some(help) = command.get_after_help() {
            found.push((command.get_name().to_owned(), help.to_string()));
        }
        command.get_subcommands().for_each(|below| every_help(below, found));
    }

    #[test]
    fn no_example_is_broken_by_a_terminal_of_80_columns() {
        let mut found = Vec::new();
        every_help(&arranged(Cli::command()), &mut found);
        assert!(found.len() > 40, "{}", found.len());
        let lines =
            found.iter().flat_map(|(command, help)| help.lines().map(move |line| (command, line)));
        let broken: Vec<_> =
            lines.filter(|(_, line)| line.starts_with(INDENT) && width(line) > COLUMNS).collect();
        assert!(broken.is_empty(), "{broken:#?}");
    }

    #[test]
    fn comments_go_above_their_commands_meanings_below_themselves_and_paragraphs_are_one_line() {
        let long = "x ".repeat(35);
        let long = long.trim_end();
        let help =
            format!("One\ntwo.\n\n  suiro top    {long}\n  suiro top -i 5  less\n\n  a  {long}");
        let (first, rest) = long.split_at(long.len());
        assert_eq!(rest, "");
        let wanted = format!(
            "One two.\n\n  # {first}\n  suiro top\n  # less\n  suiro top -i 5\n\n  a  {long}"
        );
        assert_eq!(arrange(&help), wanted);
        let word = "y".repeat(70);
        assert_eq!(hanging("  a  ", &format!("x {word} z")), format!("  a  x {word} z"));
        assert_eq!(hanging("  a  ", &format!("x {word}y zz")), format!("  a  x {word}y\n     zz"));
    }
}
