//! One connection from hello to end (OpenFlow 1.3.5 §6.3).
//!
//! A session is a task that reads, carries out and answers, and a second one that writes, so that an answer that the peer does not
//! read never keeps the first from noticing that the peer is gone. Work comes in *turns* of at most [`TURN`] messages:
//! consecutive flow-mods of a turn are applied under one lock, and after a turn other sessions get the thread.

use crate::agent::assembly::Assembly;
use crate::agent::liveness::{Liveness, Timing, Verdict};
use crate::agent::multipart::Replies;
use crate::agent::peer::{Peer, PeerKind};
use crate::agent::requests::{Outcome, carry_out};
use crate::agent::stream::Input;
use crate::fault::chain;
use crate::switch::Switch;
use crate::tls::Trouble;
use openflow::{
    BadFrame, ErrorCode, ErrorKind, ErrorMsg, Fault, FlowMod, Header, Hello, Message, Part, Role,
    Version, VersionSet, encode_reply,
};
use std::io;
use std::ops::Range;
use std::sync::Arc;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Messages of one turn. Chosen: the lock is held for some 100 µs.
const TURN: usize = 256;

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
    /// Its timing.
    pub timing: Timing,
    /// For an auxiliary connection: the main one, and its number beside it.
    pub main: Option<(Arc<Peer>, u8)>,
    /// Told when a version was agreed on; what it makes goes when the session leaves the switch.
    pub on_join: Option<OnJoin>,
}

/// Why a session ended.
#[derive(Debug, Error)]
pub enum End {
    /// The peer closed the connection.
    #[error("the peer closed the connection")]
    Closed,
    /// The connection broke.
    #[error("the connection broke")]
    Broken(#[source] io::Error),
    /// Nothing was heard of the peer.
    #[error("the peer was silent for too long; see whether it hangs or the network is broken")]
    Silent,
    /// The peer did not read what it must not miss.
    #[error("the peer reads too slowly to be told of changes; give it time, or fewer events")]
    TooSlow,
    /// What came is no OpenFlow.
    #[error(
        "hello: the peer does not speak OpenFlow (first bytes: version {version}, type {kind}); check what connects to this port"
    )]
    NoHello {
        /// The first byte.
        version: u8,
        /// The second byte.
        kind: u8,
    },
    /// What came is TLS.
    #[error(
        "hello: the peer speaks TLS, and this connection is plain TCP; name it ssl: (or pssl:) here, or let it speak plain TCP"
    )]
    TlsSpoken,
    /// No common version.
    #[error(
        "hello: the peer's OpenFlow versions (newest: wire version {theirs}) are none of the switch's ({ours}); enable one there, or change the switch's protocols"
    )]
    NoVersion {
        /// The switch's.
        ours: VersionSet,
        /// The version in the header of the peer's hello.
        theirs: u8,
    },
    /// The stream cannot be cut into messages any more.
    #[error("framing: the peer is no OpenFlow speaker or is broken; check what connects here")]
    Framing(#[source] BadFrame),
}

impl From<io::Error> for End {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            // TLS without a last word.
            io::ErrorKind::UnexpectedEof => End::Closed,
            _ => End::Broken(error),
        }
    }
}

impl End {
    /// Whether the peer misbehaved, which an operator should hear of, or just went.
    pub fn is_fault_of_peer(&self) -> bool {
        match self {
            End::Closed => false,
            End::Broken(error) => Trouble::of_stream(error).is_some(),
            _ => true,
        }
    }

    /// Cause and remedy, which [`End`]'s own text separates by a semicolon.
    pub fn trouble(&self) -> Trouble {
        if let End::Broken(error) = self
            && let Some(trouble) = Trouble::of_stream(error)
        {
            return trouble;
        }
        let text = chain(self);
        let (cause, remedy) =
            text.split_once("; ").unwrap_or((&text, "see the log of the other side"));
        Trouble::new(cause, remedy)
    }
}

/// Serves a connection until it ends.
pub async fn serve<S>(stream: S, caller: Caller, switch: Arc<Switch>) -> End
where
    S: AsyncRead + AsyncWrite + Send + 'static,
{
    let (read, mut write) = tokio::io::split(stream);
    let mut input = Input::new(read);
    let agreed = negotiate(&mut input, &mut write, switch.versions());
    let version = match tokio::time::timeout(caller.timing.hello_within, agreed).await {
        Ok(Ok(version)) => version,
        Ok(Err(end)) => return end,
        Err(_) => return End::Silent,
    };
    let peer = Arc::new(match &caller.main {
        None => Peer::new(caller.id, caller.name, caller.kind, version, switch.miss_send_len()),
        Some((main, number)) => Peer::auxiliary(main, *number, caller.id, caller.name, version),
    });
    let mut writer = JoinSet::new();
    writer.spawn(write_all(peer.clone(), write));
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
    };
    let Err(end) = session.run().await;
    drop(joined);
    session.peer.outbox().close();
    // What is queued (the error that explains the end) still goes out, if the peer takes it soon.
    let _ = tokio::time::timeout(caller.timing.probe_after, writer.join_next()).await;
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

/// Exchanges hellos and agrees on a version (§6.3.1).
async fn negotiate<S: AsyncRead + AsyncWrite>(
    input: &mut Input<ReadHalf<S>>,
    write: &mut WriteHalf<S>,
    ours: VersionSet,
) -> Result<Version, End> {
    let newest = ours.known().next_back().expect("a switch speaks a version");
    let versions = ours.needs_bitmap().then_some(ours);
    send(write, newest, 0, &Message::Hello(Hello { versions })).await?;
    let (header, hello) = first_message(input).await?;
    let agreed = hello.and_then(|hello| ours.agree(header.version, hello.versions));
    if let Some(version) = agreed {
        return Ok(version);
    }
    let text = match hello {
        Some(_) => format!("this switch speaks OpenFlow {ours}, and you do not"),
        None => "an OpenFlow hello comes first".to_owned(),
    };
    let kind = ErrorKind::Known(ErrorCode::HelloFailedIncompatible);
    let error = Message::Error(ErrorMsg { kind, data: text.into_bytes() });
    // In the peer's own version if it is one of ours at all, so that the peer can read it.
    let version = Version::from_wire(header.version).unwrap_or(newest);
    send(write, version, header.xid, &error).await?;
    Err(match hello {
        Some(_) => End::NoVersion { ours, theirs: header.version },
        // Record types 21 (alert) and 22 (handshake), version 3.x (RFC 8446 §5.1).
        None if matches!(header.version, 21 | 22) && header.kind == 3 => End::TlsSpoken,
        None => End::NoHello { version: header.version, kind: header.kind },
    })
}

/// The header of the first message, and its hello if it is one.
async fn first_message<R: AsyncRead + Unpin>(
    input: &mut Input<R>,
) -> Result<(Header, Option<Hello>), End> {
    loop {
        // Eight bytes say whether this is OpenFlow: a web browser's request is refused before its "length" is awaited.
        if let Some(header) =
            Header::peek(input.rest()).filter(|header| header.kind != 0 || header.length < 8)
        {
            return Ok((header, None));
        }
        if let Ok(Some(range)) = input.next_frame() {
            let header = Header::peek(input.frame(&range)).expect("a frame has a header");
            return Ok(match Message::decode(input.frame(&range)) {
                Ok((header, Message::Hello(hello))) => (header, Some(hello)),
                _ => (header, None),
            });
        }
        input.fill().await?;
    }
}

async fn send(
    write: &mut (impl AsyncWrite + Unpin),
    version: Version,
    xid: u32,
    message: &Message,
) -> io::Result<()> {
    let bytes = message.encode(version, xid).map_err(io::Error::other)?;
    write.write_all(&bytes).await?;
    write.flush().await
}

/// Writes what is queued until the connection ends, at either end.
async fn write_all<W: AsyncWrite + Unpin>(peer: Arc<Peer>, mut write: W) {
    let mut bytes = Vec::new();
    while peer.outbox().take(&mut bytes).await {
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

    /// Carries out at most [`TURN`] messages of those that are here already; returns how many.
    async fn turn(&mut self) -> Result<usize, End> {
        for worked in 0..TURN {
            let Some(frame) = self.next_frame()? else {
                self.apply_flow_mods();
                return Ok(worked);
            };
            if let Some((xid, parts)) = self.carry_out(frame) {
                self.send_parts(xid, parts).await?;
            }
        }
        self.apply_flow_mods();
        Ok(TURN)
    }

    fn next_frame(&mut self) -> Result<Option<Range<usize>>, End> {
        self.input.next_frame().map_err(|bad| {
            self.apply_flow_mods();
            let header = bad.version.to_be_bytes().into_iter().chain(bad.kind.to_be_bytes());
            let data =
                header.chain(bad.length.to_be_bytes()).chain(bad.xid.to_be_bytes()).collect();
            let kind = ErrorKind::Known(ErrorCode::BadRequestBadLen);
            self.peer.reply(bad.xid, &Message::Error(ErrorMsg { kind, data }));
            End::Framing(bad)
        })
    }

    /// Carries out one message; an answer in parts is returned to be sent.
    fn carry_out(&mut self, frame: Range<usize>) -> Option<(u32, Replies)> {
        let bytes = self.input.frame(&frame);
        let xid = Header::peek(bytes).map_or(0, |header| header.xid);
        let request = match self.decode(bytes) {
            Ok(Message::FlowMod(change)) if self.peer.role() != Role::Slave => {
                self.flow_mods.push(Pending { xid, frame, change });
                return None;
            }
            request => request,
        };
        self.apply_flow_mods();
        let whole = request.and_then(|request| self.assemble(xid, request, frame.len()));
        let outcome = whole.and_then(|request| match request {
            Some(request) => carry_out(&self.switch, &self.peer, request),
            None => Ok(Outcome::Done),
        });
        match outcome {
            Ok(Outcome::Done) => None,
            Ok(Outcome::Reply(message)) => {
                self.peer.reply(xid, &message);
                None
            }
            Ok(Outcome::Parts(parts)) => Some((xid, parts)),
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

    fn apply_flow_mods(&mut self) {
        if self.flow_mods.is_empty() {
            return;
        }
        let pending = std::mem::take(&mut self.flow_mods);
        self.switch.flow_mods(pending.iter().map(|pending| &pending.change), |index, fault| {
            let Pending { xid, frame, .. } = &pending[index];
            self.refuse(*xid, frame, fault);
        });
        self.flow_mods = pending;
        self.flow_mods.clear();
    }

    /// Sends an answer in parts, each made when the peer has taken enough of those before.
    async fn send_parts(&mut self, xid: u32, parts: Replies) -> Result<(), End> {
        let mut parts = parts.peekable();
        while let Some(part) = parts.next() {
            match encode_reply(self.peer.version(), xid, &part, parts.peek().is_some()) {
                Ok(messages) => self
                    .peer
                    .outbox()
                    .reply(|out| messages.iter().for_each(|bytes| out.extend(bytes))),
                Err(error) => {
                    tracing::warn!(switch = self.switch.name(), %error, "an entry is missing from an answer")
                }
            }
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

    /// Waits for bytes, and asks a silent peer whether it is there.
    async fn fill(&mut self, liveness: &mut Liveness) -> Result<(), End> {
        loop {
            let until = match liveness.verdict(Instant::now(), &self.timing) {
                Verdict::WaitUntil(time) => time,
                Verdict::Dead => return Err(End::Silent),
                Verdict::Probe => {
                    self.peer.request(&Message::EchoRequest(Vec::new()));
                    continue;
                }
            };
            tokio::select! {
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
