//! What may be typed.

#[cfg(feature = "node")]
mod node;
mod queue;
mod rules;
mod steer;

#[cfg(feature = "node")]
pub use node::{LogFormat, NodeArgs};
pub use queue::QueueCommand;
pub use rules::{FlowCommand, RuleTexts, RulesCommand};
pub use steer::{
    Cores, OnOff, PolicyCommand, PolicyName, SteerCommand, SteerFlowCommand, SteerRuleTexts,
    Unmatched, VmCommand, WhyArgs,
};

use api::{
    Addresses, BadText, Controller, Dpid, Dscp, FlowId, Forwarding, IfName, KeyPath, Listen, Mac,
    Netns, NewRate, Peer, Pin, PortName, PortNumber, Protocol, Rate, Remote, SealCore, SocketPath,
    SwitchName, TunnelKey,
};
use clap::builder::StyledStr;
use clap::builder::styling::{AnsiColor, Styles};
use clap::error::{ContextKind, ContextValue};
use clap::{Args, Parser, Subcommand};
use std::error::Error;
#[cfg(feature = "lab")]
use std::ffi::OsString;
use std::num::{IntErrorKind, ParseIntError};
use std::path::PathBuf;

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold());

/// Where options stand in the help that every command has: after its own.
const LAST: usize = 900;

/// A virtual switch for hosts of many tenants: OpenFlow switches with TAP, AF_PACKET, AF_XDP, vhost-user and VXLAN ports, in user space.
#[derive(Parser)]
#[command(name = "suiro", version, styles = STYLES, max_term_width = 110, after_help = "\
First steps, as root:
  suiro node &                                        run an empty node
  suiro switch add sw0                                make a switch that learns addresses
  suiro port add sw0 g1 --type tap --netns guest1     give the namespace guest1 an interface g1
  suiro port list                                     see the ports
  suiro flow add sw0 'priority=10,arp,actions=drop'   program the switch
  suiro top                                           watch it work

Exit codes: 0 done, 1 refused or failed, 2 not understood, 3 no node to talk to, or none that answers.")]
pub struct Cli {
    /// Socket of the node's API
    #[arg(
        long,
        global = true,
        env = "SUIRO_API",
        value_name = "SOCKET",
        default_value = "/run/suiro/api.sock",
        hide_env_values = true,
        display_order = LAST
    )]
    pub api: PathBuf,
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
    /// Run a node in the foreground, check its configuration, or remove what it left
    #[command(after_help = "\
Examples:
  suiro node                              an empty node; make switches with `suiro switch add`
  suiro node --config node.toml           what the file declares, and what was made before
  suiro node --config node.toml --check   every error in the file, and nothing else
  suiro node --config node.toml --purge   remove its stored state, its TAP interfaces and all steering

docs/reference/node.example.toml shows every key. Signals: SIGTERM and SIGINT end the node and leave the TAPs, with their
addresses, for its next start; SIGHUP reads the file again.
Logging: SUIRO_LOG or RUST_LOG, such as info,node::agent=debug.")]
    Node(NodeArgs),
    /// Show the running node: version, cores, state of its store
    Status,
    /// Make, show, change and remove switches
    #[command(subcommand)]
    Switch(SwitchCommand),
    /// Make, show, change and remove ports
    #[command(subcommand)]
    Port(PortCommand),
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
    /// Choose the core on which each flow of an interface is processed: attach, rules, why, top
    #[command(
        subcommand,
        after_help = "\
First steps, as root, on a host that runs nothing else of suiro:
  suiro steer attach eth0                             from now on each flow's processing goes where the policy says
  suiro steer top                                     watch cores and flows
  suiro steer flow add 'ip,nw_src=10.0.0.1,vm_id=1 actions=place(core=auto,priority)'
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
        interfaces: Vec<IfName>,
    },
    /// Watch switches, ports, their queues, drops and cores
    #[command(after_help = "\
Examples:
  suiro top                     live, until Ctrl-C
  suiro top --once              one look, over one second
  suiro top --json --interval 5 one JSON line every five seconds

The busiest ports come first. WAITING counts the frames in a queue, all else is per second.")]
    Top(TopArgs),
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
    /// Print completions for a shell
    #[command(after_help = "Example:\n  suiro completions bash > /etc/bash_completion.d/suiro")]
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
  suiro switch add sw1 --fail-mode secure --controller tcp:127.0.0.1:6653
  suiro switch add sw2 --dpid 2 --listen ptcp:6654
  suiro switch add sw3 --controller ssl:ctl --tls-certificate sw.pem --tls-key sw.key --tls-ca ca.pem
  suiro switch add sw4 --controller tcp:10.0.0.1 --fail-after-s 15 --on-reconnect flush")]
    Add {
        /// Its name
        name: SwitchName,
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
    List,
    /// Show one switch: controllers, counters, drops by reason
    Show {
        /// Its name
        name: SwitchName,
    },
    /// Change a switch; what is not named stays
    #[command(
        visible_alias = "set",
        after_help = "\
Examples:
  suiro switch mod sw0 --controller tcp:10.0.0.1 --controller tcp:10.0.0.2
  suiro switch mod sw0 --no-controllers --fail-mode standalone
  suiro switch mod sw0 --protocols 1.3
  suiro switch mod sw0 --tls-certificate new.pem --tls-key new.key --tls-ca ca.pem

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
    /// Remove switches with their ports and rules
    #[command(visible_alias = "rm")]
    Del {
        /// Their names
        #[arg(required = true)]
        names: Vec<SwitchName>,
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
}

/// `suiro port`.
#[derive(Subcommand)]
#[expect(clippy::large_enum_variant, reason = "there is one, from the command line")]
pub enum PortCommand {
    /// Make a port
    #[command(after_help = "\
Examples:
  suiro port add sw0 g1 --type tap --netns guest1 --interface eth0   an interface for a guest
  suiro port add sw0 sw0-local --type tap --number local             this host itself as the switch's LOCAL port
  suiro port add sw0 eth1 --type af_packet                           an existing interface, any driver
  suiro port add sw0 eth2 --type af_xdp                              an existing interface, by XDP
  suiro port add sw0 vm1 --type vhost-user --socket /run/suiro/vm1.sock   a virtual machine, QEMU's socket with server=on
  suiro port add sw0 vm2 --type vhost-user --socket /run/suiro/vm2.sock --server --queues 4   the same, called by the machine
  suiro port add sw0 to-sw1 --type vlink --peer sw1:to-sw0           a link to another switch:
  suiro port add sw1 to-sw0 --type vlink --peer sw0:to-sw1           both ends name each other")]
    Add(PortAdd),
    /// List the ports of one switch, or of all
    List {
        /// The switch
        switch: Option<SwitchName>,
    },
    /// Show one port: state, mode, notes, counters, drops by reason
    Show {
        /// Its switch
        switch: SwitchName,
        /// Its name or number
        port: String,
    },
    /// Change a port
    #[command(
        visible_alias = "set",
        after_help = "Examples:\n  suiro port mod sw0 g1 --mtu 9000\n  suiro port mod sw0 g1 --down\n  suiro port mod sw0 g1 --rate 1G"
    )]
    Mod {
        /// Its switch
        switch: SwitchName,
        /// Its name or number
        port: String,
        /// MTU to set
        #[arg(long)]
        mtu: Option<u32>,
        /// Bit/s that leave by it in all, such as 1G; none takes it back
        #[arg(long)]
        rate: Option<NewRate>,
        /// Read the file of a tunnel's keys again: what it still has goes on without a gap
        #[arg(long)]
        rekey: bool,
        /// Where an encrypted tunnel's packets are encrypted: a core, auto (chosen anew), or with-forwarding
        #[arg(long, value_name = "CORE|auto|with-forwarding")]
        seal_core: Option<SealCore>,
        /// Set it up
        #[arg(long, conflicts_with = "down")]
        up: bool,
        /// Set it down
        #[arg(long)]
        down: bool,
    },
    /// Remove ports; a TAP goes with its port
    #[command(visible_alias = "rm")]
    Del {
        /// Their switch
        switch: SwitchName,
        /// Names or numbers
        #[arg(required = true)]
        ports: Vec<String>,
    },
}

/// `suiro port add`.
#[derive(Args)]
pub struct PortAdd {
    /// Its switch
    pub switch: SwitchName,
    /// Its name
    pub name: PortName,
    /// Its kind
    #[arg(long = "type", value_name = "TYPE", value_parser = ["tap", "af_packet", "af_xdp", "vlink", "vhost-user", "vxlan"])]
    pub kind: String,
    /// The interface, for tap the one to make; the one of the port's name when left out
    #[arg(long, short)]
    pub interface: Option<IfName>,
    /// The interface's network namespace, a name or a path; the node's own when left out
    #[arg(long, short)]
    pub netns: Option<Netns>,
    /// OpenFlow number, or local for the switch's local port; the next one when left out, none that rules of a port that went still name
    #[arg(long)]
    pub number: Option<PortNumber>,
    /// MTU to set; the most that a guest may be told (vhost-user)
    #[arg(long)]
    pub mtu: Option<u32>,
    /// MAC address of the guest's side (tap), or the one that controllers see (vhost-user)
    #[arg(long)]
    pub mac: Option<Mac>,
    /// Number of receive queues; the most queue pairs (vhost-user)
    #[arg(long)]
    pub queues: Option<u16>,
    /// XDP attachment (af_xdp)
    #[arg(long, value_name = "MODE", value_parser = ["auto", "zero-copy", "native", "generic"])]
    pub xdp_mode: Option<String>,
    /// Take the interface even where the host itself uses it: it loses its addresses and routes there (af_packet, af_xdp)
    #[arg(long)]
    pub take_over: bool,
    /// Let the host's own stack receive the interface's frames, too (af_packet, af_xdp)
    #[arg(long)]
    pub host: bool,
    /// The other end, SWITCH:PORT (vlink)
    #[arg(long)]
    pub peer: Option<Peer>,
    /// The socket shared with the guest's front-end: QEMU, cloud-hypervisor, DPDK (vhost-user)
    #[arg(long, value_name = "PATH")]
    pub socket: Option<SocketPath>,
    /// Listen on the socket; without it suiro calls, which lets guests outlive its restarts (vhost-user)
    #[arg(long)]
    pub server: bool,
    /// The address of the tunnel's other end, and, with commas, others that it sends from; or flow: each frame's tun_dst, for rules to set (vxlan)
    #[arg(long, value_name = "ADDRESS[,ADDRESS]|flow")]
    pub remote: Option<Remote>,
    /// The address of its near end, or several over which flows spread; the one of the route when left out (vxlan)
    #[arg(long, value_name = "ADDRESS[,ADDRESS]")]
    pub local: Option<Addresses>,
    /// The tunnel's VNI, or flow: each frame's tunnel id, for rules to match and set (vxlan)
    #[arg(long, value_name = "VNI|flow")]
    pub key: Option<TunnelKey>,
    /// How a flow shows outside: by one of several --local addresses, by the DSCP inside, or by the whole ToS byte, which breaks ECN (vxlan)
    #[arg(long, value_parser = FlowId::WORDS.to_vec())]
    pub flow_id: Option<String>,
    /// UDP port of both ends; 4789 when left out (vxlan)
    #[arg(long, value_name = "PORT")]
    pub udp_port: Option<u16>,
    /// DSCP outside, or uniform for the inner packet's; 0 when left out (vxlan)
    #[arg(long, value_name = "0..63|uniform")]
    pub dscp: Option<Dscp>,
    /// TTL or hop limit outside; 64 when left out (vxlan)
    #[arg(long)]
    pub ttl: Option<u8>,
    /// Lower the MSS that TCP offers, both ways, to what the path carries (vxlan)
    #[arg(long)]
    pub mss_clamp: bool,
    /// Whether the outer UDP header has a checksum, and over IPv6 must have one; on when left out (vxlan)
    #[arg(long, value_name = "on|off", value_parser = ["on", "off"])]
    pub outer_checksum: Option<String>,
    /// Who carries its packets between the port and the network: own is suiro, past the kernel, where the route to the other end leaves by a TAP
    /// of one of its switches; kernel when left out (vxlan)
    #[arg(long, value_name = "kernel|own", value_parser = Forwarding::WORDS.to_vec())]
    pub forwarding: Option<String>,
    /// Encrypt it with the keys of this file, absolute path (vxlan): see the guide
    #[arg(long, value_name = "FILE")]
    pub encrypt: Option<KeyPath>,
    /// Where that is done: a core for a thread of its own, auto for one without worker and guest, or with-forwarding as without this (vxlan)
    #[arg(long, value_name = "CORE|auto|with-forwarding")]
    pub seal_core: Option<SealCore>,
    /// Bit/s that leave by it in all, such as 1G
    #[arg(long)]
    pub rate: Option<Rate>,
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

/// Adds to an error of a word that stands for nothing how it is written.
pub fn with_form(mut error: clap::Error) -> clap::Error {
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
