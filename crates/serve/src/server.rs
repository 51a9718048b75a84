//! A server of HTTP/1.1 whose callers cannot take more than their share: of connections, of time to say what they want, of memory.
//!
//! Each connection is a task of a [`Crowd`]: when all places are taken, the one goes whose peer has not moved for the longest.

use crate::bodies::Bodies;
use crate::crowd::{Admission, Crowd, Pulse};
use crate::hit::{Hit, Told};
use axum::Router;
use axum::extract::ConnectInfo;
use axum::serve::Listener;
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::watch;

/// How long a caller may take for the head of a request, and say nothing between two. Chosen: a slow host.
const HEAD_WITHIN: Duration = Duration::from_secs(10);
/// Bytes of an answer that wait in a connection. Chosen: a chunk of a long one.
const AHEAD: usize = 64 << 10;
/// Connections that one socket can have where few files may be open.
const FEWEST: usize = 16;
/// One socket may take this part of the process's files.
const PART_OF_ONE: usize = 8;

/// What all callers of one socket may have together.
#[derive(Clone)]
pub struct Bounds {
    connections: usize,
    bodies: Bodies,
    told: Told,
}

impl Bounds {
    /// For a process that may open so many files, and sockets of `most` connections at most, which share a sum of bodies; `told` hears of who hits one.
    pub fn new(files: u64, most: usize, bodies: &Bodies, told: Told) -> Self {
        let files = usize::try_from(files).unwrap_or(usize::MAX);
        let connections = (files / PART_OF_ONE).min(most).max(FEWEST);
        Self { connections, bodies: bodies.telling(told.clone()), told }
    }
}

/// Serves whoever calls until `ended`; then requests under way are finished. `peer` says who is at the other end: a [`ConnectInfo`] has it.
pub async fn serve<L: Listener, P: Clone + Send + Sync + 'static>(
    mut listener: L,
    router: Router,
    peer: fn(&L::Io, L::Addr) -> P,
    bounds: Bounds,
    ended: impl Future<Output = ()>,
) {
    let crowd = Crowd::new(bounds.connections, Duration::ZERO);
    let (end, ending) = watch::channel(());
    let mut ended = pin!(ended);
    loop {
        let (stream, address) = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut ended => break,
        };
        let who = ConnectInfo(peer(&stream, address));
        let (router, bodies, ending) = (router.clone(), bounds.bodies.clone(), ending.clone());
        match crowd.admit(|pulse| talk((stream, pulse), router, (who, bodies), ending)) {
            Admission::Free => {}
            Admission::InPlace => (bounds.told)(Hit::Connection),
            Admission::Refused => {
                tracing::warn!("API: {} requests are at work: a caller is sent away", crowd.most());
                (bounds.told)(Hit::Refused);
            }
        }
    }
    drop((listener, ending));
    let _ = end.send(());
    end.closed().await;
}

/// One connection.
async fn talk<
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    P: Clone + Send + Sync + 'static,
>(
    (stream, pulse): (S, Arc<Pulse>),
    router: Router,
    (who, bodies): (ConnectInfo<P>, Bodies),
    mut ending: watch::Receiver<()>,
) {
    let routes = TowerToHyperService::new(router);
    let at_work = pulse.clone();
    let answer = service_fn(move |mut request: hyper::Request<Incoming>| {
        at_work.set_works(request.body().is_end_stream());
        let more = request.extensions_mut();
        more.insert(who.clone());
        more.insert(bodies.clone());
        more.insert(at_work.clone());
        let (answer, at_work) = (routes.call(request), at_work.clone());
        async move {
            let answer = answer.await;
            at_work.set_works(false);
            answer
        }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_WITHIN).max_buf_size(AHEAD);
    let io = TokioIo::new(Felt { stream, pulse });
    let mut connection = pin!(http.serve_connection(io, answer).with_upgrades());
    // A connection that breaks off is the caller's business.
    tokio::select! {
        _ = connection.as_mut() => return,
        _ = ending.changed() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

/// A stream that feels its peer's pulse.
struct Felt<S> {
    stream: S,
    pulse: Arc<Pulse>,
}

impl<S: Unpin> Felt<S> {
    fn written(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if matches!(written, Poll::Ready(Ok(_))) {
            self.pulse.beat();
        }
        written
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Felt<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if buffer.filled().len() > before {
            self.pulse.beat();
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Felt<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.written(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.written(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
