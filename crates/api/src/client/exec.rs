//! Running a program in a guest: its input and output over an upgraded connection.

use super::{Call, Client, ClientError, broken};
use crate::exec::{
    END, ERRORS, ExecRequest, HEAD, INPUT, OUTPUT, PIECE_MAX, PROTOCOL, RESIZED, Window, head,
    read_head,
};
use hyper::body::Bytes;
use hyper::header::{CONNECTION, UPGRADE};
use hyper::upgrade::Upgraded;
use hyper::{Method, StatusCode};
use hyper_util::rt::TokioIo;
use std::io::{self, Read, Write};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::signal::unix::{SignalKind, signal};

/// What a program's output and its errors are written to.
pub type Outputs<'a> = (&'a mut dyn Write, &'a mut dyn Write);

impl Client {
    /// Asks for another protocol on the connection, and gets the connection.
    ///
    /// # Errors
    /// Nobody is there, or refuses.
    pub async fn upgraded(
        &self,
        path: &str,
        body: Vec<u8>,
        protocol: &str,
    ) -> Result<TokioIo<Upgraded>, ClientError> {
        let mut request = self.request(Method::POST, path, Bytes::from(body))?;
        let headers = request.headers_mut();
        headers.insert(CONNECTION, "upgrade".parse().expect("a plain word"));
        headers.insert(UPGRADE, protocol.parse().expect("protocols are plain words"));
        let call = Call { door: &self.door, patience: self.patience };
        let answer = call.heard(call.begin(request)).await??;
        if answer.status() != StatusCode::SWITCHING_PROTOCOLS {
            return Err(call.refusal(answer).await);
        }
        let upgraded = hyper::upgrade::on(answer).await;
        upgraded.map(TokioIo::new).map_err(|error| broken(&self.door, &error))
    }

    /// Runs a program in a guest, `input` its standard input, until it ends; returns its status. If it has a terminal, that is always as large as
    /// `size` says.
    ///
    /// # Errors
    /// No node, or it refuses.
    pub fn exec(
        &self,
        path: &str,
        request: &ExecRequest,
        input: impl Read + Send + 'static,
        (output, errors): Outputs<'_>,
        size: impl Fn() -> Option<Window>,
    ) -> Result<u8, ClientError> {
        let body = serde_json::to_vec(request).expect("requests are plain data");
        let has_terminal = request.terminal.is_some();
        let runtime = self.runtime()?;
        let status = runtime.block_on(async {
            let stream = self.upgraded(path, body, PROTOCOL).await?;
            let (mut from, mut to) = tokio::io::split(stream);
            let (pieces, mut typed) = tokio::sync::mpsc::channel::<Vec<u8>>(4);
            // Reading may never end; the thread goes with the process.
            std::thread::spawn(move || read_pieces(input, &pieces));
            // A program that has ended reads no more: what it says then comes by the other way.
            let send = async {
                let mut sizes = signal(SignalKind::window_change())?;
                loop {
                    let (kind, piece) = tokio::select! {
                        Some(piece) = typed.recv() => (INPUT, piece),
                        Some(()) = sizes.recv(), if has_terminal => match size() {
                            Some(window) => (RESIZED, window.piece().to_vec()),
                            None => continue,
                        },
                        else => break,
                    };
                    let piece = [&head(kind, piece.len())[..], &piece].concat();
                    if to.write_all(&piece).await.is_err() || to.flush().await.is_err() {
                        break;
                    }
                }
                std::future::pending::<io::Result<u8>>().await
            };
            let receive = async {
                let mut piece = vec![0; PIECE_MAX];
                loop {
                    let mut first = [0; HEAD];
                    from.read_exact(&mut first).await?;
                    let (kind, len) = read_head(first).ok_or(io::ErrorKind::InvalidData)?;
                    let piece = &mut piece[..len];
                    from.read_exact(piece).await?;
                    match kind {
                        OUTPUT => output.write_all(piece).and_then(|()| output.flush())?,
                        ERRORS => errors.write_all(piece)?,
                        END => return Ok(piece.first().copied().unwrap_or(255)),
                        _ => {}
                    }
                }
            };
            let ended = tokio::select! {
                ended = receive => ended,
                failed = send => failed,
            };
            ended.map_err(|error| broken(&self.door, &error))
        });
        runtime.shutdown_background();
        status
    }
}

/// Pieces of what is typed, and an empty one at its end.
fn read_pieces(mut input: impl Read, pieces: &tokio::sync::mpsc::Sender<Vec<u8>>) {
    let mut bytes = vec![0; PIECE_MAX];
    loop {
        let read = input.read(&mut bytes).unwrap_or(0);
        if pieces.blocking_send(bytes[..read].to_vec()).is_err() || read == 0 {
            return;
        }
    }
}
