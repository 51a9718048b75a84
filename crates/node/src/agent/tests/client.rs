//! A scripted OpenFlow 1.3 client.

use crate::agent::session::{Caller, serve};
use crate::agent::steering::Permit;
use crate::agent::stream::Input;
use crate::agent::{PeerKind, Timing};
use crate::captures::Wire;
use crate::switch::Switch;
use openflow::{
    ErrorCode, ErrorKind, Hello, Message, MultipartReply, MultipartRequest, Part, Version,
    VersionSet,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf, split};
use tokio::net::UnixStream;

/// Longest wait for a message, against a hanging test.
const PATIENCE: Duration = Duration::from_secs(30);

/// The peer's side of a connection.
pub struct Client<S> {
    input: Input<ReadHalf<S>>,
    write: WriteHalf<S>,
    next_xid: u32,
}

impl Client<UnixStream> {
    /// A connection to `switch` on which nothing was said yet.
    pub fn connect(switch: &Arc<Switch>, kind: PeerKind, timing: Timing) -> Self {
        Self::permitted(switch, kind, timing, None)
    }

    /// The same of one who may use the host's steering.
    pub fn permitted(
        switch: &Arc<Switch>,
        kind: PeerKind,
        timing: Timing,
        steering: Option<Permit>,
    ) -> Self {
        static NEXT_ID: AtomicU64 = AtomicU64::new(100);
        let (ours, theirs) = UnixStream::pair().unwrap();
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        tokio::spawn(serve(
            theirs,
            Caller {
                id,
                name: "test".into(),
                kind,
                wire: Wire::default(),
                timing,
                main: None,
                on_join: None,
                steering,
            },
            switch.clone(),
        ));
        Self::over(ours)
    }

    /// A connection after the hellos.
    pub async fn join(switch: &Arc<Switch>, kind: PeerKind) -> Self {
        Self::greet(Self::connect(switch, kind, Timing::default())).await
    }
}

impl<S: AsyncRead + AsyncWrite> Client<S> {
    pub fn over(stream: S) -> Self {
        let (read, write) = split(stream);
        Self { input: Input::new(read), write, next_xid: 1000 }
    }

    /// Exchanges hellos, and waits until the session has begun.
    pub async fn greet(mut self) -> Self {
        self.send(Message::Hello(Hello { versions: Some(VersionSet::of(Version::ALL)) })).await;
        assert!(matches!(self.next().await.1, Message::Hello(_)));
        self.ask(Message::BarrierRequest).await;
        self
    }

    pub async fn send_bytes(&mut self, bytes: &[u8]) {
        self.write.write_all(bytes).await.unwrap();
    }

    pub async fn send_as(&mut self, xid: u32, message: &Message) {
        self.send_bytes(&message.encode(Version::V1_3, xid).unwrap()).await;
    }

    pub async fn send(&mut self, message: Message) -> u32 {
        self.next_xid += 1;
        self.send_as(self.next_xid, &message).await;
        self.next_xid
    }

    /// The next message, with its transaction.
    pub async fn next(&mut self) -> (u32, Message) {
        loop {
            if let Some(frame) = self.input.next_frame().unwrap() {
                let (header, message) = Message::decode(self.input.frame(&frame)).unwrap();
                return (header.xid, message);
            }
            tokio::time::timeout(PATIENCE, self.input.fill())
                .await
                .expect("a message")
                .expect("a connection");
        }
    }

    /// The answer to a request.
    pub async fn ask(&mut self, request: Message) -> Message {
        let xid = self.send(request).await;
        let (answered, message) = self.next().await;
        assert_eq!(answered, xid, "{message:?}");
        message
    }

    /// The error that a request meets.
    pub async fn error(&mut self, request: Message) -> ErrorCode {
        match self.ask(request).await {
            Message::Error(error) => match error.kind {
                ErrorKind::Known(code) => code,
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    /// All parts of the answer to a multipart request.
    pub async fn ask_all(&mut self, request: MultipartRequest) -> Vec<MultipartReply> {
        let xid = self.send(Message::MultipartRequest(Part::last(request))).await;
        let mut parts = Vec::new();
        loop {
            match self.next().await {
                (answered, Message::MultipartReply(part)) if answered == xid => {
                    parts.push(part.body);
                    if !part.more {
                        return parts;
                    }
                }
                other => panic!("{other:?}"),
            }
        }
    }

    /// Whether the other side ends the connection, whatever it says before.
    pub async fn is_left(&mut self) -> bool {
        let end = async { while self.input.fill().await.is_ok() {} };
        tokio::time::timeout(PATIENCE, end).await.is_ok()
    }
}
