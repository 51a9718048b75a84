//! Any bytes as a stream and as a message, and as the body of one of steering's: nothing panics, and what is read is written and read
//! again as the same value.
#![no_main]

use libfuzzer_sys::fuzz_target;
use openflow::steering::{self, Reply, Request};
use openflow::{Experimenter, Message, MultipartReply, MultipartRequest, Part, Version, encode_reply, next_frame};

fuzz_target!(|stream: &[u8]| {
    if let Ok(Some(frame)) = next_frame(stream) {
        assert!(stream.starts_with(frame));
    }
    // The declared length is made right and the version known, so that most inputs get past the envelope: 1.0 where the input
    // says so, else 1.3.
    let mut bytes = stream[..stream.len().min(65_535)].to_vec();
    if bytes.len() >= 8 {
        let len = bytes.len() as u16;
        bytes[2..4].copy_from_slice(&len.to_be_bytes());
        bytes[0] = Version::from_wire(bytes[0]).unwrap_or(Version::V1_3).wire();
    }
    let Ok((header, message)) = Message::decode(&bytes) else { return };
    let version = header.known_version().expect("made known above");
    let again = message.encode(version, header.xid).expect("no longer than what was read");
    assert_eq!(Message::decode(&again).map(|(_, message)| message).as_ref(), Ok(&message));
    check(&message);
    match &message {
        Message::Experimenter(body) => steering_message(body),
        Message::MultipartRequest(Part { body: MultipartRequest::Experimenter(body), .. }) => steering_request(body),
        Message::MultipartReply(Part { body: MultipartReply::Experimenter(body), .. }) => steering_reply(body),
        _ => {}
    }
    if let Message::MultipartReply(part) = &message {
        parts_hold_the_whole(version, part);
    }
});

fn steering_message(body: &Experimenter) {
    let Ok(message) = steering::Message::decode(body) else { return };
    assert_eq!(steering::Message::decode(&message.encode()).as_ref(), Ok(&message));
    if let steering::Message::PlaceMod(change) = &message {
        let _ = change.check();
    }
}

fn steering_request(body: &Experimenter) {
    let Ok(request) = Request::decode(body) else { return };
    assert_eq!(Request::decode(&request.encode()), Ok(request));
}

fn steering_reply(body: &Experimenter) {
    let Ok(reply) = Reply::decode(body) else { return };
    let again = reply.encode().expect("it came in one message");
    assert!(again.iter().all(|body| Reply::decode(body).is_ok()));
    if let [one] = &again[..] {
        assert_eq!(Reply::decode(one), Ok(reply));
    }
}

/// Checking refuses or accepts, whatever was read.
fn check(message: &Message) {
    let _ = match message {
        Message::FlowMod(flow) => flow.check(),
        Message::GroupMod(group) => group.check(),
        Message::MeterMod(meter) => meter.check(),
        Message::PacketOut(packet) => packet.check(),
        _ => Ok(()),
    };
}

/// A reply that came as one message is cut into one message.
fn parts_hold_the_whole(version: Version, part: &Part<MultipartReply>) {
    let parts = encode_reply(version, 1, &part.body, part.more).expect("it came as one message");
    assert_eq!(parts.len(), 1);
    let (_, message) = Message::decode(&parts[0]).expect("our own encoding");
    assert_eq!(message, Message::MultipartReply(part.clone()));
}
