//! Packets: published vectors, and what must hold of any.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

use esp::{Counters, HEADER, Inbound, Inbounds, Key, Mode, Outbound, Refusal, sealed_len};
use proptest::prelude::*;
use std::sync::Arc;

fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

/// A test case of draft-mcgrew-gcm-test-01, "Test Cases for the use of GCM and GMAC in IPsec ESP", section 4.
struct Vector {
    key: &'static str,
    salt: &'static str,
    spi: u32,
    sequence: u64,
    has_esn: bool,
    iv: u64,
    /// Payload without padding, pad length and next header.
    payload: &'static str,
    next_header: u8,
    /// Ciphertext and ICV.
    sealed: &'static str,
}

const VECTORS: [Vector; 2] = [
    // The draft's first case: AES-128, 64-bit sequence numbers.
    Vector {
        key: "4c80cdefbb5d10da906ac73c3613a634",
        salt: "2e443b68",
        spi: 0x4321,
        sequence: 0x8765_4321_0000_0000,
        has_esn: true,
        iv: 0x4956_ed7e_3b24_4cfe,
        payload: "45000048699a000080114db7c0a80102c0a801010a9bf15638d3010000010000\
                  00000000045f736970045f756470037369700963796265726369747902646b00\
                  0021000101020201",
        next_header: 0,
        sealed: "fecf537e729d5b07dc30df528dd22b768d1b98736696a6fd348509fa13ceac34\
                 cfa2436f14a3f3cf65925bf1f4a13c5d15b21e1884f5ff6247aeabb786b93bce\
                 61bc17d768fd9732459018148f6cbe722fd04796562dfdb4",
    },
    // AES-256, 32-bit sequence numbers.
    Vector {
        key: "abbccddef00112233445566778899aababbccddef00112233445566778899aab",
        salt: "11223344",
        spi: 0x4a2c_bfe3,
        sequence: 2,
        has_esn: false,
        iv: 0x0102_0304_0506_0708,
        payload: "4500003069a6400080062690c0a801029389155e0a9e008b2dc57ee000000000\
                  7002400020bf0000020405b40101040201020201",
        next_header: 0,
        sealed: "ff425c9b724599df7a3bcd510194e00d6a78107f1b0b1cbf06efae9d65a5d763\
                 748a637985771d347f0545659f14e99def842d8eb335f4eecfdbf831824b4c49\
                 15956c96",
    },
];

impl Vector {
    fn key(&self) -> Key {
        Key::new(&unhex(&[self.key, self.salt].concat())).unwrap()
    }

    /// The payload, and the next header behind it: the vectors' plaintexts end with padding 1, 2 and a trailer (2, 1).
    fn plain(&self) -> (Vec<u8>, u8) {
        let mut plain = unhex(self.payload);
        let next_header = plain.pop().unwrap();
        let padding = plain.pop().unwrap();
        plain.truncate(plain.len() - usize::from(padding));
        (plain, next_header + self.next_header)
    }

    fn packet(&self) -> Vec<u8> {
        let header = [self.spi.to_be_bytes(), (self.sequence as u32).to_be_bytes()].concat();
        [header, self.iv.to_be_bytes().to_vec(), unhex(self.sealed)].concat()
    }
}

#[test]
fn published_packets_are_sealed_and_opened() {
    for vector in VECTORS {
        let first = Counters { sequence: vector.sequence, iv: vector.iv };
        let outbound = Outbound::new(vector.spi, &vector.key(), vector.has_esn, first);
        outbound.allow(outbound.after(1));
        let (payload, next_header) = vector.plain();
        let mut packet = vec![0; sealed_len(payload.len())];
        packet[HEADER..HEADER + payload.len()].copy_from_slice(&payload);
        outbound.seal(&mut packet, payload.len(), next_header).unwrap();
        assert_eq!(packet, vector.packet());
        let inbound = Inbound::new(
            vector.spi,
            &vector.key(),
            vector.has_esn,
            Mode::Tunnel,
            vector.sequence - 1,
        );
        let opened = inbound.open(&mut packet).unwrap();
        assert_eq!((opened.next_header, &packet[opened.payload]), (next_header, &payload[..]));
    }
}

/// Two ends that know nothing of each other yet but the key.
fn ends(has_esn: bool, first: u64) -> (Outbound, Inbound) {
    let key = || Key::new(&[0x5a; 20]).unwrap();
    let outbound = Outbound::new(0x1001, &key(), has_esn, Counters { sequence: first, iv: 77 });
    outbound.allow(outbound.after(1 << 20));
    (outbound, Inbound::new(0x1001, &key(), has_esn, Mode::Transport, first - 1))
}

fn sealed(outbound: &Outbound, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0; sealed_len(payload.len())];
    packet[HEADER..HEADER + payload.len()].copy_from_slice(payload);
    outbound.seal(&mut packet, payload.len(), 17).unwrap();
    packet
}

proptest! {
    #[test]
    fn what_was_sealed_is_opened_once(payload in prop::collection::vec(any::<u8>(), 0..300), has_esn: bool) {
        let (outbound, inbound) = ends(has_esn, 1);
        let packet = sealed(&outbound, &payload);
        prop_assert!(payload.len() < 8 || !packet.windows(payload.len()).any(|window| window == payload));
        let mut copy = packet.clone();
        let opened = inbound.open(&mut copy).unwrap();
        prop_assert_eq!((opened.next_header, &copy[opened.payload]), (17, &payload[..]));
        prop_assert_eq!(inbound.open(&mut packet.clone()), Err(Refusal::Replayed));
    }

    #[test]
    fn a_packet_with_any_bit_flipped_is_refused_and_moves_no_window(len in 0..40usize, has_esn: bool, flip: prop::sample::Index) {
        let (outbound, inbound) = ends(has_esn, 1);
        let packet = sealed(&outbound, &vec![9; len]);
        let bit = flip.index(8 * packet.len());
        let mut broken = packet.clone();
        broken[bit / 8] ^= 1 << (bit % 8);
        let inbounds = Inbounds::new(vec![Arc::new(inbound)]);
        prop_assert!(inbounds.open(&mut broken).is_err());
        prop_assert_eq!(inbounds.find(0x1001).unwrap().top(), 0);
        prop_assert!(inbounds.open(&mut packet.clone()).is_ok());
    }

    #[test]
    fn a_packet_that_is_cut_or_longer_is_refused(len in 0..40usize, cut in 0..60usize, more in 1..9usize) {
        let (outbound, inbound) = ends(true, 1);
        let packet = sealed(&outbound, &vec![9; len]);
        let inbounds = Inbounds::new(vec![Arc::new(inbound)]);
        let mut short = packet[..cut.min(packet.len() - 1)].to_vec();
        prop_assert!(inbounds.open(&mut short).is_err());
        let mut long = [&packet[..], &vec![0; more]].concat();
        prop_assert!(inbounds.open(&mut long).is_err());
    }

    #[test]
    fn packets_in_any_order_are_opened_once_each_across_2_to_the_32(
        order in prop::collection::vec(0..64usize, 1..200),
        before in 0..80u64,
    ) {
        let (outbound, inbound) = ends(true, (1 << 32) - before);
        let packets: Vec<_> = (0..64).map(|number: u8| sealed(&outbound, &[number])).collect();
        let mut seen = [false; 64];
        for number in order {
            let opened = inbound.open(&mut packets[number].clone());
            prop_assert_eq!(opened.is_ok(), !seen[number], "packet {}: {:?}", number, opened);
            seen[number] = true;
        }
    }
}

#[test]
fn packets_are_refused_for_what_is_wrong_with_them_and_counted() {
    let (outbound, inbound) = ends(false, 1);
    let first = sealed(&outbound, b"first");
    (0..4200).for_each(|_| assert!(inbound.open(&mut sealed(&outbound, b"")).is_ok()));
    assert_eq!(inbound.open(&mut first.clone()), Err(Refusal::TooOld));
    let mut wrong = sealed(&outbound, b"");
    wrong[20] ^= 1;
    assert_eq!(inbound.open(&mut wrong), Err(Refusal::BadIcv));
    assert_eq!(inbound.open(&mut [0; 33]), Err(Refusal::Truncated));
    assert_eq!(
        inbound.open(&mut sealed(&outbound, b"last")).map(|opened| opened.payload),
        Ok(16..20)
    );
    let counts = inbound.counts();
    assert_eq!(counts.packets, 4201);
    assert_eq!(counts.refused, [0, 0, 1, 1, 1, 0, 0]);
    let inbounds = Inbounds::new(vec![Arc::new(inbound)]);
    assert_eq!(inbounds.open(&mut [7; 60]), Err(Refusal::UnknownSpi));
    assert_eq!(inbounds.open(&mut [7; 3]), Err(Refusal::Truncated));
}

#[test]
fn with_esn_an_old_packet_is_taken_for_one_of_the_next_2_to_the_32_and_its_icv_is_wrong() {
    let (outbound, inbound) = ends(true, 1);
    let first = sealed(&outbound, b"first");
    (0..4200).for_each(|_| assert!(inbound.open(&mut sealed(&outbound, b"")).is_ok()));
    assert_eq!(inbound.open(&mut first.clone()), Err(Refusal::BadIcv));
    assert_eq!(inbound.top(), 4201);
}

#[test]
fn authentic_padding_that_does_not_count_is_refused() {
    let (outbound, inbound) = ends(true, 1);
    // The packet of an empty payload has two bytes more behind it: a pad length of 1 or 200, and a next header.
    for (padding, expected) in
        [([7, 1], Err(Refusal::BadPadding)), ([0, 200], Err(Refusal::BadPadding)), ([1, 1], Ok(17))]
    {
        let mut packet = sealed(&outbound, &[]);
        let rebuilt = reseal(&mut packet, padding);
        assert_eq!(inbound.open(rebuilt).map(|opened| opened.next_header), expected);
    }
}

/// The same packet with another plaintext: a byte of padding, a pad length, and next header 17. It is the one that the counter mode makes of
/// it; its ICV is right because it is computed with the same library.
fn reseal(packet: &mut Vec<u8>, [pad, len]: [u8; 2]) -> &mut [u8] {
    use ring::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
    let key = LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &[0x5a; 16]).unwrap());
    let mut nonce = [0x5a; 12];
    nonce[4..].copy_from_slice(&packet[8..16]);
    let sequence = u32::from_be_bytes(packet[4..8].try_into().unwrap());
    let associated = [&packet[..4], &u64::from(sequence).to_be_bytes()].concat();
    packet.truncate(16);
    let mut plain = vec![0xab, pad, len, 17];
    key.seal_in_place_append_tag(
        Nonce::assume_unique_for_key(nonce),
        Aad::from(associated),
        &mut plain,
    )
    .unwrap();
    packet.extend(plain);
    packet
}

#[test]
fn a_receiver_that_was_restarted_goes_on_where_it_noted_and_refuses_what_was_before() {
    let (outbound, inbound) = ends(true, 5 << 32);
    let old = sealed(&outbound, b"old");
    assert!(inbound.open(&mut old.clone()).is_ok());
    let key = Key::new(&[0x5a; 20]).unwrap();
    let again = Inbound::new(0x1001, &key, true, Mode::Transport, inbound.top());
    assert_eq!(again.open(&mut old.clone()), Err(Refusal::Replayed));
    assert!(again.open(&mut sealed(&outbound, b"new")).is_ok());
    let forgetful = Inbound::new(0x1001, &key, true, Mode::Transport, 0);
    assert_eq!(forgetful.open(&mut sealed(&outbound, b"")), Err(Refusal::BadIcv));
}

#[test]
fn nothing_that_can_be_printed_holds_a_key() {
    let (outbound, inbound) = ends(true, 1);
    for text in [format!("{outbound:?}"), format!("{inbound:?}")] {
        assert!(!text.to_lowercase().contains("5a5a") && !text.contains("90, 90"), "{text}");
    }
}
