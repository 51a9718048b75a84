//! Auxiliary connections by TLS (OpenFlow 1.3.5 §6.3.7).

use crate::certificates::make_certificates;
use crate::controller::{Called, TlsController, add_switch, endpoint};
use acceptance::{Kind, Lab, privileged, send_datagrams, until};
use openflow::Message;
use std::io::{ErrorKind, Read};

const DATAGRAMS: usize = 20;

fn auxiliary_id(session: &mut Called) -> u8 {
    match session.ask(&Message::FeaturesRequest) {
        Message::FeaturesReply(features) => features.auxiliary_id,
        other => panic!("{other:?}"),
    }
}

/// Packet-ins sent by the connection of this number.
fn packet_ins(lab: &Lab, auxiliary: u8) -> usize {
    let connections = lab.json(&["switch", "show", "sw0"])["connections"].clone();
    let found = connections.as_array().unwrap().iter().find(|peer| peer["auxiliary"] == auxiliary);
    found.unwrap()["packet_ins"].as_u64().unwrap() as usize
}

/// Whether the switch has ended the connection, once all that came before is read.
fn is_ended(mut session: Called) -> bool {
    let mut rest = Vec::new();
    match session.stream.read_to_end(&mut rest) {
        Ok(_) => true,
        Err(error) => matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset),
    }
}

#[test]
fn auxiliary_connections_come_by_tls_carry_the_packet_ins_and_end_with_the_main_one() {
    if !privileged() {
        return;
    }
    let lab = Lab::running(&["g1"]);
    make_certificates(&lab);
    let controller = TlsController::wait(&lab);
    add_switch(&lab, &["--fail-mode", "secure", "--aux", "2"]);
    let mut main = controller.accept();
    assert_eq!(auxiliary_id(&mut main), 0);
    let mut others = [controller.accept(), controller.accept()];
    // They are made side by side.
    if auxiliary_id(&mut others[0]) == 2 {
        others.swap(0, 1);
    }
    assert_eq!(others.each_mut().map(auxiliary_id), [1, 2]);
    until("the switch counts both", || endpoint(&lab)["auxiliary"] == 2);

    lab.connect("sw0", "g1", Kind::Tap);
    lab.introduce("g1", "n99");
    lab.suiro(&["flow", "add", "sw0", "udp,actions=CONTROLLER:65535"]);
    send_datagrams(&lab, "g1", &format!("{}:9", Lab::ip("n99")), (DATAGRAMS, 100));
    until("all are sent", || packet_ins(&lab, 1) + packet_ins(&lab, 2) == DATAGRAMS);
    assert_eq!(packet_ins(&lab, 0), 0);
    for (session, number) in others.iter_mut().zip([1, 2]) {
        for _ in 0..packet_ins(&lab, number) {
            session.next(|_, message| matches!(message, Message::PacketIn(_)));
        }
    }
    drop(main);
    assert!(others.map(is_ended) == [true; 2]);
}
