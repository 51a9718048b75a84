//! Both layouts, both directions, against the plain driver.

use crate::driver::Driver;
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::VecDeque;
use vhost::{Chains, Features, Frame, HEADER_MAX, NetHeader, Payload, Refused, Unread, Vring};
use wire::Pattern;

/// A driver and a device on one ring.
fn pair((size, features, start): (u16, Features, u16)) -> (Driver, Vring) {
    let driver = Driver::starting_at(size, features, start);
    let mut device = driver.device();
    if start & 2 != 0 {
        device.take_for_far();
    }
    (driver, device)
}

/// Sizes, features and first indices, near the wrap-around more often than not.
fn rings() -> impl Strategy<Value = (u16, Features, u16)> {
    let features = (any::<bool>(), any::<bool>(), any::<bool>(), (any::<bool>(), any::<bool>()));
    (features, 0_u32..5, 1_u16..40, any::<u16>()).prop_map(
        |((packed, in_order, event, (mergeable, speaks)), log, odd, start)| {
            let mut features = Features::VERSION_1 | Features::INDIRECT_DESC;
            features.set(Features::RING_PACKED, packed);
            features.set(Features::IN_ORDER, in_order);
            features.set(Features::EVENT_IDX, event);
            features.set(Features::MRG_RXBUF, mergeable);
            features.set(Features::CSUM, speaks);
            let size = if packed { odd } else { 2 << log };
            let start = if packed { start % size } else { start | 0xff00 };
            (size, features, start)
        },
    )
}

/// Lengths of a buffer's pieces, and whether they are in a table of their own.
fn pieces() -> impl Strategy<Value = (Vec<u32>, bool)> {
    (vec(prop_oneof![1_u32..20, 64_u32..300], 1..6), any::<bool>())
}

/// Lengths of the pieces of a buffer, most often one, that holds a frame's bytes.
fn one_piece() -> impl Strategy<Value = Vec<u32>> {
    prop_oneof![9 => vec(prop_oneof![1_u32..20, 60_u32..420], 1), 1 => vec(20_u32..300, 2..4)]
}

/// Patterns by which one frame of [`pattern`] in a few is not like the others: a bit is as in one, and of two bytes some bit is set.
fn likes() -> impl Strategy<Value = Pattern> {
    (0_usize..34, 0_u32..8, 0_usize..33, any::<u8>()).prop_map(|(at, bit, some_at, one)| {
        let mut like = Pattern { value: [0; 64], mask: [0; 64], some: [0; 64] };
        like.mask[at] = 1 << bit;
        like.value[at] = pattern(one.into(), HEADER_MAX + 34)[HEADER_MAX + at] & 1 << bit;
        like.some[some_at..some_at + 2].fill(0x7e);
        like
    })
}

/// The same with room for a header.
fn with_header(pieces: &[u32]) -> Vec<u32> {
    let mut pieces = pieces.to_vec();
    pieces[0] += HEADER_MAX as u32;
    pieces
}

#[derive(Clone, Debug)]
enum Step {
    /// The driver offers a buffer.
    Offer(Vec<u32>, bool),
    /// The device takes up to so many, or a frame of this length comes for it.
    Serve(usize),
    /// The driver looks what came back.
    Reap,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let serve = prop_oneof![1_usize..8, 8_usize..900];
    let step = prop_oneof![
        4 => pieces().prop_map(|(pieces, indirect)| Step::Offer(pieces, indirect)),
        3 => serve.prop_map(Step::Serve),
        2 => Just(Step::Reap),
    ];
    vec(step, 1..120)
}

/// Bytes that tell one frame, and one place in it, from another.
fn pattern(number: usize, len: usize) -> Vec<u8> {
    (0..len).map(|at| (number * 31 + at * 7 + at / 256) as u8).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn what_the_driver_sends_is_taken_whole_and_in_order(ring in rings(), steps in steps()) {
        let (mut driver, mut device) = pair(ring);
        let (mut sent, mut outstanding, mut chains) = (VecDeque::new(), 0, Chains::default());
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                Step::Offer(pieces, indirect) => {
                    let frame = pattern(number, pieces.iter().sum::<u32>() as usize);
                    if driver.send(&frame, &pieces, indirect) {
                        sent.push_back(frame);
                        outstanding += 1;
                    }
                }
                Step::Serve(most) => {
                    let most = most.min(64);
                    let taken = device.take(most, &mut chains).unwrap();
                    prop_assert!(taken <= most && taken == chains.len());
                    prop_assert!(taken > 0 || sent.is_empty());
                    for index in 0..taken {
                        let mut frame: Vec<u8> = sent.pop_front().unwrap();
                        let mut header = [Features::empty(), Features::VERSION_1][most % 2];
                        header.set(Features::CSUM, most & 2 == 2);
                        let mut head = vec![0; most * 3];
                        match chains.take_head(index, header, &mut head) {
                            Some((number, len)) => {
                                head.truncate(len);
                                let bytes = number.bytes();
                                head.splice(..0, bytes[..header.header_len()].iter().copied());
                                if most & 2 == 0 {
                                    frame[..header.header_len()].fill(0); // what it says is not heard
                                }
                            }
                            None => {
                                prop_assert!(frame.len() < header.header_len());
                                head.truncate(frame.len());
                                chains.read(index, &mut head);
                            }
                        }
                        for slice in chains.slices(index) {
                            let mut part = vec![0; slice.len()];
                            slice.read(&mut part);
                            head.extend(part);
                        }
                        prop_assert_eq!(head, frame);
                    }
                    device.give_back();
                }
                Step::Reap => while let Some(bytes) = driver.reap() {
                    prop_assert!(bytes.is_empty());
                    outstanding -= 1;
                },
            }
        }
        while device.take(64, &mut chains).unwrap() > 0 {
            device.give_back();
        }
        while driver.reap().is_some() {
            outstanding -= 1;
        }
        prop_assert_eq!(outstanding, 0, "every buffer comes back");
    }

    #[test]
    fn heads_taken_in_runs_are_those_taken_one_by_one(
        ring in rings(),
        frames in vec((any::<bool>(), pieces()), 1..40),
    ) {
        let features = ring.1;
        let outcome = |in_runs: bool| {
            let (mut driver, mut device) = pair(ring);
            for (number, (is_plain, (pieces, indirect))) in frames.iter().enumerate() {
                let mut pieces = pieces.clone();
                pieces[0] += HEADER_MAX as u32;
                let mut bytes = pattern(number, pieces.iter().sum::<u32>() as usize);
                if *is_plain {
                    bytes[..2].fill(0);
                }
                driver.send(&bytes, &pieces, *indirect);
            }
            let mut chains = Chains::default();
            let taken = device.take(64, &mut chains).unwrap();
            let mut places = vec![([0; 48], None); taken];
            let mut index = 0;
            while index < taken {
                if in_runs {
                    index += chains.take_plain(
                        index,
                        features,
                        &mut places[index..],
                        |(head, _)| head,
                        |(_, told), at, head, body| *told = Some((at, head, body)),
                    );
                }
                let Some((head, told)) = places.get_mut(index) else { break };
                let (_, len) = chains.take_head(index, features, head).unwrap();
                *told = Some((index, len, chains.remaining(index)));
                index += 1;
            }
            let rest = |index| chains.slices(index).iter().fold(Vec::new(), |mut rest, slice| {
                let mut part = vec![0; slice.len()];
                slice.read(&mut part);
                rest.extend(part);
                rest
            });
            let rests: Vec<_> = (0..taken).map(rest).collect();
            (places, rests)
        };
        prop_assert_eq!(outcome(true), outcome(false));
    }

    #[test]
    fn frames_put_in_runs_arrive_as_those_put_one_by_one(
        ring in rings(),
        buffers in vec(pieces(), 0..40),
        lens in vec(1_usize..900, 0..40),
        ahead in 0_usize..40,
    ) {
        let frames: Vec<_> = lens.iter().enumerate().map(|(n, &len)| pattern(n, len)).collect();
        let frame = |bytes: &'_ [u8]| {
            let (head, body) = bytes.split_at(bytes.len() / 3);
            (head.to_vec(), body.to_vec())
        };
        let parts: Vec<_> = frames.iter().map(|bytes| frame(bytes)).collect();
        let frames = parts.iter().map(|(head, body)| Frame {
            head,
            body: Payload::Private(body),
            ..Frame::default()
        });
        let outcome = |in_runs: bool| {
            let (mut driver, mut device) = pair(ring);
            for (pieces, indirect) in &buffers {
                let mut pieces = pieces.clone();
                pieces[0] += HEADER_MAX as u32;
                driver.post(&pieces, *indirect);
            }
            device.reserve(ahead).unwrap();
            let (mut rest, mut refused) = (frames.clone(), Vec::new());
            loop {
                if in_runs {
                    let bodies = rest.clone().map(|frame| frame.body);
                    let put = device.put_run(rest.clone().map(|frame| frame.outline()), bodies);
                    let sent = rest.by_ref().take(put.frames).map(|frame| frame.len() as u64);
                    assert_eq!(sent.sum::<u64>(), put.bytes);
                }
                let Some(frame) = rest.next() else { break };
                refused.extend(device.put(frame).err().map(|why| (rest.len(), why)));
            }
            device.publish();
            let arrived: Vec<_> = std::iter::from_fn(|| driver.reap()).collect();
            (refused, arrived)
        };
        prop_assert_eq!(outcome(true), outcome(false));
    }

    #[test]
    fn frames_that_were_not_read_go_as_they_are_up_to_the_first_that_cannot(
        (from, to) in (rings(), rings()),
        frames in vec((prop::bool::weighted(0.9), one_piece()), 1..40),
        buffers in vec(one_piece(), 1..40),
        longest in 100_usize..400,
        like in prop::option::of(likes()),
    ) {
        let ((mut sender, mut source), (mut receiver, mut device)) = (pair(from), pair(to));
        let lengths = 14..=longest;
        let mut sent = Vec::new();
        for (number, (is_plain, pieces)) in frames.iter().enumerate() {
            let mut bytes = pattern(number, HEADER_MAX + pieces.iter().sum::<u32>() as usize);
            bytes[..2].fill(u8::from(!is_plain));
            let pieces = with_header(pieces);
            if sender.send(&bytes, &pieces, false) {
                let frame = bytes.split_off(HEADER_MAX);
                let is_heard = from.1.contains(Features::CSUM);
                let is_plain = *is_plain || !is_heard;
                let is_like = like.as_ref().is_none_or(|like| Vring::compares() && like.holds(&frame));
                let passes = is_plain && pieces.len() == 1 && lengths.contains(&frame.len()) && is_like;
                sent.push((passes, frame));
            }
        }
        let room: Vec<_> = buffers
            .iter()
            .map(|pieces| with_header(pieces))
            .filter(|pieces| receiver.post(pieces, false))
            .collect();
        let mut chains = Chains::default();
        let taken = source.take(64, &mut chains).unwrap();
        device.has_buffers(taken).unwrap();
        let fits = |frame: &[u8], pieces: &[u32]| pieces.len() == 1 && frame.len() + HEADER_MAX <= pieces[0] as usize;
        let passing = sent[..taken].iter().zip(&room)
            .take_while(|((passes, frame), pieces)| *passes && fits(frame, pieces));
        let unread = Unread::new(&chains, from.1);
        let put = match &like {
            None => device.put_unread(unread, &lengths),
            Some(like) => device.put_alike(unread, &lengths, like),
        };
        device.publish();
        // Of frames that are compared it may stop at one that it would copy in another way, or that ends in another page.
        let stops = passing.clone().nth(put.frames).is_some_and(|((_, frame), _)| like.is_some() && !(64..180).contains(&frame.len()));
        prop_assert!(stops || put.frames == passing.clone().count());
        let expected = passing.take(put.frames);
        prop_assert_eq!(put.bytes, expected.map(|((_, frame), _)| frame.len() as u64).sum::<u64>());
        for (_, frame) in &sent[..put.frames] {
            let arrived = receiver.reap().unwrap();
            let mut header = [0; HEADER_MAX];
            header[10] = 1;
            prop_assert_eq!(arrived, [&header[..], frame].concat());
        }
        prop_assert_eq!(receiver.reap(), None);
        // The others are still there to be read.
        for (index, (_, frame)) in sent[..taken].iter().enumerate().skip(put.frames) {
            let mut bytes = vec![0; HEADER_MAX + frame.len()];
            chains.read(index, &mut bytes);
            prop_assert_eq!(&bytes[HEADER_MAX..], frame);
        }
    }

    #[test]
    fn a_frame_is_put_exactly_if_there_is_room_and_arrives_whole(ring in rings(), steps in steps()) {
        let (mut driver, mut device) = pair(ring);
        let mergeable = ring.1.contains(Features::MRG_RXBUF);
        // Lengths of the buffers there, frames put, and how many buffers each took.
        let (mut room, mut put) = (VecDeque::new(), VecDeque::new());
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                Step::Offer(mut pieces, indirect) => {
                    // A header fits into every buffer; a driver that breaks this is among the attacks.
                    pieces[0] += HEADER_MAX as u32;
                    if driver.post(&pieces, indirect) {
                        room.push_back(pieces.iter().sum::<u32>() as usize);
                    }
                }
                Step::Serve(len) => {
                    let frame = pattern(number, len);
                    let mut header = [0; HEADER_MAX];
                    header[..10].copy_from_slice(&pattern(number + 1, 10));
                    let (head, body) = frame.split_at(len / 3);
                    let expected = buffers_for(&room, len + HEADER_MAX, mergeable);
                    match device.put(Frame { header: NetHeader::of(&header), head, body: Payload::Private(body) }) {
                        Ok(()) => {
                            let count = expected.unwrap();
                            room.drain(..count);
                            header[10..].copy_from_slice(&(count as u16).to_le_bytes());
                            put.push_back((count, [&header[..], &frame[..]].concat()));
                        }
                        Err(refused) => prop_assert_eq!(Err(refused), expected),
                    }
                    if number % 3 == 0 {
                        device.publish();
                    }
                }
                Step::Reap => {
                    device.publish();
                    reap_frames(&mut driver, &mut put);
                }
            }
        }
        device.publish();
        reap_frames(&mut driver, &mut put);
        prop_assert!(put.is_empty(), "every frame arrives");
    }

    /// Long enough for a device that has seen headers it need not write to meet some that it must, in all orders of the two.
    #[test]
    fn whatever_a_driver_leaves_in_its_headers_frames_arrive_with_their_own(
        (size, features, start) in rings(),
        stretches in vec((any::<bool>(), any::<bool>(), 1_usize..100), 1..12),
        len in 1_usize..700,
    ) {
        let is_index = !features.contains(Features::RING_PACKED) || start | 1 < size;
        let start = if is_index { start | 1 } else { start };
        let (mut driver, mut device) = pair((size, features, start));
        let frame = pattern(1, len);
        let (head, body) = frame.split_at(len / 3);
        for (number, (leaves, is_plain, batches)) in stretches.into_iter().enumerate() {
            let mut header = [0; HEADER_MAX];
            if !is_plain {
                header[..10].copy_from_slice(&pattern(number, 10));
            }
            let outline = Frame { header: NetHeader::of(&header), head, body: Payload::Private(body) };
            header[10] = 1;
            for _ in 0..batches {
                let mut posted = 0;
                while driver.post(&[HEADER_MAX as u32 + 700], false) {
                    posted += 1;
                    if !leaves {
                        driver.write_next_header(&[0xee; HEADER_MAX]);
                    }
                }
                let frames = vec![outline; posted];
                device.has_buffers(posted).unwrap();
                let put = device.put_run(frames.iter().map(Frame::outline), frames.iter().map(|frame| frame.body));
                device.publish();
                prop_assert_eq!(put.frames, posted);
                for _ in 0..posted {
                    prop_assert_eq!(driver.reap(), Some([&header[..], &frame[..]].concat()));
                }
            }
        }
    }

    #[test]
    fn nobody_sleeps_while_there_is_work(ring in rings(), steps in steps()) {
        let (mut driver, mut device) = pair(ring);
        let mut chains = Chains::default();
        let (mut driver_sleeps, mut device_sleeps) = (false, false);
        let (mut offered, mut taken, mut back) = (0, 0, 0);
        for step in steps {
            match step {
                Step::Offer(pieces, indirect) if !driver_sleeps => {
                    let frame = pattern(0, pieces.iter().sum::<u32>() as usize);
                    offered += usize::from(driver.send(&frame, &pieces, indirect));
                    if driver.kick_if_wanted() {
                        device_sleeps = false;
                    }
                    prop_assert!(!device_sleeps || taken == offered, "the device sleeps over a buffer");
                }
                Step::Serve(most) if !device_sleeps => {
                    match device.take(most.min(64), &mut chains).unwrap() {
                        0 => device_sleeps = device.arm(),
                        count => {
                            taken += count;
                            device.give_back();
                        }
                    }
                    if driver.drain_calls() && driver_sleeps {
                        driver_sleeps = false;
                        driver.wake();
                    }
                    prop_assert!(!driver_sleeps || back == taken, "the driver sleeps over a used buffer");
                }
                Step::Reap if !driver_sleeps => match driver.reap() {
                    Some(_) => back += 1,
                    None => driver_sleeps = driver.sleep(),
                },
                _ => {}
            }
        }
    }

    #[test]
    fn a_ring_that_is_stopped_and_started_goes_on_where_it_was(ring in rings(), steps in steps()) {
        let (mut driver, mut device) = pair(ring);
        let (mut sent, mut chains) = (VecDeque::new(), Chains::default());
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                Step::Offer(pieces, indirect) => {
                    let frame = pattern(number, pieces.iter().sum::<u32>() as usize);
                    if driver.send(&frame, &pieces, indirect) {
                        sent.push_back(frame);
                    }
                }
                Step::Serve(most) => {
                    for index in 0..device.take(most.min(64), &mut chains).unwrap() {
                        let mut bytes = vec![0; chains.remaining(index)];
                        chains.read(index, &mut bytes);
                        prop_assert_eq!(Some(bytes), sent.pop_front());
                    }
                    device.give_back();
                }
                Step::Reap => {
                    while driver.reap().is_some() {}
                    let base = device.base();
                    device = Vring::new(vhost::VringConfig { base, ..driver.config() }).unwrap();
                }
            }
        }
    }
}

/// How many of the buffers a frame takes, or why it is refused.
fn buffers_for(room: &VecDeque<usize>, total: usize, mergeable: bool) -> Result<usize, Refused> {
    let Some(&first) = room.front() else { return Err(Refused::Full) };
    if !mergeable {
        return if first >= total { Ok(1) } else { Err(Refused::TooSmall) };
    }
    let mut have = 0;
    for (index, len) in room.iter().enumerate() {
        have += len;
        if have >= total {
            return Ok(index + 1);
        }
    }
    Err(Refused::Full)
}

/// Puts frames together from the buffers that came back, as `num_buffers` says, and compares.
fn reap_frames(driver: &mut Driver, put: &mut VecDeque<(usize, Vec<u8>)>) {
    while let Some(mut bytes) = driver.reap() {
        let count = u16::from_le_bytes([bytes[10], bytes[11]]);
        for _ in 1..count {
            bytes.extend(driver.reap().expect("all buffers of a frame come back together"));
        }
        assert_eq!(put.pop_front(), Some((count.into(), bytes)));
    }
}

/// A batch of frames that is long enough to tell how far away the driver is does so, compared or not.
#[test]
fn the_drivers_distance_is_looked_at_whichever_way_frames_go() {
    const COUNT: usize = 32;
    let like = Pattern { value: [0; 64], mask: [0; 64], some: [0xff; 64] };
    let reach = |like: Option<&Pattern>| {
        let features = Features::VERSION_1 | Features::MRG_RXBUF;
        let [mut sender, mut receiver] = [(); 2].map(|()| Driver::new(COUNT as u16, features));
        let bytes = pattern(1, HEADER_MAX + 256);
        for _ in 0..COUNT {
            assert!(sender.send(&bytes, &[bytes.len() as u32], false));
            assert!(receiver.post(&[bytes.len() as u32], false));
        }
        let (mut source, mut device) = (sender.device(), receiver.device());
        let mut chains = Chains::default();
        assert_eq!(source.take(64, &mut chains), Ok(COUNT));
        device.reserve(COUNT).unwrap();
        let unread = Unread::new(&chains, features);
        let put = match like {
            None => device.put_unread(unread, &(14..=1514)),
            Some(like) => device.put_alike(unread, &(14..=1514), like),
        };
        assert_eq!(put.frames, if like.is_none() || Vring::compares() { COUNT } else { 0 });
        device.reach().is_some()
    };
    assert!(!Vring::compares() || reach(Some(&like)) == reach(None));
}
