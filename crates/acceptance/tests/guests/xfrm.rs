//! An encrypted tunnel whose other end no one here wrote: Linux's ESP (XFRM) in UDP under its own `vxlan` interface, in a machine.
//!
//! The node is both: the switch `over` with the tunnel and a guest `g`, and the network below, the switch `under`, which joins the
//! tunnel's host `h`, a namespace, to the machine.

use crate::Suite;
use acceptance::{Background, Lab, sh, until};
use std::fs::{Permissions, set_permissions, write};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use testbed::guest::{Guest, GuestSpec, Nic};

/// What the kernel loads by itself where there is a `modprobe` that knows aliases; the random numbers are for IVs.
const MODULES: [&str; 10] = [
    "sha512_generic",
    "jitterentropy_rng",
    "ctr",
    "drbg",
    "ghash-generic",
    "gcm",
    "seqiv",
    "xfrm_user",
    "esp4",
    "vxlan",
];

/// A socket that hands ESP behind a UDP header to the kernel (`UDP_ENCAP`, `UDP_ENCAP_ESPINUDP`), as an IKE daemon has one.
const ENCAPSULATION: &str = r#"socket(S,2,2,17)&&setsockopt(S,17,100,pack("i",2))&&bind(S,pack("SnNx8",2,4500,0))||die;sleep"#;

/// Bytes that are fetched: thousands of packets.
const FILE: usize = 4 << 20;

/// How the two ends agree.
struct Agreement {
    /// AES key and salt, both ways, in hexadecimal digits.
    keys: [String; 2],
    spis: [u32; 2],
    mode: &'static str,
    has_esn: bool,
}

/// The place, the machine, and the guest's file, which it serves by HTTP.
struct Rig {
    lab: Lab,
    machine: Guest,
    checksum: String,
    _server: Background,
}

impl Rig {
    fn boot() -> Self {
        let lab = Lab::running(&["h", "g"]);
        lab.suiro(&["switch", "add", "under"]);
        lab.suiro(&["switch", "add", "over"]);
        let socket = lab.path("vm.sock");
        let shown = socket.to_str().unwrap();
        lab.suiro(&["port", "add", "under", "vm", "--type", "vhost-user", "--socket", shown]);
        for (switch, guest, mtu, address) in
            [("under", "h", "1500", "192.0.2.1/24"), ("over", "g", "1380", "10.0.0.1/24")]
        {
            let netns = lab.guest(guest);
            let tap = ["--interface", "eth0", "--netns", &netns, "--mtu", mtu];
            lab.suiro(&[&["port", "add", switch, guest, "--type", "tap"][..], &tap].concat());
            lab.address(guest, "eth0", address);
            sh(&["ip", "-n", &netns, "link", "set", "eth0", "up"]);
        }
        let spec = GuestSpec::new("xfrm").modules(&MODULES).program(PathBuf::from("/usr/bin/perl"));
        let nic = Nic::vhost_user(&socket, "02:00:00:00:01:01");
        let machine = Guest::boot(&spec.nic(nic));
        let machine = machine.unwrap_or_else(|error| panic!("{error:#}\n{}", lab.log()));
        let bytes: Vec<u8> =
            (0..FILE as u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let www = lab.path("www");
        std::fs::create_dir(&www).unwrap();
        write(www.join("file"), bytes).unwrap();
        let mut httpd = Command::new("ip");
        httpd.args(["netns", "exec", &lab.guest("g"), "busybox", "httpd", "-f", "-p", "80", "-h"]);
        let server = Background::start(httpd.arg(&www));
        let checksum = first_word(&said(&["md5sum", www.join("file").to_str().unwrap()]));
        let rig = Self { lab, machine, checksum, _server: server };
        rig.inside("ip link set eth0 up && ip addr add 192.0.2.2/24 dev eth0");
        rig.inside(&format!("perl -e '{ENCAPSULATION}' >/tmp/perl 2>&1 &"));
        rig.inside("mkdir /www && httpd -p 80 -h /www");
        rig
    }

    fn inside(&self, command: &str) -> String {
        self.machine
            .run(command)
            .unwrap_or_else(|error| panic!("{error:#}\nlog:\n{}", self.lab.log()))
    }

    /// Both ends by one agreement; what was there before goes.
    fn agree(&self, agreement: &Agreement) {
        let Agreement { keys, spis, mode, has_esn } = agreement;
        self.inside("ip xfrm state flush; ip xfrm policy flush; ip link del vx0 2>/dev/null; true");
        let file = self.lab.path("keys");
        let text = format!(
            "[[sa]]\nspi_out = {:#x}\nkey_out = \"{}\"\nspi_in = {:#x}\nkey_in = \"{}\"\nmode = \"{mode}\"\nesn = {has_esn}\n",
            spis[0], keys[0], spis[1], keys[1]
        );
        write(&file, text).unwrap();
        set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
        let netns = self.lab.guest("h");
        let tunnel =
            ["--remote", "192.0.2.2", "--local", "192.0.2.1", "--key", "7", "--netns", &netns];
        let add =
            ["port", "add", "over", "tun0", "--type", "vxlan", "--encrypt", file.to_str().unwrap()];
        self.lab.suiro(&[&add[..], &tunnel].concat());
        let (here, there) = ("192.0.2.2", "192.0.2.1");
        let flag = if *has_esn { "flag esn" } else { "" };
        for (src, dst, direction, at) in [(there, here, "in", 0), (here, there, "out", 1)] {
            let aead = format!("aead 'rfc4106(gcm(aes))' 0x{} 128", keys[at]);
            self.inside(&format!(
                "ip xfrm state add src {src} dst {dst} proto esp spi {:#x} mode {mode} {flag} replay-window 128 {aead} encap espinudp 4500 4500 0.0.0.0",
                spis[at]
            ));
            self.inside(&format!(
                "ip xfrm policy add src {src}/32 dst {dst}/32 proto 17 dport 4789 dir {direction} tmpl src {src} dst {dst} proto esp mode {mode}"
            ));
        }
        self.inside("ip link add vx0 mtu 1380 address 02:00:00:00:01:07 type vxlan id 7 remote 192.0.2.1 dstport 4789 && ip link set vx0 up && ip addr add 10.0.0.2/24 dev vx0");
    }

    /// Both ends as they see themselves, for errors.
    fn ends(&self) -> String {
        let inside =
            "ip -s xfrm state; ip xfrm policy; ip -s link show vx0; cat /proc/net/xfrm_stat";
        let said = self.machine.says(inside, std::time::Duration::from_secs(10)).unwrap();
        self.lab.suiro(&["port", "show", "over", "tun0"]) + &said.output + &self.lab.log()
    }

    /// The file crosses both ways, in TCP, and comes out as it went in.
    fn fetch(&self) {
        let fetched = self.inside("wget -q -O /www/file http://10.0.0.1/file && md5sum </www/file");
        assert_eq!(first_word(&fetched), self.checksum, "{}", self.lab.log());
        let netns = self.lab.guest("g");
        let back = [
            "ip",
            "netns",
            "exec",
            &netns,
            "sh",
            "-c",
            "busybox wget -q -O - http://10.0.0.2/file | md5sum",
        ];
        assert_eq!(first_word(&said(&back)), self.checksum, "{}", self.lab.log());
    }
}

/// What a command writes, which must succeed.
fn said(words: &[&str]) -> String {
    let output = Command::new(words[0]).args(&words[1..]).output().unwrap();
    assert!(output.status.success(), "{}", words.join(" "));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn first_word(text: &str) -> String {
    text.split_whitespace().next().unwrap_or_default().to_owned()
}

fn key(digit: char, bytes: usize) -> String {
    let varied: String = (0..bytes).map(|at| format!("{:01x}{digit}", at % 16)).collect();
    varied
}

fn talks(rig: &Rig, agreement: &Agreement) {
    rig.agree(agreement);
    let netns = rig.lab.guest("g");
    let ping = ["netns", "exec", &netns, "ping", "-c", "5", "-i", "0.2", "-W", "5", "10.0.0.2"];
    let status =
        Command::new("ip").args(ping).stdout(std::process::Stdio::null()).status().unwrap();
    assert!(status.success(), "no ping passes\n{}", rig.ends());
    rig.fetch();
    let shown = rig.lab.json(&["port", "show", "over", "tun0"]);
    for sa in shown["sas"].as_array().unwrap() {
        assert!(sa["packets"].as_u64().unwrap() > 1000, "{shown}");
        assert_eq!(
            (&sa["replayed"], &sa["bad_icv"], &sa["malformed"]),
            (&0.into(), &0.into(), &0.into())
        );
    }
    assert_eq!(shown["counters"]["rx_drops"].as_array().unwrap().len(), 0, "{shown}");
    let states = rig.inside("ip -s xfrm state");
    let unharmed = states.matches("replay-window 0 replay 0 failed 0").count();
    assert_eq!(unharmed, 2, "{states}");
    // Without its SAs nothing gets out of the machine in clear that would get in here, nor the other way.
    rig.inside(
        "ip xfrm policy flush; ip xfrm state flush; ping -c 1 -W 1 10.0.0.1 >/dev/null 2>&1; true",
    );
    until("what came unencrypted is counted", || {
        let shown = rig.lab.json(&["port", "show", "over", "tun0"]);
        let drops = shown["counters"]["rx_drops"].as_array().unwrap().clone();
        drops.iter().any(|drop| drop["reason"] == "plaintext")
    });
    rig.lab.suiro(&["port", "del", "over", "tun0"]);
}

pub fn cases(suite: &mut Suite) {
    suite.plain("xfrm::guests_and_linux_esp_talk_in_both_modes_with_and_without_esn", || {
        let rig = Rig::boot();
        let agreements = [("transport", true, 20), ("tunnel", true, 36), ("transport", false, 36)];
        for (number, (mode, has_esn, bytes)) in (1..).zip(agreements) {
            let digit = |add: u32| char::from_digit(2 * number + add, 16).unwrap();
            let keys = [key(digit(0), bytes), key(digit(1), bytes)];
            talks(
                &rig,
                &Agreement { keys, spis: [0x1000 + number, 0x2000 + number], mode, has_esn },
            );
        }
    });
}
