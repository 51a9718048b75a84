//! What may be typed.

mod capture;
#[cfg(feature = "control")]
mod control;
mod domain;
mod elsewhere;
mod guest;
mod help;
mod keys;
#[cfg(feature = "node")]
mod node;
mod offload;
mod part;
mod port;
mod queue;
mod rules;
mod slice;
mod steer;
mod why;

pub use capture::{CaptureArgs, FlightArgs, FramesArgs};
#[cfg(feature = "control")]
pub use control::ControlArgs;
pub use domain::{DomainCommand, LoginArgs, NodeCommand, TokenCommand, UserCommand};
pub use guest::{CircuitCommand, GuestCommand};
#[cfg(feature = "node")]
pub use node::{LogFormat, NodeArgs};
pub use offload::{OffloadCommand, OffloadPolicyArgs, OffloadPolicyCommand};
pub use part::{ApplyArgs, DiffArgs, ExportArgs, PartCommand, PartFile};
pub use port::{PortCommand, PortMod};
pub use queue::QueueCommand;
pub use rules::{FlowCommand, FlowOrder, RuleTexts, RulesCommand};
pub use slice::SliceCommand;
pub use steer::{
    Cores, OnOff, PolicyCommand, PolicyName, SteerCommand, SteerFlowCommand, SteerRuleTexts,
    Unmatched, VmCommand, WhyArgs,
};
pub use why::PacketArgs;

use crate::place::ControllerPlace;
use api::{BadText, Controller, Dpid, Listen, Netns, Pin, Protocol, SwitchName};
use clap::builder::StyledStr;
use clap::builder::styling::{AnsiColor, Styles};
use clap::error::{ContextKind, ContextValue};
use clap::{Args, Command as Words, CommandFactory, FromArgMatches, Parser, Subcommand};
use std::error::Error;
#[cfg(feature = "lab")]
use std::ffi::OsString;
use std::num::{IntErrorKind, ParseIntError};
use std::path::PathBuf;

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold());

/// What was built: version, commit, and what is in it.
pub const VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    " (commit ",
    env!("SUIRO_COMMIT"),
    ", ",
    env!("SUIRO_FEATURES"),
    ")"
);

/// Where options stand in the help that every command has: after its own.
const LAST: usize = 900;

/// A virtual switch for hosts of many tenants: OpenFlow switches with TAP, AF_PACKET, AF_XDP, vhost-user and VXLAN ports, in user space.
#[derive(Parser)]
#[command(name = "suiro", version = VERSION, styles = STYLES, max_term_width = 110, after_help = "\
First steps, as root:
  suiro node --background                             run an empty node
  suiro switch add sw0                                make a switch that learns addresses
  suiro port add sw0 g1 --type tap                    give it a port: the interface g1
  suiro port list                                     see the ports
  suiro flow add sw0 'priority=10,arp,actions=drop'   program the switch
  suiro export > lab.toml                             write all of that into a file
  suiro apply -f lab.toml                             declare what a file says, here or elsewhere
  suiro top                                           watch it work

Exit codes: 0 done, 1 refused or failed, 2 not understood, 3 no node to talk to, or none that answers.")]
pub struct Cli {
    /// Socket of the node's API; `suiro capture` takes several
    #[arg(
        long,
        global = true,
        env = "SUIRO_API",
        value_name = "SOCKET",
        default_value = "/run/suiro/api.sock",
        hide_env_values = true,
        display_order = LAST
    )]
    pub api: Vec<PathBuf>,
    /// A domain's controller, for slices: its socket, or HOST:PORT; left out, that of suiro login, or else this host's
    #[arg(
        long = "control",
        global = true,
        env = "SUIRO_CONTROL",
        value_name = "CONTROLLER",
        hide_env_values = true,
        display_order = LAST
    )]
    pub controller: Option<ControllerPlace>,
    /// Seconds that the node may be silent before a command gives up
    #[arg(
        long,
        global = true,
        value_name = "SECONDS",
        default_value = "15",
        value_parser = clap::value_parser!(u32).range(1..=86_400),
        display_order = LAST
    )]
    pub timeout: u32,
    /// Print JSON instead of text
    #[arg(long, global = true, display_order = LAST)]
    pub json: bool,
    /// What to do
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Subcommand)]
pub enum Command {
    #[cfg(feature = "node")]
    /// Run a node, check its configuration, or remove what it left
    #[command(after_help = "\
Examples:
  suiro node                              an empty node; make switches with `suiro switch add`
  suiro node --background                 the same, returning when it serves; its log is node.log in its run directory
  suiro node --cores 1,2                  workers on these cores, between which a switch can be steered
  suiro node --config node.toml           what the file declares, and what was made before
  suiro node --config node.toml --check   every error in the file, and nothing else
  suiro node --config node.toml --purge   remove its stored state, its TAP interfaces and all steering

docs/reference/node.example.toml shows every key. Signals: SIGTERM and SIGINT end the node and leave the TAPs, with their
addresses, for its next start; SIGHUP reads the file again.
Logging: SUIRO_LOG or RUST_LOG, such as info,node::agent=debug.")]
    Node(NodeArgs),
    /// Show the running node: version, cores, state of its store
    Status,
    /// Have the running node read its configuration file again: whole, or not at all
    Reload,
    /// Make, show, change and remove switches
    #[command(subcommand)]
    Switch(Box<SwitchCommand>),
    /// Make, show, change and remove ports
    #[command(subcommand)]
    Port(PortCommand),
    /// Show links to other nodes, and what is wrong with them
    #[command(subcommand)]
    Circuit(CircuitCommand),
    /// List and show guests, run programs in them, read what they write
    #[command(subcommand)]
    Guest(GuestCommand),
    /// Give a port queues with rates, for set_queue to choose among
    #[command(subcommand)]
    Queue(QueueCommand),
    /// Add, list, change and delete flows, in the syntax of ovs-ofctl
    #[command(subcommand)]
    Flow(FlowCommand),
    /// Add, list, change and delete groups, in the syntax of ovs-ofctl
    #[command(subcommand)]
    Group(RulesCommand),
    /// Add, list, change and delete meters, in the syntax of ovs-ofctl
    #[command(subcommand)]
    Meter(RulesCommand),
    /// Let heavy flows leave the switch's workers, and see, count and bring them back all the same
    #[command(
        subcommand,
        after_help = "\
First steps, as root:
  suiro offload on                                    flows leave when that has become cheaper
  suiro flow list sw0 --rungs                         one list of all flows: rung, since when, why, packets, bytes
  suiro offload why sw0 'tcp,tp_dst=5201'             what keeps a flow on the worker, and what that costs
  suiro offload policy add web --match 'tcp,tp_dst=443' --when first
  suiro offload off                                   all come back"
    )]
    Offload(OffloadCommand),
    /// Choose the core on which each flow of an interface is processed: attach, rules, why, top
    #[command(
        subcommand,
        after_help = "\
First steps, as root, on a host that runs nothing else of suiro:
  suiro steer attach eth0                             from now on each flow's processing goes where the policy says
  suiro steer top                                     watch cores and flows
  suiro steer flow add \\
      'ip,nw_src=10.0.0.1,vm_id=1 actions=place(core=auto,priority)'
  suiro steer why 'ip,nw_src=10.0.0.1,vm_id=1'        rule, core, reason, and what was thought of every core
  suiro steer detach eth0                             leaves nothing behind"
    )]
    Steer(SteerCommand),
    #[cfg(feature = "node")]
    /// Check what this host can do, and name the fix for what it cannot
    #[command(after_help = "\
Examples:
  suiro doctor
  suiro doctor eth0        and whether this interface can be steered in its driver

Needs no node. Exit code 1 when something that suiro needs is missing.")]
    Doctor {
        /// Interfaces to look at; all physical ones and those that are steered when left out
        interfaces: Vec<api::IfName>,
    },
    /// Watch switches, ports, their queues, drops and cores
    #[command(after_help = "\
Examples:
  suiro top                     live, until q
  suiro top --once              one look, over one second
  suiro top --json --interval 5 one JSON line every five seconds

On a terminal: q ends, arrows scroll, Tab shows one table, o orders the ports, / filters, ? helps.
The busiest ports come first. WAITING counts the frames in a queue, STAY and WAIT are times, all else
is per second. `suiro top flow --help` times the stages that frames of a flow go through.")]
    #[command(args_conflicts_with_subcommands = true)]
    Top {
        #[command(subcommand)]
        of: Option<TopOf>,
        #[command(flatten)]
        args: TopArgs,
    },
    /// See frames at any port, vlink or tunnel, and those that are lost, in Wireshark or as a list
    #[command(after_help = "\
Examples:
  suiro capture sw0:vm1                          a line for each frame that port vm1 of sw0 receives and sends, until Ctrl-C
  suiro capture drops                            what is lost, and why
  suiro capture sw0:vm1 drops -w way.pcapng      a file for Wireshark, with an interface for each point
  suiro capture sw0 | tshark -r - -Y tcp         all ports of sw0, through a pipe
  suiro capture sw0:vm1 | wireshark -k -i -      live
  suiro capture sw0:vm1:rx --match tcp,tp_dst=443 --snap 128 --count 100
  suiro capture drops --events                   and what happens on the node meanwhile

A packet has the same id (frame.packet_id) at each point, whatever rules rewrite on its way. Comments (frame.comment) say switch, port, core
and, of what is lost, the reason. While a port is seen, its frames are received and not handed from guest to guest unread, which takes longer.
A reader that is too slow loses frames of the file, never of the traffic: the last line says how many.")]
    Capture(CaptureArgs),
    /// Show the frames that were lost lately, whether or not anybody captured, each with its reason
    #[command(after_help = "\
Examples:
  suiro flight                      a list of what is remembered
  suiro flight sw0 --past 10s       of one switch, in the last ten seconds
  suiro flight -w lost.pcapng       a file, for Wireshark

Each worker remembers its last 4096 losses: time, reason, port, and the first 160 bytes. Of more than 10,000 a second the rest is counted.
`suiro capture drops --past 10s` shows them and goes on with those that come.")]
    Flight(FlightArgs),
    /// Say what becomes of a packet, and why: the rules that it finds and nearly finds, where it leaves, why it is dropped
    #[command(after_help = "\
Examples:
  suiro why sw0 'in_port=vm1,tcp,nw_src=10.0.0.5,nw_dst=10.0.1.8,tp_dst=80'
  suiro why sw0 'in_port=vm1,arp,dl_dst=ff:ff:ff:ff:ff:ff'
  suiro why sw0 'in_port=vm1,icmp,nw_dst=10.9.0.2,nw_ttl=1' --len 1600
  suiro why sw0 in_port=vm1 --packet 'ffffffffffff 020000000001 0806 …'
  tcpdump -xx -c 1 -i eth0 | suiro why sw0 in_port=eth0 --packet -
  suiro why --from-capture way.pcapng:3
  suiro why sw0 'in_port=vm1,tcp,tp_dst=80' --live 5s

It asks the tables that workers use, as they are now. Nothing is sent, counted, learned or charged. A field that a rule looks at and that
is not said is asked for; nothing is filled in but what the answer names. For each table it names the rules that nearly matched.
Exit code 0: it leaves or goes to a controller; 4: it is dropped.")]
    Why(PacketArgs),
    /// Show what a file would change of the node, and what that interrupts; changes nothing
    #[command(
        visible_alias = "plan",
        after_help = "\
Examples:
  suiro diff -f lab.toml                what `suiro apply -f lab.toml` would do
  suiro diff -f lab.toml --exit-code    exit code 4 if that is anything, for scripts

+ comes, ~ changes and carries on, -/+ is made anew, - goes. `suiro apply --help` shows a file."
    )]
    Diff(DiffArgs),
    /// Make the node have what a file declares: all of it or nothing, and only what differs moves
    #[command(after_help = "\
A file declares switches with their ports, queues and rules, as the node's configuration file does, without [node]:

  [[switch]]
  name = \"sw0\"
  flows = [\"priority=10,arp,actions=NORMAL\"]

  [[switch.port]]
  name = \"g1\"
  type = \"tap\"
  netns = \"guest1\"

Examples:
  suiro diff -f lab.toml              see what would change
  suiro apply -f lab.toml             do it; done twice, the second time there is nothing to do
  suiro apply -f lab.toml --wait      and wait until every port has its link and every controller answers
  suiro apply -f - --part red < x     from standard input, as part `red`

What it declares is a part, named after the file, or by --part. The part owns what it declares: what leaves the file is removed, what others own
is never touched. A part is kept with the node's state and is there again after a restart. `suiro part del NAME` removes all of it.")]
    Apply(ApplyArgs),
    /// Print what the node has, as a configuration file
    #[command(after_help = "\
Examples:
  suiro export > /etc/suiro/node.toml   make a file of what was made by commands; the next start takes it over
  suiro export --all > move.toml        all of it, parts' and controllers' rules too
  suiro apply -f move.toml              on the other host

Flows that end by themselves are left out, and of switches with controllers all rules, unless --all. What steering was asked for is not in it.")]
    Export(ExportArgs),
    /// Write what whoever helps would ask for into one text file: host, node, ports, log
    #[command(after_help = "\
Examples:
  suiro bugreport                  suiro-bugreport-….txt in this directory
  suiro bugreport --output - | less

It names interfaces, addresses and rules of this host, and no keys.")]
    Bugreport {
        /// The file; - for standard output
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// List, show and remove parts: what `suiro apply` declared
    #[command(subcommand)]
    Part(PartCommand),
    #[cfg(feature = "control")]
    /// Run the controller of a domain: slices over sites, told to nodes
    #[command(after_help = "\
Examples:
  suiro control                         until SIGTERM
  suiro control --background            the same, back when it serves; its log is control.log in its run directory

It holds nothing that is not in its state directory: it may be killed at any time, and nodes go on without it.")]
    Control(ControlArgs),
    /// List, show, change and remove slices: tenants' networks over sites
    #[command(subcommand)]
    Slice(SliceCommand),
    /// Show the domain: its file, its nodes; let nodes and users in
    #[command(subcommand)]
    Domain(DomainCommand),
    /// Compare a domain's declared state with what its nodes have: nothing is printed where all is equal
    #[command(after_help = "\
Examples:
  suiro audit           parts by their versions, links by their probes
  suiro audit --deep    and what each node finds anew: switches, ports, rules, guests, interfaces

Each difference is printed with its node and remedy. The exit code is 0 where all is equal, 4 where something differs.
Who changed what is another matter: suiro domain audit.")]
    Audit {
        /// Let each node look at what it really has, kernel included
        #[arg(long)]
        deep: bool,
    },
    /// Be known to a domain's controller somewhere else, from now on
    #[command(after_help = "\
Examples:
  suiro login ctl.example --token-file alice.token
  suiro slice list

An operator makes the token: suiro domain user add alice --tenant red")]
    Login(LoginArgs),
    /// Forget what suiro login has kept
    Logout,
    /// Print what happened: switches, ports, controllers, rules, parts and faults, one line each
    #[command(after_help = "\
Examples:
  suiro events                    what the node has kept, the oldest first
  suiro events -f                 what happens from now on, until Ctrl-C
  suiro events -f --since 1042    what came after event 1042, then what comes: none missed, none twice
  suiro events --json             one JSON object a line

Each line begins with the event's number, by which a reader goes on. Who is further behind than the node has kept is told so, and gets
what is there now.")]
    Events(EventsArgs),
    #[cfg(feature = "lab")]
    /// Measure suiro, side by side with what people use today
    #[command(disable_help_flag = true)]
    Bench {
        /// Which benchmark and its options; `suiro bench --help` lists them
        // The lab reads them itself: its `--json FILE` writes a report, the `--json` of all other commands is a switch.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    #[cfg(feature = "lab")]
    /// Repeat the papers' experiments on this host: their tables beside ours
    #[command(disable_help_flag = true)]
    Lab {
        /// `list`, or `run` and experiments; `suiro lab --help` says more
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Print the version, its commit and the parts that are built in
    Version,
    /// Write the manual's pages, one for each command
    #[command(hide = true)]
    Man {
        /// Where
        directory: PathBuf,
    },
    /// Print completions for a shell
    #[command(
        after_help = "Example:\n  suiro completions bash > /etc/bash_completion.d/suiro\n\nThe package installs them. Tab then also offers the names of switches, ports, parts, guests and interfaces."
    )]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// `suiro switch`.
#[derive(Subcommand)]
pub enum SwitchCommand {
    /// Make a switch
    #[command(after_help = "\
Examples:
  suiro switch add sw0
  suiro switch add sw0 --may-exist                 for scripts that run again
  suiro switch add sw1 --fail-mode secure --controller tcp:127.0.0.1:6653
  suiro switch add sw2 --dpid 2 --listen ptcp:6654
  suiro switch add sw3 --controller ssl:ctl \\
      --tls-certificate sw.pem --tls-key sw.key --tls-ca ca.pem
  suiro switch add sw4 --controller tcp:10.0.0.1 --fail-after-s 15 \\
      --on-reconnect flush

Some controllers, Faucet for one, do not hear of ports that come after they were called. For them add
the ports first and the controller last (suiro switch mod), or apply a file (suiro apply).")]
    Add {
        /// Its name
        name: SwitchName,
        /// One that is there is no error: it becomes what is named here, and the rest of it stays
        #[arg(long)]
        may_exist: bool,
        /// Datapath id, hexadecimal; derived from machine and name when left out
        #[arg(long)]
        dpid: Option<Dpid>,
        /// Bytes of a packet that a controller gets until it asks for another length
        #[arg(long, value_name = "BYTES")]
        miss_send_len: Option<u16>,
        /// The rest
        #[command(flatten)]
        settings: SwitchSettings,
    },
    /// List all switches
    #[command(visible_aliases = ["ls", "dump"])]
    List,
    /// Show one switch: controllers, counters, drops by reason
    Show {
        /// Its name
        name: SwitchName,
    },
    /// Change a switch; what is not named stays
    #[command(
        alias = "set",
        after_help = "\
Examples:
  suiro switch mod sw0 --controller tcp:10.0.0.1 --controller tcp:10.0.0.2
  suiro switch mod sw0 --no-controllers --fail-mode standalone
  suiro switch mod sw0 --protocols 1.3
  suiro switch mod sw0 \\
      --tls-certificate new.pem --tls-key new.key --tls-ca ca.pem

--controller, --listen, --protocols and the --tls options replace all that the switch had of their kind."
    )]
    Mod {
        /// Its name
        name: SwitchName,
        /// What to change
        #[command(flatten)]
        settings: SwitchSettings,
        /// Call no controller any more
        #[arg(long, conflicts_with = "controllers")]
        no_controllers: bool,
        /// Wait for controllers nowhere any more
        #[arg(long, conflicts_with = "listen")]
        no_listen: bool,
        /// Use the node's certificates again
        #[arg(long, conflicts_with = "tls_certificate")]
        no_tls: bool,
    },
    /// Show which station is behind which port, as the switch has learned it (ovs-appctl fdb/show)
    #[command(
        visible_alias = "fdb",
        after_help = "\
Examples:
  suiro switch macs sw0
  suiro switch macs sw0 --forget     frames to stations are flooded until they speak

A switch learns where it forwards by itself, and where a rule says NORMAL."
    )]
    Macs {
        /// Its name
        name: SwitchName,
        /// Forget them
        #[arg(long)]
        forget: bool,
    },
    /// Remove switches with their ports and rules
    #[command(visible_alias = "rm")]
    Del {
        /// Their names
        #[arg(required = true)]
        names: Vec<SwitchName>,
        /// That one is not there is no error
        #[arg(long)]
        if_exists: bool,
    },
}

/// What a switch is given or changed to.
#[derive(Args)]
pub struct SwitchSettings {
    /// Without a controller: forward as a learning switch, or only by rules
    #[arg(long, value_name = "MODE", value_parser = ["standalone", "secure"])]
    pub fail_mode: Option<String>,
    /// Seconds without a controller before a standalone switch forwards by itself; a new switch: 0
    #[arg(long, value_name = "SECONDS")]
    pub fail_after_s: Option<u32>,
    /// The rules when a controller comes and none was there; a new switch: keep
    #[arg(long, value_name = "WHAT", value_parser = ["keep", "flush"])]
    pub on_reconnect: Option<String>,
    /// The rules when a standalone switch begins to forward by itself; a new switch: keep
    #[arg(long, value_name = "WHAT", value_parser = ["keep", "flush"])]
    pub on_standalone: Option<String>,
    /// Seconds of silence before a controller is asked for an echo; three times that and it is given up; a new
    /// switch: 5
    #[arg(long, value_name = "SECONDS")]
    pub echo_interval_s: Option<u16>,
    /// Auxiliary connections to each controller that is called, 0 to 8; a new switch: 0
    #[arg(long, value_name = "NUMBER")]
    pub aux: Option<u8>,
    /// What its controllers may do with the host's steering, by suiro's OpenFlow extension; a new switch: off
    #[arg(long, value_name = "WHAT", value_parser = ["off", "read", "program"])]
    pub steering: Option<String>,
    /// The switch's certificate for ssl: and pssl:, a PEM file; without one it uses the node's
    #[arg(long, value_name = "FILE", requires_all = ["tls_key", "tls_ca"])]
    pub tls_certificate: Option<PathBuf>,
    /// Its private key
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    pub tls_key: Option<PathBuf>,
    /// Certificates of the authorities that sign controllers' certificates
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    pub tls_ca: Option<PathBuf>,
    /// Take only the certificate with this fingerprint, as `openssl x509 -noout -fingerprint -sha256` prints its digits:
    /// sha256:DIGITS; may be repeated
    #[arg(long = "tls-pin", value_name = "FINGERPRINT", requires = "tls_certificate")]
    pub tls_pins: Vec<Pin>,
    /// A controller to call, tcp:HOST[:PORT] or ssl:HOST[:PORT]; may be repeated
    #[arg(long = "controller", value_name = "TARGET")]
    pub controllers: Vec<Controller>,
    /// Where to wait for controllers, ptcp:[PORT][:ADDRESS] or pssl:[PORT][:ADDRESS]; may be repeated
    #[arg(long, value_name = "TARGET")]
    pub listen: Vec<Listen>,
    /// OpenFlow versions to speak, with commas between them; a new switch: 1.0,1.3
    #[arg(long, value_name = "VERSIONS", value_delimiter = ',')]
    pub protocols: Vec<Protocol>,
    /// Most packets a second sent to controllers; a new switch: 10000
    #[arg(long, value_name = "RATE")]
    pub max_packet_in_per_s: Option<u32>,
    /// Storm control: most copies a second that flooded frames of one port may cause; a new switch: 20000 if it is standalone, else no bound
    #[arg(long, value_name = "RATE")]
    pub max_flood_copies_per_s: Option<u32>,
    /// Most copies a second beyond those that each frame may make; a new switch: 50000
    #[arg(long, value_name = "RATE")]
    pub max_copies_per_s: Option<u32>,
    /// Network namespace that connections with controllers are made in; a new switch: the node's own
    #[arg(long, value_name = "NETNS")]
    pub session_netns: Option<Netns>,
}

/// `suiro events`.
#[derive(Args)]
pub struct EventsArgs {
    /// Go on with what comes
    #[arg(long, short)]
    pub follow: bool,
    /// Only what came after the event of this number; `oldest` for all that is kept, `now` for none of it
    #[arg(long, value_name = "NUMBER")]
    pub since: Option<String>,
}

/// `suiro top`.
#[derive(Args)]
pub struct TopArgs {
    /// Seconds between two looks
    #[arg(long, short, value_name = "SECONDS", default_value = "1", value_parser = clap::value_parser!(u16).range(1..=3600))]
    pub interval: u16,
    /// Look once, over one interval, and end
    #[arg(long)]
    pub once: bool,
}

/// What `suiro top` watches but the node.
#[derive(Subcommand)]
pub enum TopOf {
    /// Time the stages that frames of a flow go through, until Ctrl-C
    #[command(after_help = "\
Examples:
  suiro top flow sw0 tcp,tp_dst=443          what HTTPS waits for, every second
  suiro top flow sw0 in_port=vm1 --once      all that vm1 sends, over one second
  suiro --json top flow sw0 icmp --once      the histograms, for programs

receive takes a batch from its source. handover waits for another worker. tables parses, classifies and
does the actions. send gives frames to their destinations. all is these four, queue the wait in a port's queue.
STAYED is for how long a frame was there, with its whole batch; OWN is its part of that time.
Frames that came by a vlink are timed where they came in first. Off, it costs nothing; meanwhile frames
of the switch are read one by one, as for a capture.")]
    Flow(FlowTimesArgs),
}

/// `suiro top flow`.
#[derive(Args)]
pub struct FlowTimesArgs {
    /// The switch that they come in at
    pub switch: SwitchName,
    /// Which frames: a match, as flows have it, such as tcp,tp_dst=443
    #[arg(value_name = "MATCH")]
    pub matching: String,
    /// Seconds of a look
    #[arg(long, short, value_name = "SECONDS", default_value = "1", value_parser = clap::value_parser!(u16).range(1..=10))]
    pub interval: u16,
    /// Look once and end
    #[arg(long)]
    pub once: bool,
}

/// All commands, with their help arranged.
pub fn commands() -> Words {
    help::arranged(Cli::command())
}

/// What was typed.
///
/// # Errors
/// It is not understood, or it asks for help.
pub fn read() -> Result<Cli, clap::Error> {
    let mut words = commands();
    let matches = words.try_get_matches_from_mut(std::env::args_os())?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut words))
}

/// Adds to an error of a word that stands for nothing how it is written, or what it is called here.
pub fn with_form(error: clap::Error) -> clap::Error {
    let mut error = elsewhere::with_tip(error);
    let text = |source: &(dyn Error + 'static)| Some(source.downcast_ref::<BadText>()?.form);
    let number = |source: &(dyn Error + 'static)| {
        let number = source.downcast_ref::<ParseIntError>()?;
        (*number.kind() == IntErrorKind::InvalidDigit).then_some("a whole number, in digits")
    };
    if let Some(form) = error.source().and_then(|source| text(source).or_else(|| number(source))) {
        let tip = StyledStr::from(format!("write {form}"));
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every command below this one that has commands of its own.
    fn nouns(command: &clap::Command, found: &mut Vec<clap::Command>) {
        for noun in command.get_subcommands().filter(|noun| noun.has_subcommands()) {
            found.push(noun.clone());
            nouns(noun, found);
        }
    }

    #[test]
    fn every_noun_has_the_same_verbs_and_the_same_short_words_for_them() {
        let mut found = Vec::new();
        nouns(&Cli::command(), &mut found);
        assert!(found.len() >= 9, "{}", found.len());
        for noun in &found {
            for (verb, words) in [("list", &["ls", "dump"][..]), ("del", &["rm"])] {
                let Some(command) = noun.find_subcommand(verb) else { continue };
                let aliases: Vec<_> = command.get_visible_aliases().collect();
                assert_eq!(aliases, words, "{} {verb}", noun.get_name());
            }
            for old in ["set", "dump", "rm"] {
                let verb = noun.find_subcommand(old).map_or("", |command| command.get_name());
                assert_ne!(verb, old, "{}: {old} is no verb of its own", noun.get_name());
            }
        }
    }
}
