//! A program in a guest and the connection of who runs it: pieces both ways ([`api::exec`]), as fast as the slower side takes them.

use api::exec::{END, ERRORS, HEAD, INPUT, OUTPUT, PIECE_MAX, RESIZED, Window, head, read_head};
use guest::Program;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::net::unix::pipe;
use tokio::sync::Mutex;

type Peer = TokioIo<Upgraded>;

/// Carries pieces both ways until the program has ended and all that it wrote is sent.
pub(super) async fn carry(program: Program, peer: Peer) -> io::Result<()> {
    let Program { mut child, terminal } = program;
    let (input, [output, errors]) = match &terminal {
        Some(own) => of_terminal(own)?,
        None => of_pipes(&mut child)?,
    };
    let (from, to) = tokio::io::split(peer);
    let to = Mutex::new(to);
    let pid = Pid::from_raw(child.id() as i32);
    let ended = tokio::task::spawn_blocking(move || child.wait());
    let written = async {
        let both = tokio::join!(send(OUTPUT, output, &to), send(ERRORS, errors, &to));
        both.0.and(both.1)?;
        let status = ended.await.map_err(io::Error::other)??;
        let mut to = to.lock().await;
        to.write_all(&[&head(END, 1)[..], &[code(status)]].concat()).await?;
        to.shutdown().await
    };
    tokio::select! {
        done = written => done,
        hung_up = typed(from, input, terminal.as_ref()) => {
            // Nobody waits for it any more.
            let _ = pid.map(|pid| kill_process(pid, Signal::TERM));
            hung_up
        }
    }
}

type Ends = (Option<pipe::Sender>, [Option<pipe::Receiver>; 2]);

fn of_pipes(child: &mut Child) -> io::Result<Ends> {
    let source = |end: Option<OwnedFd>| end.map(pipe::Receiver::from_owned_fd).transpose();
    let input = child.stdin.take().map(|end| pipe::Sender::from_owned_fd(end.into()));
    let output = source(child.stdout.take().map(OwnedFd::from))?;
    let errors = source(child.stderr.take().map(OwnedFd::from))?;
    Ok((input.transpose()?, [output, errors]))
}

/// Both ways of our end of a terminal, which is read and written as pipes are.
fn of_terminal(own: &OwnedFd) -> io::Result<Ends> {
    let input = pipe::Sender::from_owned_fd_unchecked(own.try_clone()?)?;
    let output = pipe::Receiver::from_owned_fd_unchecked(own.try_clone()?)?;
    Ok((Some(input), [Some(output), None]))
}

/// As shells have it: 128 and the signal.
fn code(status: ExitStatus) -> u8 {
    status.code().or_else(|| Some(128 + status.signal()?)).unwrap_or(255) as u8
}

/// Gives the program what is typed, until who types hangs up. An empty piece ends a pipe, and hangs up a terminal.
async fn typed(
    mut from: ReadHalf<Peer>,
    mut input: Option<pipe::Sender>,
    terminal: Option<&OwnedFd>,
) -> io::Result<()> {
    let mut piece = vec![0; PIECE_MAX];
    loop {
        let mut first = [0; HEAD];
        from.read_exact(&mut first).await?;
        let (kind, len) = read_head(first).ok_or(io::ErrorKind::InvalidData)?;
        let piece = &mut piece[..len];
        from.read_exact(piece).await?;
        match (kind, terminal) {
            (INPUT, Some(_)) if len == 0 => return Ok(()),
            (INPUT, None) if len == 0 => input = None,
            (INPUT, _) => {
                if let Some(input) = &mut input {
                    // A program that reads no more is not disturbed.
                    let _ = input.write_all(piece).await;
                }
            }
            (RESIZED, Some(terminal)) => {
                // One that has ended has no size.
                let _ = Window::read(piece).map(|window| guest::resize(terminal, window));
            }
            _ => {}
        }
    }
}

/// Sends what comes out of the program.
async fn send(
    kind: u8,
    source: Option<pipe::Receiver>,
    to: &Mutex<WriteHalf<Peer>>,
) -> io::Result<()> {
    let Some(mut source) = source else { return Ok(()) };
    let mut bytes = vec![0; PIECE_MAX];
    loop {
        let read = match source.read(&mut bytes).await {
            // So a terminal ends whose program has gone (pty(7)).
            Err(error) if error.raw_os_error() == Some(Errno::IO.raw_os_error()) => 0,
            outcome => outcome?,
        };
        if read == 0 {
            return Ok(());
        }
        let mut to = to.lock().await;
        to.write_all(&head(kind, read)).await?;
        to.write_all(&bytes[..read]).await?;
        to.flush().await?;
    }
}
