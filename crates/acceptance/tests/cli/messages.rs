//! OpenFlow messages in a capture: of both versions, with their ends, beside frames.

use crate::capture::{begin, tshark};
use acceptance::{Kind, Lab, Ofctl, privileged, until};
use rustix::process::Signal;
use std::process::Command;

const PORT: u16 = 6633;

fn lab() -> Lab {
    let lab = Lab::running(&["g1", "g2"]);
    let listen = format!("ptcp:{PORT}:127.0.0.1");
    lab.suiro(&["switch", "add", "sw0", "--fail-mode", "secure", "--listen", &listen]);
    for guest in ["g1", "g2"] {
        lab.connect("sw0", guest, Kind::Tap);
    }
    lab.suiro(&["flow", "add", "sw0", "priority=1,actions=NORMAL"]);
    until("the guests talk", || lab.talk("g1", "g2"));
    lab
}

#[test]
fn messages_of_both_versions_stand_between_the_frames_and_are_dissected() {
    if !privileged() {
        return;
    }
    let lab = lab();
    let file = lab.path("messages.pcapng");
    let name = file.display().to_string();
    let capture = begin(&lab, &["openflow:sw0", "sw0:g1:rx", "controller:sw0", "-w", &name]);
    let ofctl = Ofctl::tcp(&lab, PORT);
    ofctl.run("add-flow", &["priority=7,udp,actions=drop"]);
    let frame = format!("ffffffffffff020000000099{}", "0800".to_owned() + &"00".repeat(50));
    let packet = format!("in_port=controller packet={frame} actions=output:1");
    ofctl.run("packet-out", &[&packet]);
    ofctl.speaking_1_0().run("dump-flows", &[]);
    Ofctl::management(&lab, "sw0").run("dump-groups", &[]);
    assert_eq!(lab.exchange("g1", "g2", 3), 3);
    let said = capture.end(Signal::INT);
    assert!(said.contains(" 0 lost for want of room"), "{said}");

    let fields = ["frame.interface_name", "frame.packet_flags_direction", "exported_pdu.dst_port"];
    let rows = tshark(&file, "openflow_v4.type == 14", &fields);
    let way = ["openflow:sw0", "0x00000001", &PORT.to_string()].map(str::to_owned);
    assert_eq!(rows, [way], "a flow-mod comes to the switch");
    assert!(!tshark(&file, "openflow_v4.type == 0", &fields).is_empty(), "hellos");
    let asked = tshark(
        &file,
        "openflow_1_0.type == 16",
        &["frame.comment", "exported_pdu.ipv4_src", "exported_pdu.ipv4_dst"],
    );
    assert!(asked[0][0].contains("message=stats_request version=1.0 xid="), "{asked:?}");
    assert_eq!(asked[0][1..], ["127.0.0.1", "127.0.0.1"]);
    let visits = "frame.comment contains \"peer=socket message=multipart_request\"";
    assert_eq!(tshark(&file, visits, &["frame.number"]).len(), 1, "the management socket");
    let out = tshark(&file, "frame.interface_name == \"controller:sw0\"", &fields[..2]);
    assert_eq!(out, [["controller:sw0", "0x00000001"]], "a packet-out comes to the switch");
    let requests = tshark(&file, "icmp.type == 8 && frame.packet_id", &fields[..1]);
    assert_eq!(requests.len(), 3, "frames are there as well");

    let times = tshark(&file, "frame", &["frame.time_epoch"]).concat();
    assert!(times.is_sorted(), "{times:?}");
    let all = Command::new("tshark").arg("-V").arg("-r").arg(&file).output().unwrap();
    assert!(all.status.success(), "{}", String::from_utf8_lossy(&all.stderr));
    assert!(!String::from_utf8_lossy(&all.stdout).contains("Malformed"));
    let refused = lab.says(&["capture", "openflow:nobody", "-w", "-"]);
    let cause = "capture point openflow:nobody: find it: there is no such point";
    assert!(refused.err.contains(cause), "{}", refused.err);
}

#[test]
fn a_capture_of_headers_alone_has_no_payload_of_packets_in_messages() {
    if !privileged() {
        return;
    }
    let lab = lab();
    let file = lab.path("heads.pcapng");
    let name = file.display().to_string();
    let capture = begin(&lab, &["openflow:sw0", "--payload", "0", "-w", &name]);
    // Ethernet, IPv4 and UDP take 42 bytes, and 30 are payload.
    let ip = "4500003a000000004011000a0a0000010a000002";
    let frame = format!("0200000000020200000000010800{ip}0007000900260000{}", "61".repeat(30));
    let packet = format!("in_port=controller packet={frame} actions=output:1");
    Ofctl::tcp(&lab, PORT).run("packet-out", &[&packet]);
    capture.end(Signal::INT);
    let rows = tshark(&file, "openflow_v4.type == 13", &["frame.len", "frame.cap_len"]);
    let [len, kept] = [0, 1].map(|at| rows[0][at].parse::<u32>().unwrap());
    assert_eq!((rows.len(), len - kept), (1, 30));
}
