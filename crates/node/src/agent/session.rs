//! One connection from hello to end (OpenFlow 1.3.5 §6.3): `hello` begins it, `end` says why it ended.
//!
//! A session is a task that reads, carries out and answers, and a second one that writes, so that an answer that the peer does not
//! read never keeps the first from noticing that the peer is gone. Work comes in *turns* of at most [`TURN`] messages:
//! consecutive flow-mods of a turn are applied together, and after a turn, or a millisecond of one, other sessions get the thread.

use crate::agent::assembly::Assembly;
use crate::agent::end::End;
use crate::agent::hello::negotiate;
use crate::agent::liveness::{Liveness, Timing, Verdict};
use crate::agent::multipart::Replies;
use crate::agent::peer::{Peer, PeerKind};
use crate::agent::requests::{Outcome, carry_out};
use crate::agent::steering::{self, Answer, Permit, Question, Teller};
use crate::agent::stream::Input;
use crate::agent::tap::Tap;
use crate::captures::Wire;
use crate::switch::Switch;
use api::Bound;
use openflow::{
    ERROR_ECHO, ErrorCode, ErrorKind, ErrorMsg, Fault, FlowMod, Header, Message, MultipartReply,
    Part, Role,
};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Messages of one turn. Chosen: the lock is held for some 100 µs.
const TURN: usize = 256;

/// Longest turn, but for its last message. Chosen: what others may have to wait for each session on their thread.
const TURN_TIME: Duration = Duration::from_millis(1);

/// How long a peer that is to be given up is listened to once more. Chosen: the time to look at every socket, on a busy host.
const LAST_LOOK: Duration = Duration::from_millis(100);

/// How long a peer may take for what was queued before the end. Chosen: a slow line, and a deaf peer holds its memory no longer.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Something that is kept while a session is a member of its switch.
pub type WhileJoined = Box<dyn Send>;

/// What to do when a session becomes a member of its switch.
pub type OnJoin = Box<dyn FnOnce(&Arc<Peer>) -> WhileJoined + Send>;

/// Who is at the other end, and how long it may be silent.
pub struct Caller {
    /// Unique in the switch.
    pub id: u64,
    /// Its address, for logs and the API.
    pub name: String,
    /// Where the connection comes from.
    pub kind: PeerKind,
    /// What carries it.
    pub wire: Wire,
    /// Its timing.
    pub timing: Timing,
    /// For an auxiliary connection: the main one, and its number beside it.
    pub main: Option<(Arc<Peer>, u8)>,
    /// Told when a version was agreed on; what it makes goes when the session leaves the switch.
    pub on_join: Option<OnJoin>,
    /// What it may do with the host's steering; nothing when absent.
    pub steering: Option<Permit>,
}

/// Serves a connection until it ends.
pub async fn serve<S>(stream: S, caller: Caller, switch: Arc<Switch>) -> End
where
    S: AsyncRead + AsyncWrite + Send + 'static,
{
    let (read, mut write) = tokio::io::split(stream);
    let tap = Tap::new(switch.clone(), caller.wire);
    let mut input = Input::tapped(read, tap.clone());
    let agreed = negotiate(&mut input, &mut write, switch.versions());
    let version = match tokio::time::timeout(caller.timing.hello_within, agreed).await {
        Ok(Ok(version)) => version,
        Ok(Err(end)) => return end,
        Err(_) => {
            if caller.kind != PeerKind::Controller {
                let text = "no hello in time: the connection ended";
                switch.hit(Bound::Hello, caller.kind.who(&caller.name), text);
            }
            return End::Silent;
        }
    };
    let peer = match &caller.main {
        None => Peer::new(caller.id, caller.name, caller.kind, version, switch.miss_send_len()),
        Some((main, number)) => Peer::auxiliary(main, *number, caller.id, caller.name, version),
    };
    let peer = Arc::new(peer.within(switch.room().part()));
    let mut writer = JoinSet::new();
    writer.spawn(write_all(peer.clone(), write, tap));
    if caller.kind == PeerKind::Controller {
        tracing::info!(switch = switch.name(), controller = peer.name(), "controller connected");
    }
    let joined = Joined::new(switch, peer.clone(), caller.on_join);
    let mut session = Session {
        switch: joined.switch.clone(),
        peer,
        input,
        timing: caller.timing,
        flow_mods: Vec::new(),
        parts: Assembly::default(),
        steering: caller.steering,
        news: None,
    };
    let Err(end) = session.run().await;
    drop(joined);
    if let End::TooSlow = end {
        let (who, text) = (session.peer.who(), "it does not read: the connection ended");
        session.switch.hit(Bound::UnreadMessages, who, text);
    }
    session.peer.outbox().close();
    // What is queued (the error that explains the end) still goes out, if the peer takes it soon. Who reads too slowly does not.
    let patience = if matches!(end, End::TooSlow) { Duration::ZERO } else { LAST_WORDS };
    let _ = tokio::time::timeout(caller.timing.probe_after.min(patience), writer.join_next()).await;
    end
}

/// Membership in the switch's listeners, given up however the session ends.
struct Joined {
    switch: Arc<Switch>,
    peer: Arc<Peer>,
    /// Goes first: auxiliary connections end with their main one (OpenFlow 1.3.5 §6.3.7).
    kept: Option<WhileJoined>,
}

impl Joined {
    fn new(switch: Arc<Switch>, peer: Arc<Peer>, on_join: Option<OnJoin>) -> Self {
        switch.join(peer.clone());
        if peer.auxiliary_id() != 0 {
            peer.channel().join(peer.clone());
        }
        let kept = on_join.map(|on_join| on_join(&peer));
        Self { switch, peer, kept }
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        drop(self.kept.take());
        self.peer.channel().leave(self.peer.channel_member());
        self.switch.leave(crate::switch::Listener::id(&*self.peer));
    }
}

/// Writes what is queued until the connection ends, at either end.
async fn write_all<W: AsyncWrite + Unpin>(peer: Arc<Peer>, mut write: W, tap: Arc<Tap>) {
    let mut bytes = Vec::new();
    while peer.outbox().take(&mut bytes).await {
        tap.went(&bytes);
        // TLS keeps what it has encrypted until it is flushed.
        if write.write_all(&bytes).await.is_err() || write.flush().await.is_err() {
            break;
        }
    }
    peer.outbox().close();
    // The connection may be gone already; then there is nothing to end.
    let _ = write.shutdown().await;
}

/// A flow-mod of this turn, and where its message lies in the input.
struct Pending {
    xid: u32,
    frame: Range<usize>,
    change: FlowMod,
}

struct Session<R> {
    switch: Arc<Switch>,
    peer: Arc<Peer>,
    input: Input<R>,
    timing: Timing,
    /// Flow-mods read and not yet applied; empty between turns.
    flow_mods: Vec<Pending>,
    /// Multipart requests whose ends have not come yet.
    parts: Assembly,
    /// What it may do with the host's steering.
    steering: Option<Permit>,
    /// Tells it of the host.
    news: Option<Teller>,
}

/// What is left to do about a message and takes its time.
enum Later {
    /// Send an answer in parts.
    Parts(u32, Replies),
    /// Ask the host.
    Steering(u32, Range<usize>, Question),
}

impl<R: AsyncRead + Unpin> Session<R> {
    async fn run(&mut self) -> Result<std::convert::Infallible, End> {
        let mut liveness = Liveness::new(Instant::now());
        loop {
            let worked = self.turn().await?;
            self.wait_for_room().await?;
            self.switch.journal().room().await;
            if worked == TURN {
                tokio::task::yield_now().await;
            } else {
                self.fill(&mut liveness).await?;
            }
        }
    }

    /// Carries out at most [`TURN`] messages of those that are here already, fewer when their answers fill the outbox; returns [`TURN`] if
    /// there may be more.
    async fn turn(&mut self) -> Result<usize, End> {
        let began = Instant::now();
        for worked in 0..TURN {
            if self.peer.outbox().is_full() {
                break;
            }
            let Some(frame) = self.next_frame().await? else {
                self.apply_flow_mods().await;
                return Ok(worked);
            };
            match self.carry_out(frame).await {
                None if began.elapsed() > TURN_TIME => break,
                None => {}
                Some(Later::Parts(xid, parts)) => self.send_parts(xid, parts).await?,
                Some(Later::Steering(xid, frame, question)) => {
                    self.steer(xid, &frame, question).await?;
                }
            }
        }
        self.apply_flow_mods().await;
        Ok(TURN)
    }

    async fn next_frame(&mut self) -> Result<Option<Range<usize>>, End> {
        let bad = match self.input.next_frame() {
            Ok(frame) => return Ok(frame),
            Err(bad) => bad,
        };
        self.apply_flow_mods().await;
        let header = bad.version.to_be_bytes().into_iter().chain(bad.kind.to_be_bytes());
        let data = header.chain(bad.length.to_be_bytes()).chain(bad.xid.to_be_bytes()).collect();
        let kind = ErrorKind::Known(ErrorCode::BadRequestBadLen);
        self.peer.reply(bad.xid, &Message::Error(ErrorMsg { kind, data }));
        Err(End::Framing(bad))
    }

    /// Carries out one message; what takes its time is returned.
    async fn carry_out(&mut self, frame: Range<usize>) -> Option<Later> {
        let bytes = self.input.frame(&frame);
        let xid = Header::peek(bytes).map_or(0, |header| header.xid);
        let request = match self.decode(bytes) {
            Ok(Message::FlowMod(change)) if self.peer.role() != Role::Slave => {
                self.flow_mods.push(Pending { xid, frame, change });
                return None;
            }
            request => request,
        };
        self.apply_flow_mods().await;
        let whole = request.and_then(|request| self.assemble(xid, request, frame.len()));
        let outcome = whole.and_then(|request| match request {
            Some(request) => carry_out(&self.switch, &self.peer, xid, request),
            None => Ok(Outcome::Done),
        });
        match outcome {
            Ok(Outcome::Done) => None,
            Ok(Outcome::Reply(message)) => {
                self.peer.reply(xid, &message);
                None
            }
            Ok(Outcome::Parts(parts)) => Some(Later::Parts(xid, parts)),
            Ok(Outcome::Steering(question)) => Some(Later::Steering(xid, frame, question)),
            Err(fault) => {
                self.refuse(xid, &frame, fault);
                None
            }
        }
    }

    /// The request, unless more parts of it are to come.
    fn assemble(
        &mut self,
        xid: u32,
        request: Message,
        bytes: usize,
    ) -> Result<Option<Message>, Fault> {
        let Message::MultipartRequest(part) = request else { return Ok(Some(request)) };
        let whole = self.parts.take(xid, part, bytes)?;
        Ok(whole.map(|body| Message::MultipartRequest(Part::last(body))))
    }

    fn decode(&self, bytes: &[u8]) -> Result<Message, Fault> {
        let (header, message) = Message::decode(bytes)?;
        let agreed =
            header.version == self.peer.version().wire() || matches!(message, Message::Hello(_));
        agreed
            .then_some(message)
            .ok_or(Fault::new(ErrorCode::BadRequestBadVersion, "another version than agreed on"))
    }

    fn refuse(&self, xid: u32, frame: &Range<usize>, fault: Fault) {
        tracing::debug!(switch = self.switch.name(), peer = self.peer.name(), %fault, "request refused");
        self.peer
            .reply(xid, &Message::Error(ErrorMsg::answer(fault.code, self.input.frame(frame))));
    }

    /// Answers what was asked of the host's steering. What comes after it waits, so that a barrier's answer comes when it is done.
    async fn steer(
        &mut self,
        xid: u32,
        frame: &Range<usize>,
        question: Question,
    ) -> Result<(), End> {
        let answer = steering::answer(self.steering.as_ref(), &self.peer, question);
        let answer = tokio::time::timeout(self.timing.dead_after, answer).await;
        match answer.unwrap_or_else(|_| Err(steering::Refused::late())) {
            Ok(Answer::Done) => {}
            Ok(Answer::Message(message)) => {
                self.peer.reply(xid, &Message::Experimenter(message.encode()));
            }
            Ok(Answer::Parts(bodies)) => {
                let parts = bodies.into_iter().map(MultipartReply::Experimenter);
                self.send_parts(xid, Box::new(parts)).await?;
            }
            Ok(Answer::Tell(teller)) => self.news = Some(teller),
            Err(refused) => {
                let (switch, peer) = (self.switch.name(), self.peer.name());
                tracing::debug!(switch, peer, %refused, "steering: request refused");
                let bytes = self.input.frame(frame);
                let data = bytes[..bytes.len().min(ERROR_ECHO)].to_vec();
                self.peer.reply(xid, &Message::Error(ErrorMsg { kind: refused.kind, data }));
            }
        }
        Ok(())
    }

    async fn apply_flow_mods(&mut self) {
        if self.flow_mods.is_empty() {
            return;
        }
        let pending = std::mem::take(&mut self.flow_mods);
        let changes = pending.iter().map(|pending| &pending.change);
        for (index, fault) in self.switch.flow_mods(changes).await {
            let Pending { xid, frame, .. } = &pending[index];
            self.refuse(*xid, frame, fault);
        }
        self.flow_mods = pending;
        self.flow_mods.clear();
    }

    /// Sends an answer in parts, each made when the peer has taken enough of those before.
    async fn send_parts(&mut self, xid: u32, parts: Replies) -> Result<(), End> {
        let mut parts = parts.peekable();
        while let Some(part) = parts.next() {
            self.peer.reply_part(xid, &part, parts.peek().is_some());
            self.wait_for_room().await?;
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    /// Waits until the peer has read most of what was sent to it.
    async fn wait_for_room(&mut self) -> Result<(), End> {
        let outbox = self.peer.outbox();
        if tokio::time::timeout(self.timing.dead_after, outbox.room()).await.is_err() {
            return Err(End::TooSlow);
        }
        if outbox.is_closed() { Err(self.why_closed()) } else { Ok(()) }
    }

    /// Why nothing is written any more.
    fn why_closed(&self) -> End {
        if self.peer.outbox().is_overflowed() { End::TooSlow } else { End::Closed }
    }

    /// Waits for bytes, and asks a silent peer whether it is there. Bytes that wait already are a sign of life, however late they are read.
    async fn fill(&mut self, liveness: &mut Liveness) -> Result<(), End> {
        let mut is_last_look = false;
        loop {
            let now = Instant::now();
            let until = match liveness.verdict(now, &self.timing) {
                Verdict::WaitUntil(time) => time,
                Verdict::Dead if is_last_look => return Err(End::Silent),
                Verdict::Dead => {
                    is_last_look = true;
                    now + LAST_LOOK
                }
                Verdict::Probe => {
                    self.peer.request(&Message::EchoRequest(Vec::new()));
                    continue;
                }
            };
            tokio::select! {
                biased;
                filled = self.input.fill() => {
                    filled?;
                    liveness.heard(Instant::now());
                    return Ok(());
                }
                () = self.peer.outbox().closed() => return Err(self.why_closed()),
                () = tokio::time::sleep_until(until) => {}
            }
        }
    }
}
