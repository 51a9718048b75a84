//! Any bytes to the receiving side of ESP: as a datagram, which no one without the key can make right, and, sealed with the key, as what is
//! inside: payload, padding and next header. Nothing panics, lengths lie in the packet, and a second time is refused.
#![no_main]

use esp::{Envelope, Inbound, Inbounds, Key, Mode, Refusal, udp};
use libfuzzer_sys::fuzz_target;
use ring::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use std::sync::Arc;

const SPI: u32 = 0x1001;
const KEY: [u8; 20] = [0x5a; 20];

fuzz_target!(|bytes: &[u8]| {
    let mode = if bytes.len() % 2 == 0 { Mode::Transport } else { Mode::Tunnel };
    as_datagram(bytes, mode);
    as_plaintext(bytes, mode);
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = esp::keys::parse(text);
    }
});

fn receiver(mode: Mode) -> Inbounds {
    let key = Key::new(&KEY).expect("twenty bytes");
    Inbounds::new(vec![Arc::new(Inbound::new(SPI, &key, true, mode, 0))])
}

/// The bytes themselves, and with an SPI that is known.
fn as_datagram(bytes: &[u8], mode: Mode) {
    let inbounds = receiver(mode);
    let _ = udp::classify(bytes);
    assert!(inbounds.open(&mut bytes.to_vec()).is_err());
    let known = [&SPI.to_be_bytes()[..], bytes].concat();
    assert!(inbounds.open(&mut known.clone()).is_err());
    assert_eq!(inbounds.find(SPI).expect("it is there").top(), 0, "no window moves");
}

/// The packet whose decrypted part the bytes are.
fn as_plaintext(bytes: &[u8], mode: Mode) {
    let inbounds = receiver(mode);
    let packet = sealed(bytes);
    let mut copy = packet.clone();
    match inbounds.open(&mut copy) {
        Ok(opened) => {
            assert!(16 <= opened.payload.start && opened.payload.end <= packet.len() - 18);
            assert_eq!(inbounds.open(&mut packet.clone()), Err(Refusal::Replayed));
            let payload = &copy[opened.payload];
            for (local, remote) in [("192.0.2.1", "192.0.2.2"), ("2001:db8::1", "2001:db8::2")] {
                let [local, remote] = [local, remote].map(|address| address.parse().expect("an address"));
                let envelope = Envelope { mode, local, remote, port: 4789 };
                if let Ok(contents) = envelope.read(opened.next_header, payload) {
                    assert!(contents.vxlan.start <= contents.vxlan.end && contents.vxlan.end <= payload.len());
                }
            }
        }
        Err(reason) => assert!(matches!(reason, Refusal::Truncated | Refusal::BadPadding), "{reason}"),
    }
}

fn sealed(plaintext: &[u8]) -> Vec<u8> {
    let key = LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &KEY[..16]).expect("sixteen bytes"));
    let mut packet = [&SPI.to_be_bytes()[..], &[0, 0, 0, 1], &[7; 8]].concat();
    let nonce = [&KEY[16..], &[7; 8]].concat().try_into().expect("twelve bytes");
    let associated = [&packet[..4], &1u64.to_be_bytes()].concat();
    let mut body = plaintext.to_vec();
    key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(associated), &mut body)
        .expect("short");
    packet.extend(body);
    packet
}
