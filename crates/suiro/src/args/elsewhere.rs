//! What other switches' commands are called here: a tip for who types the word that he knows.

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Words of Open vSwitch's tools, of iproute2 and of other switches, and the commands here that do the same.
const HERE: [(&[&str], &str); 23] = [
    (&["show", "list-br", "info"], "suiro status, suiro switch list, suiro port list"),
    (&["add-br", "addbr"], "suiro switch add NAME"),
    (&["del-br", "delbr"], "suiro switch del NAME"),
    (&["list-ports", "dump-ports", "interface"], "suiro port list SWITCH"),
    (&["add-port", "addif"], "suiro port add SWITCH PORT --type KIND"),
    (&["del-port", "delif"], "suiro port del SWITCH PORT"),
    (
        &["set-controller", "set-fail-mode"],
        "suiro switch mod NAME --controller TARGET --fail-mode MODE",
    ),
    (&["dump-flows", "flows"], "suiro flow list SWITCH"),
    (&["add-flow", "add-flows"], "suiro flow add SWITCH FLOW..."),
    (&["mod-flows"], "suiro flow mod SWITCH FLOW..."),
    (&["del-flows"], "suiro flow del SWITCH FLOW..."),
    (&["dump-groups", "add-group", "del-groups"], "suiro group list, add or del SWITCH"),
    (&["dump-meters", "add-meter", "del-meters"], "suiro meter list, add or del SWITCH"),
    (&["fdb", "macs", "fdb/show", "mac"], "suiro switch macs NAME"),
    (
        &["tcpdump", "ovs-tcpdump", "snoop", "sniff"],
        "suiro capture SWITCH:PORT, suiro capture drops",
    ),
    (&["trace", "ofproto/trace", "explain"], "suiro why SWITCH FLOW"),
    (&["dpctl", "ofctl", "ovs-ofctl"], "suiro flow list SWITCH, suiro port list SWITCH"),
    (
        &["metrics", "prometheus", "exporter", "stats"],
        "suiro top, or curl --unix-socket /run/suiro/api.sock http://suiro/metrics",
    ),
    (&["dpif/show", "dpctl/show", "ovs-dpctl"], "suiro status, suiro top"),
    (&["monitor", "watch", "log", "logs"], "suiro events -f, suiro top"),
    (&["import", "restore", "load"], "suiro apply -f FILE, with what suiro export has printed"),
    (&["save", "dump", "backup"], "suiro export > FILE"),
    (&["start", "run", "daemon"], "suiro node --background"),
];

/// Adds to the error of a command that is not there which one does that here.
pub(super) fn with_tip(mut error: clap::Error) -> clap::Error {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else {
        return error;
    };
    if error.kind() == ErrorKind::InvalidSubcommand
        && let Some((_, here)) = HERE.iter().find(|(words, _)| words.contains(&word.as_str()))
    {
        let tip = StyledStr::from(format!("that is here: {here}"));
        // Words that only look alike would mislead.
        error.remove(ContextKind::SuggestedSubcommand);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Cli;
    use clap::{CommandFactory, Parser};

    #[test]
    fn who_types_another_tools_word_is_told_the_command_that_is_there() {
        let refused = |word: &str| {
            let error =
                Cli::try_parse_from(["suiro", word]).err().expect("there is no such command");
            with_tip(error).to_string()
        };
        assert!(refused("dump-flows").contains("tip: that is here: suiro flow list SWITCH"));
        assert!(refused("ofproto/trace").contains("suiro why SWITCH FLOW"));
        let metrics = refused("metrics");
        assert!(
            metrics.contains("http://suiro/metrics") && !metrics.contains("meter"),
            "{metrics}"
        );
        let import = refused("import");
        assert!(import.contains("suiro apply -f FILE") && !import.contains("similar"), "{import}");
        assert!(refused("exprot").contains("'export'"));
    }

    #[test]
    fn each_word_stands_once_is_no_command_and_leads_to_commands_that_there_are() {
        let cli = Cli::command();
        let words: Vec<_> = HERE.iter().flat_map(|(words, _)| *words).collect();
        for (at, word) in words.iter().enumerate() {
            assert!(!words[..at].contains(word), "{word} stands twice");
            assert!(cli.find_subcommand(word).is_none(), "{word} is a command");
        }
        for (_, here) in HERE {
            for command in here.split("suiro ").skip(1) {
                let noun = command.split([' ', ',']).next().expect("split gives one at least");
                assert!(cli.find_subcommand(noun).is_some(), "{here}: {noun}");
            }
        }
    }
}
