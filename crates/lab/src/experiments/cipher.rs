//! What encrypts the testbed's tunnel?
//!
//! Usually nothing does, and [`super::stage`] stands for it. With [`Cipher::Esp`] the kernels of both hosts do, as in the papers: VXLAN in ESP (RFC 4303), transport mode, AES-GCM
//! with 128 bits (RFC 4106). One security association carries all flows, so that nothing but the outer ToS tells them apart: it is the paper's flow control field, VM in
//! the upper seven bits, which the senders set and tunnel and ESP copy outwards.

use super::hosts::{HOST, SENDER};
use anyhow::{Context, Result};
use std::io::Read;
use testbed::netns::Namespace;

/// Who encrypts.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Cipher {
    /// Nobody; a program works as much for each byte.
    #[default]
    InPlace,
    /// The kernel.
    Esp,
}

/// Names the association in both hosts.
const SPI: &str = "0x1007";

impl Cipher {
    /// The DS field that a VM's flow is sent with. Of the ECN bits it may have the upper one: a sender's congestion control is not asked.
    pub const fn tos(self, vm: u8) -> u8 {
        match self {
            Self::InPlace => 0,
            Self::Esp => vm << 1,
        }
    }
}

/// Has the two hosts' kernels encrypt the tunnel between them.
///
/// # Errors
/// A kernel without ESP, AES-GCM or policies.
pub fn encrypt(sender: &Namespace, host: &Namespace) -> Result<()> {
    let key = key()?;
    for space in [sender, host] {
        let state =
            ["xfrm", "state", "add", "src", SENDER, "dst", HOST, "proto", "esp", "spi", SPI];
        let cipher = ["mode", "transport", "aead", "rfc4106(gcm(aes))", &key, "128"];
        space.ip(&[&state[..], &cipher].concat()).with_context(|| {
            "this kernel has no ESP with AES-GCM (INET_ESP, CRYPTO_GCM); run with --guest, whose kernel has"
        })?;
    }
    // By its number: a machine without /etc/protocols knows no "udp".
    let tunnel = ["src", SENDER, "dst", HOST, "proto", "17", "dport", "4789"];
    let by_esp = ["tmpl", "src", SENDER, "dst", HOST, "proto", "esp", "mode", "transport"];
    for (space, direction) in [(sender, "out"), (host, "in")] {
        let policy = ["xfrm", "policy", "add"];
        space.ip(&[&policy[..], &tunnel, &["dir", direction], &by_esp].concat())?;
    }
    Ok(())
}

/// A key of 16 bytes and a salt of 4, for this run only.
fn key() -> Result<String> {
    let mut bytes = [0; 20];
    let mut random = std::fs::File::open("/dev/urandom").context("/dev/urandom")?;
    random.read_exact(&mut bytes).context("/dev/urandom")?;
    Ok(bytes.iter().fold("0x".into(), |text: String, byte| format!("{text}{byte:02x}")))
}
