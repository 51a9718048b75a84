//! A conversation of many flows whose frames are numbered, and say by which rule they may come.
//!
//! Guest g1 has a socket for each pair, and so has g2. In each round g1 sends a burst from every socket, and g2 answers every burst with one
//! frame; two rounds are under way. So no queue overflows, and whatever is missing was lost on the way.
//!
//! A rule writes its generation into the DSCP. A frame carries the generation whose barrier was answered before it was sent: an older one in
//! its DSCP is a frame of an old rule. Nothing that a guest hashes differs from rule to rule: a guest that steers what it receives takes a
//! flow's frames to another core when their addresses change, and there later ones may come first.

use acceptance::{Place, inside, until_within};
use rustix::net::{AddressFamily, SocketType, ipproto, socket, sockopt};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread::ScopedJoinHandle;
use std::time::Duration;

/// Frames of a burst. Two rounds of 32 pairs are fewer than a veth's ring holds (256), however late a guest polls it. With 8 a burst they were
/// 512, the rest was dropped as `tx_full`, and the talk stopped: nobody sends a frame again.
pub const BURST: u64 = 3;
/// Bytes of each before what it is filled up with: Ethernet, IPv4, UDP, number, generation and last round.
const LEN: usize = 14 + IP + UDP + 24;
/// What frames are filled up with, by turns: each rung counts bytes, not frames of one length. Longer ones fill the sockets of a worker whose guest
/// a loaded machine lets wait, and are dropped as `tx_full`.
const FILLED: [usize; 5] = [0, 1, 17, 40, 64];
/// Rules before they use a DSCP again: all that there are.
pub const GENERATIONS: u64 = 64;
/// Each pair's port at both ends, from here on.
pub const FIRST_PORT: u16 = 20_000;
/// Room for all frames under way: 2 rounds, a page for each.
const ROOM: usize = 8 << 20;
/// Nothing is so long under way: what is not there by then is lost.
const PATIENCE: Duration = Duration::from_secs(20);

/// Where it stands.
#[derive(Default)]
pub struct Talk {
    pairs: u64,
    /// The generation whose barrier was answered last.
    pub generation: AtomicU64,
    /// Rounds that were answered.
    pub rounds: AtomicU64,
    /// Pairs that say nothing before the last round, a bit each.
    pub silent: AtomicU64,
    ends: AtomicBool,
}

/// What came of frames in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    pub sent: u64,
    /// Their bytes, Ethernet headers included.
    pub bytes: u64,
    pub lost: u64,
    /// Frames that came after a later one, or twice.
    pub disordered: u64,
    /// Frames of a rule that another one had replaced, barrier answered, before they were sent.
    pub of_old_rules: u64,
}

/// A frame's own words.
struct Words {
    number: u64,
    generation: u64,
    is_last: bool,
}

impl Words {
    fn bytes(&self) -> [u8; 24] {
        let words = [self.number, self.generation, self.is_last.into()].map(u64::to_be_bytes);
        words.concat().try_into().unwrap()
    }

    fn read(bytes: &[u8; 24]) -> Self {
        let word = |at: usize| u64::from_be_bytes(bytes[8 * at..][..8].try_into().unwrap());
        Self { number: word(0), generation: word(1), is_last: word(2) == 1 }
    }
}

/// One end of a pair.
struct End {
    /// What it sends; what comes for it a [`Side`] hears.
    socket: UdpSocket,
    to: SocketAddr,
    sent: u64,
    bytes: u64,
    heard: u64,
    next: u64,
}

impl End {
    fn new((here, there): (Ipv4Addr, Ipv4Addr), port: u16) -> Self {
        let socket = UdpSocket::bind((here, port)).unwrap();
        Self { socket, to: (there, port).into(), sent: 0, bytes: 0, heard: 0, next: 0 }
    }

    fn send(&mut self, talk: &Talk, is_last: bool) {
        let words = Words { number: self.sent, generation: talk.generation.load(SeqCst), is_last };
        let filled = FILLED[self.sent as usize % FILLED.len()];
        let frame = [&words.bytes()[..], &vec![0; filled]].concat();
        self.socket.send_to(&frame, self.to).unwrap();
        self.sent += 1;
        self.bytes += (LEN + filled) as u64;
    }
}

/// One guest's ends.
struct Side {
    ends: Vec<End>,
    /// Gets IP packets whole: no other socket tells their DSCP.
    ear: UdpSocket,
    disordered: u64,
    of_old_rules: u64,
}

/// A frame that came.
struct Heard {
    pair: usize,
    /// How many of its pair have come.
    of_pair: u64,
    is_last: bool,
}

impl Side {
    fn new(pairs: u64, addresses: (Ipv4Addr, Ipv4Addr)) -> Self {
        let ear = socket(AddressFamily::INET, SocketType::RAW, Some(ipproto::UDP)).unwrap();
        sockopt::set_socket_recv_buffer_size_force(&ear, ROOM).unwrap();
        let ear = UdpSocket::from(ear);
        ear.set_read_timeout(Some(PATIENCE)).unwrap();
        let ends = (0..pairs).map(|pair| End::new(addresses, FIRST_PORT + pair as u16)).collect();
        Self { ends, ear, disordered: 0, of_old_rules: 0 }
    }

    /// Takes a frame. `None`: none came.
    fn hear(&mut self) -> Option<Heard> {
        let mut packet = [0; 1500];
        let len = self.ear.recv(&mut packet).ok()?;
        let port = u16::from_be_bytes([packet[IP + 2], packet[IP + 3]]);
        let pair = usize::from(port - FIRST_PORT);
        let words = Words::read(packet[IP + UDP..].first_chunk().unwrap());
        assert_eq!(len, LEN - 14 + FILLED[words.number as usize % FILLED.len()]);
        let end = &mut self.ends[pair];
        self.disordered += u64::from(words.number < end.next);
        self.of_old_rules += u64::from(is_of_old_rule(packet[1] >> 2, words.generation));
        end.next = end.next.max(words.number + 1);
        end.heard += 1;
        Some(Heard { pair, of_pair: end.heard, is_last: words.is_last })
    }

    fn sum(&self, of: impl Fn(&End) -> u64) -> u64 {
        self.ends.iter().map(of).sum()
    }
}

const IP: usize = 20;
const UDP: usize = 8;

/// Whether a frame bears the DSCP of a rule that is older than one that it knew of. Without rules of this kind it bears generation 0's.
fn is_of_old_rule(dscp: u8, generation: u64) -> bool {
    let ahead = (u64::from(dscp) + GENERATIONS - generation % GENERATIONS) % GENERATIONS;
    ahead >= GENERATIONS / 2
}

const G1: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const G2: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

/// A talk under way: who sends bursts, and who answers. It ends with this value, also by a panic.
pub struct UnderWay<'s> {
    bursting: ScopedJoinHandle<'s, Side>,
    answering: ScopedJoinHandle<'s, Side>,
    ends: EndsIt<'s>,
}

struct EndsIt<'s>(&'s AtomicBool);

impl Drop for EndsIt<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

impl UnderWay<'_> {
    /// Ends it; what came of each direction: bursts, answers.
    pub fn end(self) -> [Seen; 2] {
        drop(self.ends);
        let (bursting, answering) = (self.bursting.join().unwrap(), self.answering.join().unwrap());
        [(&bursting, &answering), (&answering, &bursting)].map(|(from, to)| Seen {
            sent: from.sum(|end| end.sent),
            bytes: from.sum(|end| end.bytes),
            lost: from.sum(|end| end.sent).saturating_sub(to.sum(|end| end.heard)),
            disordered: to.disordered,
            of_old_rules: to.of_old_rules,
        })
    }
}

impl Talk {
    pub fn of(pairs: u64) -> Self {
        Self { pairs, ..Self::default() }
    }

    /// Waits until so many more rounds were answered.
    pub fn goes_on(&self, rounds: u64) {
        let before = self.rounds.load(SeqCst);
        until_within(super::PATIENCE, "the talk goes on", || {
            self.rounds.load(SeqCst) >= before + rounds
        });
    }

    /// Begins it.
    pub fn begin<'s>(
        &'s self,
        scope: &'s std::thread::Scope<'s, '_>,
        place: &Place,
    ) -> UnderWay<'s> {
        let [g1, g2] = ["g1", "g2"].map(|guest| place.guest(guest));
        // Bound before the first burst is sent.
        let answering = inside(&g2, || Side::new(self.pairs, (G2, G1)));
        let answering = scope.spawn(move || self.answer(answering));
        let bursting = inside(&g1, || Side::new(self.pairs, (G1, G2)));
        let bursting = scope.spawn(move || self.burst(bursting));
        UnderWay { bursting, answering, ends: EndsIt(&self.ends) }
    }

    fn burst(&self, mut side: Side) -> Side {
        let (mut is_last, mut asked) = (false, None);
        while !is_last {
            is_last = self.ends.load(SeqCst);
            let silent = if is_last { 0 } else { self.silent.load(SeqCst) };
            let talks = |pair: usize| silent >> pair & 1 == 0;
            let mut asks = 0;
            for (_, end) in side.ends.iter_mut().enumerate().filter(|(pair, _)| talks(*pair)) {
                (0..BURST).for_each(|_| end.send(self, is_last));
                asks += 1;
            }
            if let Some(before) = asked.replace(asks) {
                self.hear_answers(&mut side, before);
            }
        }
        self.hear_answers(&mut side, asked.unwrap_or(0));
        side
    }

    /// A round's answers, or as many of later ones.
    fn hear_answers(&self, side: &mut Side, asked: u64) {
        let heard = (0..asked).map_while(|_| side.hear()).count() as u64;
        assert_eq!(heard, asked, "answers that came within {PATIENCE:?}");
        self.rounds.fetch_add(1, SeqCst);
    }

    /// Answers until all pairs have said that it is the last burst, or nobody says anything.
    fn answer(&self, mut side: Side) -> Side {
        let mut talking = self.pairs;
        while talking > 0
            && let Some(heard) = side.hear()
        {
            if heard.of_pair % BURST == 0 {
                side.ends[heard.pair].send(self, heard.is_last);
                talking -= u64::from(heard.is_last);
            }
        }
        side
    }
}
