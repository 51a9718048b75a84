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
/// their output. A comment `<!-- host: COMMAND -->` is a step too, whose output is nobody's: it makes what the page takes for granted.
pub fn steps(text: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    // The spaces before the block that is open: a list's are indented.
    let mut console = None;
    let mut is_open = false;
    for (line, text) in (1..).zip(text.lines()) {
        let trimmed = text.trim_start();
        if trimmed.starts_with("```") {
            is_open = !is_open;
            console = (is_open && trimmed == "```console").then(|| text.len() - trimmed.len());
        } else if let Some(indent) = console {
            of_block(&mut steps, line, text.get(indent..).unwrap_or_default());
        } else if let Some(command) = host(trimmed).filter(|_| !is_open) {
            let expected = vec!["...".to_owned()];
            steps.push(Step { line, command: command.to_owned(), expected });
        }
    }
    steps
}

fn host(text: &str) -> Option<&str> {
    text.strip_prefix("<!-- host: ")?.strip_suffix(" -->")
}

fn of_block(steps: &mut Vec<Step>, line: usize, text: &str) {
    if let Some(command) = text.strip_prefix("# ") {
        steps.push(Step { line, command: command.to_owned(), expected: Vec::new() });
        return;
    }
    let step = steps.last_mut().unwrap_or_else(|| panic!("line {line}: output before a command"));
    let more = if text == ">" { Some("") } else { text.strip_prefix("> ") };
    match more {
        Some(more) if step.expected.is_empty() => {
            step.command.push('\n');
            step.command.push_str(more);
        }
        _ => step.expected.push(text.to_owned()),
    }
}

pub fn commands_and_their_output_are_told_apart_and_other_blocks_are_left_out() {
    let text = "# Title\n```sh\n# no\n```\n```console\n# a b\n> c\n>\nout\n> more\n\nmore\n# c\n```\n# Not a command\n```console\n# d\n```\n";
    let step = |line, command: &str, expected: &[&str]| Step {
        line,
        command: command.to_owned(),
        expected: expected.iter().map(|&line| line.to_owned()).collect(),
    };
    let wanted = [
        step(6, "a b\nc\n", &["out", "> more", "", "more"]),
        step(13, "c", &[]),
        step(17, "d", &[]),
    ];
    assert_eq!(steps(text), wanted);
    let text = "<!-- host: a -->\n- item\n\n  ```console\n  # b\n    out\n  ```\n```sh\n<!-- host: no -->\n```\n";
    assert_eq!(steps(text), [step(1, "a", &["..."]), step(5, "b", &["  out"])]);
}
