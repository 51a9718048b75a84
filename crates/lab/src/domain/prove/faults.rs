//! The faults: what each does to link `a` between the near node and the far one, or to `d` that goes on to the third, and what must be told.

use super::scene::{End, Link, Scene};
use anyhow::Result;
use serde_json::Value;

/// A fault.
pub struct Fault {
    /// Its name.
    pub name: &'static str,
    /// Whether a short run has it.
    pub in_short: bool,
    /// Puts its rules into the switches `K`.
    pub put: fn(&Scene) -> Result<()>,
    /// What the wide-area network does to frames of the near node: a program for `tc`.
    pub filter: Option<fn(&Scene) -> String>,
    /// The link that it is put into.
    pub link: &'static str,
    /// Of the way from the near node (0) or to it (1), what must be told.
    says: (usize, &'static str),
    /// Whether the other way is bad, too; else nothing may be told of it.
    both: bool,
}

impl Fault {
    /// Whether a link's view names it: by its way and its cause.
    pub fn is_named(&self, link: &Value) -> bool {
        let (way, cause) = self.says;
        let why = |way: usize| link["ways"][way]["why"].as_str();
        why(way).is_some_and(|why| why.contains(cause)) && why(1 - way).is_some() == self.both
    }
}

const NEAR: usize = 0;
const FAR: usize = 1;
const THIRD: usize = 2;

/// All of them.
pub const FAULTS: [Fault; 10] = [
    Fault {
        name: "ids exchanged",
        in_short: false,
        put: |scene| {
            send_by(scene, &scene.a, scene.b.id)?;
            send_by(scene, &scene.b, scene.a.id)
        },
        filter: None,
        link: "a",
        says: (0, "probes of link b come by it: ids are exchanged"),
        both: false,
    },
    Fault {
        name: "one way dead",
        in_short: false,
        put: |scene| {
            let (id, End { way, .. }) = (scene.a.id, &scene.a.ends[FAR]);
            [id, id | 1].iter().try_for_each(|id| {
                scene.rule(FAR, &format!("in_port={way},tun_id={id},actions=drop"))
            })
        },
        filter: None,
        link: "a",
        says: (0, "no probe arrives"),
        both: false,
    },
    Fault {
        name: "> 1400 bytes lost",
        in_short: true,
        put: |_| Ok(()),
        // ld len; jgt 1400
        filter: Some(|scene| of_link(scene.a.id, &["128 0 0 0", "37 0 1 1400"])),
        link: "a",
        says: (0, "frames of 1500 bytes are lost, and short ones arrive"),
        both: false,
    },
    Fault {
        name: "5 % lost",
        in_short: false,
        put: |_| Ok(()),
        // ld rand; jge 5 % of 2^32: what is at least that goes on
        filter: Some(|scene| of_link(scene.a.id, &["32 0 0 4294963256", "53 1 0 214748365"])),
        link: "a",
        says: (0, "% of frames are lost"),
        both: false,
    },
    Fault {
        name: "ends crossed",
        in_short: false,
        put: |scene| {
            for (one, other) in [(&scene.a, &scene.b), (&scene.b, &scene.a)] {
                send_by(scene, one, other.id)?;
                let End { port, way } = &one.ends[NEAR];
                let (id, address) = (other.id, one.address());
                scene.rule(NEAR, &format!("in_port={way},tun_id={id},actions=output:{port}"))?;
                let actions = format!("set_field:{address}->eth_dst,output:probe");
                scene.rule(NEAR, &format!("in_port={way},tun_id={},actions={actions}", id | 1))?;
            }
            Ok(())
        },
        filter: None,
        link: "a",
        says: (0, "probes of link b come by it: ends are crossed"),
        both: true,
    },
    Fault {
        name: "wrong tag",
        in_short: false,
        put: |scene| send_by(scene, &scene.a, NO_LINKS),
        filter: None,
        link: "a",
        says: (0, "a tunnel id that is no link's: the tag is wrong"),
        both: false,
    },
    Fault {
        name: "VLAN tag added",
        in_short: false,
        put: |scene| {
            let push = "push_vlan:0x8100,set_field:4103->vlan_vid";
            send(scene, &scene.a, scene.a.id, push, &scene.a.ends[NEAR].way)
        },
        filter: None,
        link: "a",
        says: (0, "frames come with VLAN tag 7"),
        both: false,
    },
    Fault {
        name: "leads astray",
        in_short: false,
        put: |scene| {
            let (id, End { way, .. }) = (scene.a.id, &scene.a.ends[FAR]);
            [id, id | 1].iter().try_for_each(|id| {
                let actions = format!("set_field:{id}->tun_id,output:{}", scene.astray);
                scene.rule(FAR, &format!("in_port={way},tun_id={id},actions={actions}"))
            })
        },
        filter: None,
        link: "a",
        says: (0, "they come out at s1"),
        both: false,
    },
    Fault {
        name: "leads back",
        in_short: false,
        put: |scene| {
            let (id, End { way, .. }) = (scene.a.id, &scene.a.ends[FAR]);
            [id, id | 1].iter().try_for_each(|id| {
                let actions = format!("set_field:{id}->tun_id,output:in_port");
                scene.rule(FAR, &format!("in_port={way},tun_id={id},actions={actions}"))
            })
        },
        filter: None,
        link: "a",
        says: (1, "its own probes come back"),
        both: true,
    },
    Fault {
        name: "second hop dead",
        in_short: true,
        put: |scene| {
            let (id, End { way, .. }) = (scene.d.id, &scene.d.ends[1]);
            [id, id | 1].iter().try_for_each(|id| {
                scene.rule(THIRD, &format!("in_port={way},tun_id={id},actions=drop"))
            })
        },
        filter: None,
        link: "d",
        says: (0, "no probe arrives; lost at hop o1 → s1"),
        both: false,
    },
];

/// An id that no link has: the last.
const NO_LINKS: u32 = 0xff_fffe;

/// The near node sends a link's frames and probes by another id.
fn send_by(scene: &Scene, link: &Link, id: u32) -> Result<()> {
    send(scene, link, id, "", &link.ends[NEAR].way)
}

/// The near node sends a link's frames and probes by that id and that port, after doing this to them.
fn send(scene: &Scene, link: &Link, id: u32, first: &str, way: &str) -> Result<()> {
    let comma = if first.is_empty() { "" } else { "," };
    let (port, address) = (&link.ends[NEAR].port, link.address());
    for (from, id) in
        [(format!("in_port={port}"), id), (format!("in_port=probe,dl_dst={address}"), id | 1)]
    {
        let actions = format!("{first}{comma}set_field:{id}->tun_id,output:{way}");
        scene.rule(NEAR, &format!("{from},actions={actions}"))?;
    }
    Ok(())
}

/// A classic BPF program for `tc` that drops what is of this link, comes over VXLAN on IPv4, and runs to the end of `test`; all else passes.
fn of_link(id: u32, test: &[&str]) -> String {
    // Ethernet, IPv4 of 20 bytes, UDP to 4789; the VNI is at 46, and the odd one is its probes'.
    let mut lines: Vec<String> = Vec::new();
    let own = [
        "40 0 0 12",
        "21 0 PASS 2048",
        "48 0 0 23",
        "21 0 PASS 17",
        "40 0 0 36",
        "21 0 PASS 4789",
        "32 0 0 46",
        "84 0 0 4294966784",
    ];
    lines.extend(own.map(str::to_owned));
    lines.push(format!("21 0 PASS {}", id << 8));
    lines.extend(test.iter().map(|&line| line.to_owned()));
    lines.extend(["6 0 0 2".to_owned(), "6 0 0 4294967295".to_owned()]);
    let pass = lines.len() - 1;
    let jump = |(at, line): (usize, &String)| {
        line.replace("PASS", &pass.saturating_sub(at + 1).to_string())
    };
    let lines: Vec<String> = lines.iter().enumerate().map(jump).collect();
    format!("{},{}", lines.len(), lines.join(","))
}
