//! The domain: `suiro domain`, `suiro login`.

use super::EventsArgs;
use crate::place::ControllerPlace;
use api::Role;
use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// `suiro domain`.
#[derive(Subcommand)]
pub enum DomainCommand {
    /// Print the domain's file as it was applied
    Show,
    /// List the domain's nodes, and whether they have what they shall have; as `node list`
    Nodes,
    /// The domain's nodes
    #[command(subcommand)]
    Node(NodeCommand),
    /// Tokens by which hosts join as nodes
    #[command(subcommand)]
    Token(TokenCommand),
    /// Users: who may see and change which slices
    #[command(subcommand)]
    User(UserCommand),
    /// Print the last changes: who, what, outcome
    #[command(after_help = "\
Examples:
  suiro domain audit             the last 100
  suiro domain audit --last 5
  suiro domain audit --json      as JSON

The store keeps the last 10000.")]
    Audit {
        /// How many, the newest last
        #[arg(long, value_name = "NUMBER", default_value = "100")]
        last: usize,
    },
    /// Say what happened in the domain: slices that come, change and go, how they are, nodes that are away
    #[command(after_help = "\
Examples:
  suiro domain events                 all that is kept
  suiro domain events -f              what happens from now on
  suiro domain events --since 1042    what came after that event

A tenant's user hears of the tenant's slices, an operator of all.")]
    Events(EventsArgs),
}

/// `suiro domain node`.
#[derive(Subcommand)]
pub enum NodeCommand {
    /// List the domain's nodes, and whether they have what they shall have
    #[command(visible_aliases = ["ls", "dump"])]
    List,
    /// Let a node in no more: its certificate is worth nothing, and nothing waits for it. For a host that is off, or was stolen
    Forget {
        /// Which
        node: String,
    },
}

/// `suiro domain token`.
#[derive(Subcommand)]
pub enum TokenCommand {
    /// Make a token, and print it: this once
    #[command(after_help = "\
Examples:
  suiro domain token add --node t1 > t1.token
  suiro domain token add --node t1 --node t2 --for 8h

Each node joins by it once: suiro node --join HOST:PORT --node-name t1 --token-file t1.token")]
    Add {
        /// A node that may join by it; may be repeated
        #[arg(long = "node", value_name = "NAME", required = true)]
        nodes: Vec<String>,
        /// How long it is good: 90s, 15m, 8h, 7d
        #[arg(long = "for", value_name = "TIME", default_value = "1h", value_parser = span)]
        for_s: u64,
    },
    /// List tokens and who has joined by them; no secrets
    #[command(visible_aliases = ["ls", "dump"])]
    List,
    /// Take a token back; who has joined by it stays
    #[command(visible_alias = "rm")]
    Del {
        /// Which, as the list shows it
        id: String,
    },
}

/// `suiro domain user`.
#[derive(Subcommand)]
pub enum UserCommand {
    /// Make a user, and print the token to log in with: this once. One of that name gets a new role and token
    #[command(after_help = "\
Examples:
  suiro domain user add alice --tenant red > alice.token
  suiro domain user add bob --tenant red --role viewer --for 30d
  suiro domain user add ops --role operator

The user then: suiro login HOST:PORT --token-file alice.token
To sign in at the portal: suiro domain user password alice")]
    Add {
        /// The name
        name: String,
        /// Whose slices
        #[arg(long, value_name = "NAME")]
        tenant: Option<String>,
        /// See them, change them, or do everything in the whole domain
        #[arg(long, value_name = "ROLE", default_value = "user", value_parser = PossibleValuesParser::new(Role::WORDS))]
        role: String,
        /// How long token and password are good: 90s, 15m, 8h, 7d
        #[arg(long = "for", value_name = "TIME", default_value = "90d", value_parser = span)]
        for_s: u64,
    },
    /// List all users
    #[command(visible_aliases = ["ls", "dump"])]
    List,
    /// Give a user a password to sign in at the portal with; it is asked for, or read from standard input
    #[command(after_help = "\
Examples:
  suiro domain user password alice
  pwgen 20 1 | tee alice.password | suiro domain user password alice

12 to 256 bytes. The user's sessions end.")]
    Password {
        /// Whose
        name: String,
    },
    /// Remove a user; the token is worth nothing from now on
    #[command(visible_alias = "rm")]
    Del {
        /// Which
        name: String,
    },
}

/// `suiro login`.
#[derive(Args)]
pub struct LoginArgs {
    /// Where the domain's controller listens: HOST, or HOST:PORT
    #[arg(value_name = "ADDRESS")]
    pub at: ControllerPlace,
    /// The file of your token; - for standard input. Also SUIRO_TOKEN, the token itself
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
}

/// A time as people write it, in seconds.
fn span(text: &str) -> Result<u64, String> {
    let form = || "a whole number and s, m, h or d, as 90s, 15m, 8h, 7d".to_owned();
    let (number, unit) = text.split_at_checked(text.len().saturating_sub(1)).ok_or_else(form)?;
    let unit = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return Err(form()),
    };
    let number: u64 = number.parse().map_err(|_| form())?;
    number.checked_mul(unit).filter(|seconds| *seconds > 0).ok_or_else(form)
}

#[cfg(test)]
mod tests {
    use super::span;

    #[test]
    fn a_time_is_a_number_and_a_unit() {
        let good = ["90s", "15m", "8h", "7d"].map(|text| span(text).ok());
        assert_eq!(good, [90, 900, 28_800, 604_800].map(Some));
        for bad in ["", "5", "h", "-1h", "0s", "1w", "1é", "99999999999999999999d"] {
            assert!(span(bad).is_err(), "{bad}");
        }
    }
}
