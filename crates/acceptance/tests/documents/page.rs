//! A document's console blocks: commands and the output that is promised.

/// A command with its output.
#[derive(PartialEq, Eq, Debug)]
pub struct Step {
    /// Line of the command in the document.
    pub line: usize,
    /// Without the prompt.
    pub command: String,
    /// Lines that it promises.
    pub expected: Vec<String>,
}

/// Steps of all blocks that are marked `console`, in order. Lines that begin with `# ` are commands, `> ` goes on with one, the others are
/// their output.
pub fn steps(text: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut is_console = false;
    for (line, text) in (1..).zip(text.lines()) {
        if text.starts_with("```") {
            is_console = text == "```console";
        } else if is_console {
            match (text.strip_prefix("# "), steps.last_mut()) {
                (Some(command), _) => {
                    steps.push(Step { line, command: command.to_owned(), expected: Vec::new() });
                }
                (None, Some(step)) => match text.strip_prefix("> ") {
                    Some(more) if step.expected.is_empty() => {
                        step.command.push('\n');
                        step.command.push_str(more);
                    }
                    _ => step.expected.push(text.to_owned()),
                },
                (None, None) => panic!("line {line}: output before the first command"),
            }
        }
    }
    steps
}

pub fn commands_and_their_output_are_told_apart_and_other_blocks_are_left_out() {
    let text = "# Title\n```sh\n# no\n```\n```console\n# a b\n> c\nout\n> more\n\nmore\n# c\n```\n# Not a command\n```console\n# d\n```\n";
    let step = |line, command: &str, expected: &[&str]| Step {
        line,
        command: command.to_owned(),
        expected: expected.iter().map(|&line| line.to_owned()).collect(),
    };
    let wanted =
        [step(6, "a b\nc", &["out", "> more", "", "more"]), step(12, "c", &[]), step(16, "d", &[])];
    assert_eq!(steps(text), wanted);
}
