//! A conversation of many flows whose frames are numbered, and say by which rule they may come.
//!
//! Guest g1 has a socket for each pair, and so has g2. In each round g1 sends a burst from every socket, and g2 answers every burst with one
//! frame; two rounds are under way. So no queue overflows, and whatever is missing was lost on the way. A rule writes its generation into the
//! source address. A frame carries the generation whose barrier was answered before it was sent: an older one in its address is a frame of an
//! old rule.

use acceptance::{Place, inside};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread::ScopedJoinHandle;
use std::time::Duration;

/// Frames of a burst.
pub const BURST: u64 = 8;
/// Bytes of each: Ethernet, IPv4, UDP, number, generation and last round.
pub const LEN: u64 = 14 + 20 + 8 + 24;
/// Rules before they use an address again.
pub const GENERATIONS: u64 = 100;
/// Source addresses that rules write: 10.0.0.100 and on.
pub const FIRST_ADDRESS: u64 = 100;
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
    ends: AtomicBool,
}

/// What came of frames in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    pub sent: u64,
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
    socket: UdpSocket,
    to: SocketAddr,
    sent: u64,
    next: u64,
    seen: Seen,
}

impl End {
    fn new((here, there): (Ipv4Addr, Ipv4Addr), port: u16) -> Self {
        let socket = UdpSocket::bind((here, port)).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { socket, to: (there, port).into(), sent: 0, next: 0, seen: Seen::default() }
    }

    fn send(&mut self, talk: &Talk, is_last: bool) {
        let words = Words { number: self.sent, generation: talk.generation.load(SeqCst), is_last };
        self.socket.send_to(&words.bytes(), self.to).unwrap();
        self.sent += 1;
    }

    /// Takes a frame; whether it is of the last round. `None`: none came.
    fn take(&mut self) -> Option<bool> {
        let mut bytes = [0; 24];
        let Ok((_, from)) = self.socket.recv_from(&mut bytes) else {
            self.seen.lost += 1;
            return None;
        };
        let words = Words::read(&bytes);
        if words.number < self.next {
            self.seen.disordered += 1;
        } else {
            self.seen.lost += words.number - self.next;
            self.next = words.number + 1;
        }
        self.seen.of_old_rules += u64::from(is_of_old_rule(from, words.generation));
        Some(words.is_last)
    }
}

/// Whether a frame bears an address of a rule that is older than one that it knew of. Without rules of this kind it bears its sender's.
fn is_of_old_rule(from: SocketAddr, generation: u64) -> bool {
    let SocketAddr::V4(from) = from else { return false };
    let Some(written) = u64::from(from.ip().octets()[3]).checked_sub(FIRST_ADDRESS) else {
        return false;
    };
    let ahead = (written + GENERATIONS - generation % GENERATIONS) % GENERATIONS;
    ahead >= GENERATIONS / 2
}

fn ends(pairs: u64, addresses: (Ipv4Addr, Ipv4Addr)) -> Vec<End> {
    (0..pairs).map(|pair| End::new(addresses, 20_000 + pair as u16)).collect()
}

fn sum(received: Vec<End>) -> (u64, Seen) {
    let mut seen = Seen::default();
    for end in &received {
        seen.lost += end.seen.lost;
        seen.disordered += end.seen.disordered;
        seen.of_old_rules += end.seen.of_old_rules;
    }
    (received.iter().map(|end| end.sent).sum(), seen)
}

const G1: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const G2: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

/// A talk under way: who sends bursts, and who answers. It ends with this value, also by a panic.
pub struct UnderWay<'s> {
    bursting: ScopedJoinHandle<'s, (u64, Seen)>,
    answering: ScopedJoinHandle<'s, (u64, Seen)>,
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
        let (sent, answers) = self.bursting.join().unwrap();
        let (answered, bursts) = self.answering.join().unwrap();
        [Seen { sent, ..bursts }, Seen { sent: answered, ..answers }]
    }
}

impl Talk {
    pub fn of(pairs: u64) -> Self {
        Self { pairs, ..Self::default() }
    }

    /// Begins it.
    pub fn begin<'s>(
        &'s self,
        scope: &'s std::thread::Scope<'s, '_>,
        place: &Place,
    ) -> UnderWay<'s> {
        let [g1, g2] = ["g1", "g2"].map(|guest| place.guest(guest));
        // Bound before the first burst is sent.
        let answering = inside(&g2, || ends(self.pairs, (G2, G1)));
        let answering = scope.spawn(move || self.answer(answering));
        let bursting = inside(&g1, || ends(self.pairs, (G1, G2)));
        let bursting = scope.spawn(move || self.burst(bursting));
        UnderWay { bursting, answering, ends: EndsIt(&self.ends) }
    }

    fn burst(&self, mut ends: Vec<End>) -> (u64, Seen) {
        let mut is_last = false;
        while !is_last {
            is_last = self.ends.load(SeqCst);
            for end in &mut ends {
                (0..BURST).for_each(|_| end.send(self, is_last));
            }
            if ends[0].sent > BURST {
                self.take_answers(&mut ends);
            }
        }
        self.take_answers(&mut ends);
        sum(ends)
    }

    fn take_answers(&self, ends: &mut [End]) {
        for end in ends {
            end.take();
        }
        self.rounds.fetch_add(1, SeqCst);
    }

    fn answer(&self, mut ends: Vec<End>) -> (u64, Seen) {
        let mut is_last = false;
        while !is_last {
            for end in &mut ends {
                for _ in 0..BURST {
                    // Who hears nothing for so long ends.
                    is_last = end.take().unwrap_or(true);
                }
                end.send(self, is_last);
            }
        }
        sum(ends)
    }
}
