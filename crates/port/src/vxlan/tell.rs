//! Telling the sender of a frame that it was too long (docs/decisions/0017).

use super::path::{ETHERNET, Path};
use crate::frame::TxFrame;
use crate::mailbox::Mailbox;
use std::sync::Arc;
use std::time::Instant;
use wire::too_big::{ENOUGH, answer};

/// Answers in a second, and at once. Chosen: each sender needs one for a path, and RFC 1812 §4.3.2.8 and RFC 4443 §2.4 f ask that nobody can have
/// a host send without end.
const RATE: f64 = 100.0;
const BURST: f64 = 50.0;

/// Answers that wait. Chosen: a burst's worth; what a flood adds is not missed.
pub(super) const ROOM: usize = 64;

/// What a tunnel port says to the guests of its own switch: from its sending halves, which find a frame too long, to its receiving half, which
/// brings the answer in as if the other end had sent it. Each with that end's number; 0: the port has only one.
pub(super) type Answers = Mailbox<(u16, Vec<u8>)>;

/// One worker's voice.
pub(super) struct Teller {
    answers: Arc<Answers>,
    tokens: Tokens,
}

impl Teller {
    pub(super) fn new(answers: Arc<Answers>) -> Self {
        Self { answers, tokens: Tokens::new(Instant::now()) }
    }

    /// Has the frame's sender told what the path takes, behind a tunnel header as if the other end had.
    pub(super) fn tell(&mut self, frame: &TxFrame<'_>, header: &[u8], path: &Path, now: Instant) {
        if !self.tokens.take(now) {
            return;
        }
        let Ok(mtu) = path.mtu() else { return };
        let carries = path.longest().min((mtu + ETHERNET) as usize);
        let told = answer(&beginning(frame), carries);
        if let Some(answer) = told {
            // One that finds no room is as if it had not been due.
            let _ = self.answers.push((frame.tun_dst, [header, &answer].concat()));
        }
    }
}

/// As much of a frame as an answer can need.
fn beginning(frame: &TxFrame<'_>) -> Vec<u8> {
    let mut bytes = frame.head.to_vec();
    let head = bytes.len();
    bytes.resize(frame.len().min(ENOUGH.max(head)), 0);
    if bytes.len() > head {
        frame.body.copy_to(0, &mut bytes[head..]);
    }
    bytes
}

/// A token bucket.
struct Tokens {
    left: f64,
    at: Instant,
}

impl Tokens {
    fn new(now: Instant) -> Self {
        Self { left: BURST, at: now }
    }

    /// Takes one, if one is there now.
    fn take(&mut self, now: Instant) -> bool {
        let grown = now.saturating_duration_since(self.at).as_secs_f64() * RATE;
        (self.left, self.at) = ((self.left + grown).min(BURST), now);
        let has_one = self.left >= 1.0;
        if has_one {
            self.left -= 1.0;
        }
        has_one
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Body;
    use std::time::Duration;
    use wire::Offload;

    #[test]
    fn a_burst_is_answered_and_then_so_many_a_second() {
        let begin = Instant::now();
        let mut tokens = Tokens::new(begin);
        let mut answered =
            |ms| (0..1000).filter(|_| tokens.take(begin + Duration::from_millis(ms))).count();
        assert_eq!(answered(0), 50);
        assert_eq!(answered(100), 10);
        assert_eq!(answered(50), 0, "an earlier time adds nothing");
        assert_eq!(answered(60_000), 50);
    }

    #[test]
    fn an_answer_sees_the_beginning_of_a_frame_across_head_and_body() {
        let (head, body) = ([1; 256], [2; 2000]);
        let frame = |body| TxFrame {
            head: &head,
            body: Body::private(body),
            offload: Offload::default(),
            tunnel_id: 0,
            tun_dst: 0,
        };
        assert_eq!(beginning(&frame(&body)), [vec![1; 256], vec![2; ENOUGH - 256]].concat());
        assert_eq!(beginning(&frame(&[])), head);
    }
}
