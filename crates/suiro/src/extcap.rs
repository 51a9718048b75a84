//! `suirocap`: Wireshark's list of interfaces has the node's points (extcap, as Wireshark 4.0 calls it).
//!
//! | asked | answered |
//! |---|---|
//! | `--extcap-interfaces` | a line for each point, and one for other hosts |
//! | `--extcap-config --extcap-interface V` | what can be chosen for it |
//! | `--extcap-dlts --extcap-interface V` | Ethernet, or messages without frames |
//! | `--capture --extcap-interface V --fifo F` | a pcapng file into F, until SIGTERM or F is closed |
//!
//! The program is `suiro` by another name. Where the host is another one, it is `suiro` there, by ssh: for a point of this node's list that is there too,
//! or, by the interface [`ELSEWHERE`], which is always listed, for any.

use crate::args::{CaptureArgs, FramesArgs};
use crate::commands::{Context, capture, out};
use crate::failure::Failure;
use crate::login;
use api::{Client, Fault, PortKind, PortView};
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// What the program is called to be this.
pub const NAME: &str = "suirocap";
/// In front of a point, so that no interface of the host is called like it.
const PREFIX: &str = "suiro-";
/// The interface for points of hosts that this one knows nothing of.
const ELSEWHERE: &str = "suiro-ssh";
/// Wireshark waits for the list when it starts.
const PATIENCE: Duration = Duration::from_secs(1);
/// Ports beyond which switches are listed in place of them.
const PORTS_MAX: usize = 64;
const SOCKET: &str = "/run/suiro/api.sock";

/// Whether the program was called so.
pub fn is_it(program: Option<&str>) -> bool {
    program.is_some_and(|program| Path::new(program).file_name().is_some_and(|name| name == NAME))
}

/// Answers Wireshark.
pub fn run(words: impl Iterator<Item = String>) -> Result<(), Failure> {
    let asked = Asked::of(words);
    if asked.has("--extcap-interfaces") {
        return out(&interfaces(&asked));
    }
    if asked.has("--extcap-config") {
        let config = match asked.value("--extcap-interface") {
            Some(ELSEWHERE) => format!("{REMOTE}{FRAMES}"),
            _ => format!("{NODE}{FRAMES}").replace("SOCKET", &asked.socket().display().to_string()),
        };
        return out(&config);
    }
    if asked.has("--extcap-dlts") {
        return out(asked.link());
    }
    if asked.has("--capture") {
        return asked.capture();
    }
    out(
        "suirocap is for Wireshark, which calls it from its extcap directory; people use: suiro capture --help\n",
    )
}

const NODE: &str = "\
arg {number=0}{call=--host}{display=Host}{tooltip=user@host of the node, by ssh; empty for this host}{type=string}{group=Node}
arg {number=1}{call=--api}{display=Socket}{tooltip=Socket of the node's API}{type=string}{default=SOCKET}{group=Node}
";
const REMOTE: &str = "\
arg {number=0}{call=--host}{display=Host}{tooltip=user@host of the node, by ssh}{type=string}{required=true}{group=Node}
arg {number=1}{call=--point}{display=Point}{tooltip=As suiro capture has it: sw0:vm1, drops, steer:eth0}{type=string}{default=drops}{group=Node}
";
const FRAMES: &str = "\
arg {number=2}{call=--match}{display=Match}{tooltip=Which frames, as flows have it: tcp,tp_dst=80}{type=string}{group=Frames}
arg {number=3}{call=--snap}{display=Bytes of each frame}{type=unsigned}{range=1,65856}{default=65856}{group=Frames}
arg {number=4}{call=--events}{display=Show what happens on the node}{type=boolflag}{default=false}{group=Frames}
";

/// What Wireshark said.
struct Asked(HashMap<String, String>);

impl Asked {
    /// Words that begin with `--` are options; what follows one is its value.
    fn of(words: impl Iterator<Item = String>) -> Self {
        let (mut asked, mut last) = (HashMap::new(), String::new());
        for word in words {
            match word.strip_prefix("--") {
                Some(_) => {
                    let (option, value) = word.split_once('=').unwrap_or((&word, ""));
                    asked.insert(option.to_owned(), value.to_owned());
                    last = option.to_owned();
                }
                None => drop(asked.insert(std::mem::take(&mut last), word)),
            }
        }
        Self(asked)
    }

    fn has(&self, option: &str) -> bool {
        self.0.contains_key(option)
    }

    fn value(&self, option: &str) -> Option<&str> {
        self.0.get(option).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// What the packets of a point begin with.
    fn link(&self) -> &'static str {
        let point = self.value("--extcap-interface").and_then(|name| name.strip_prefix(PREFIX));
        match point.is_some_and(|point| point.starts_with("openflow:")) {
            true => "dlt {number=252}{name=WIRESHARK_UPPER_PDU}{display=OpenFlow messages}\n",
            false => "dlt {number=1}{name=EN10MB}{display=Ethernet}\n",
        }
    }

    /// Where the node listens. Wireshark says the default of its own list again, so that is where the list came from.
    fn socket(&self) -> PathBuf {
        let socket = self.value("--api").map(PathBuf::from);
        let socket = socket.or_else(|| std::env::var_os("SUIRO_API").map(PathBuf::from));
        socket.unwrap_or_else(|| SOCKET.into())
    }

    /// Captures into the pipe that Wireshark reads.
    fn capture(&self) -> Result<(), Failure> {
        let missing = |what: &str| {
            let remedy = "let Wireshark call it, or use suiro capture";
            Failure::Usage(Fault::new(NAME, "capture", format!("{what} is missing"), remedy))
        };
        let point = match self.value("--extcap-interface") {
            Some(ELSEWHERE) => Some(self.value("--point").unwrap_or("drops")),
            name => name.and_then(|name| name.strip_prefix(PREFIX)),
        };
        let point = point.ok_or_else(|| missing("--extcap-interface"))?.to_owned();
        let fifo = self.value("--fifo").ok_or_else(|| missing("--fifo"))?;
        let args = CaptureArgs {
            points: vec![point],
            frames: FramesArgs {
                write: Some(fifo.into()),
                matching: self.value("--match").unwrap_or_default().to_owned(),
            },
            filter: self.value("--extcap-capture-filter").map(ToOwned::to_owned),
            events: self.has("--events"),
            snap: self.value("--snap").and_then(|snap| snap.parse().ok()),
            payload: None,
            every: None,
            first: None,
            budget: None,
            count: None,
            duration: None,
            past: None,
            ring: None,
        };
        match (self.value("--host"), self.value("--extcap-interface")) {
            (Some(host), _) => return elsewhere(host, &args),
            (None, Some(ELSEWHERE)) => return Err(missing("the host")),
            _ => {}
        }
        let client = Client::new(self.socket(), Duration::from_secs(15));
        let context = Context {
            client,
            nodes: Vec::new(),
            controller: login::controller(None, PATIENCE),
            json: false,
        };
        capture::run(&context, &args)
    }
}

/// The points of a node, those of its switches where its ports are too many.
fn interfaces(asked: &Asked) -> String {
    let mut text = format!("extcap {{version={}}}{{display=suiro}}\n", env!("CARGO_PKG_VERSION"));
    text += &format!(
        "interface {{value={ELSEWHERE}}}{{display=suiro: any point of another host, by ssh}}\n"
    );
    let client = Client::new(asked.socket(), PATIENCE);
    let ports = match client.is_served() {
        true => client.get::<Vec<PortView>>("/v1/ports").ok(),
        false => None,
    };
    let Some(ports) = ports else { return text };
    let mut points = vec![("drops".to_owned(), "frames lost".to_owned())];
    let mut switches: Vec<String> = ports.iter().map(|port| port.switch.to_string()).collect();
    switches.dedup();
    points.extend(switches.iter().flat_map(|switch| of_switch(switch)));
    points.extend(crate::points::steered(&client).into_iter().map(of_steered));
    if ports.len() <= PORTS_MAX {
        points.extend(ports.iter().flat_map(of_port));
    }
    // Both ends of a vlink may have one name.
    let mut known = HashSet::new();
    points.retain(|(point, _)| known.insert(point.clone()));
    for (point, description) in points {
        text += &format!("interface {{value={PREFIX}{point}}}{{display=suiro: {description}}}\n");
    }
    text
}

/// The points of a switch, beside its ports.
fn of_switch(switch: &str) -> [(String, String); 4] {
    [
        (switch.to_owned(), format!("all ports of {switch}")),
        (format!("drops:{switch}"), format!("frames lost, of {switch}")),
        (format!("controller:{switch}"), format!("packet-ins and packet-outs of {switch}")),
        (format!("openflow:{switch}"), format!("OpenFlow messages of {switch}")),
    ]
}

fn of_steered(name: String) -> (String, String) {
    (format!("steer:{name}"), format!("interface {name}, before and after steering"))
}

/// The points of a port; a vlink by the name of one end shows both.
fn of_port(port: &PortView) -> Vec<(String, String)> {
    let (switch, name) = (&port.switch, &port.name);
    let text = format!("{switch} port {name} ({})", port.kind.word());
    let mut points = vec![(format!("{switch}:{name}"), text)];
    match port.kind {
        PortKind::Vxlan => {
            let outside = format!("{switch} port {name}, its packets on the underlay");
            points.push((format!("{switch}:{name}:outside"), outside));
        }
        PortKind::Vlink => {
            points.push((format!("link:{name}"), format!("both ends of vlink {name}")));
        }
        _ => {}
    }
    let queue =
        |id| (format!("queue:{switch}:{name}:{id}"), format!("{switch} port {name}, queue {id}"));
    points.extend(crate::points::queues(port).into_iter().map(queue));
    points
}

/// Captures on another host, by its own `suiro`. This program becomes ssh, so that Wireshark's SIGTERM ends that.
fn elsewhere(host: &str, args: &CaptureArgs) -> Result<(), Failure> {
    let fifo = args.frames.write.as_deref().unwrap_or(Path::new("-"));
    let refused = |step: &str, error: std::io::Error| {
        let thing = format!("host {host}");
        let remedy = "see that ssh reaches it without a question, and that suiro is there";
        Failure::Refused(Fault::new(thing, step, error.to_string(), remedy))
    };
    // What follows `--` is no option of ssh, whatever it is called; the shell there reads the words.
    let mut command = Command::new("ssh");
    command.args(["-o", "BatchMode=yes", "--", host, "suiro", "capture", "-w", "-"]);
    command.args(args.points.iter().map(|point| quoted(point)));
    command.args(["--match", &quoted(&args.frames.matching)]);
    command.args(args.filter.iter().flat_map(|filter| ["--filter".to_owned(), quoted(filter)]));
    command.args(args.snap.iter().flat_map(|snap| ["--snap".to_owned(), snap.to_string()]));
    command.args(args.events.then_some("--events"));
    let file = File::create(fifo).map_err(|error| refused("open Wireshark's pipe", error))?;
    Err(refused("run ssh", command.stdin(Stdio::null()).stdout(file).exec()))
}

/// A word for a shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_wireshark_says_is_understood() {
        let words = "--capture --extcap-interface suiro-sw0:vm1 --fifo /tmp/f --snap 128 --events --match=tcp";
        let asked = Asked::of(words.split(' ').map(str::to_owned));
        assert!(asked.has("--capture") && asked.has("--events") && !asked.has("--host"));
        let values =
            ["--extcap-interface", "--fifo", "--snap", "--match"].map(|option| asked.value(option));
        assert_eq!(values, [Some("suiro-sw0:vm1"), Some("/tmp/f"), Some("128"), Some("tcp")]);
    }

    #[test]
    fn messages_have_a_link_type_of_their_own() {
        let link = |point: &str| {
            let words = ["--extcap-dlts", "--extcap-interface", point].map(str::to_owned);
            Asked::of(words.into_iter()).link()
        };
        assert!(link("suiro-openflow:sw0").starts_with("dlt {number=252}"));
        assert!(link("suiro-sw0:vm1").starts_with("dlt {number=1}"));
    }

    #[test]
    fn no_word_means_anything_to_the_shell_of_another_host() {
        assert_eq!(quoted("a'; rm -rf /"), r"'a'\''; rm -rf /'");
    }

    #[test]
    fn it_is_known_by_its_name() {
        assert!(is_it(Some("/usr/lib/wireshark/extcap/suirocap")) && !is_it(Some("suiro")));
    }
}
