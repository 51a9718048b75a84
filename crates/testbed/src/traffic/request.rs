//! Requests and their answers: `ping` at a pace, and clients that each wait for an answer before they ask again, by UDP and by TCP.

use crate::netns::{Guest, run};
use crate::peer::GENERATORS_CORE;
use crate::sys::pin;
use anyhow::{Context, Result, ensure};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const PORT: u16 = 7790;
/// A request that is not answered for so long is lost.
const PATIENCE: Duration = Duration::from_millis(500);
const SIZE: usize = 32;

/// Round-trip times in microseconds.
#[derive(Clone, Copy, Debug)]
pub struct Answers {
    /// Half are faster.
    pub p50: f64,
    /// 99 of 100 are faster.
    pub p99: f64,
    /// Answers a second, of all clients.
    pub per_s: f64,
}

impl Answers {
    /// Of these round trips, which took so long together.
    ///
    /// # Errors
    /// There are none.
    pub fn of(mut micros: Vec<f64>, time: Duration) -> Result<Self> {
        ensure!(!micros.is_empty(), "no request was answered");
        micros.sort_by(f64::total_cmp);
        let at = |part: usize| micros[micros.len() * part / 100];
        Ok(Self { p50: at(50), p99: at(99), per_s: micros.len() as f64 / time.as_secs_f64() })
    }
}

/// How the next request follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pace {
    /// So long after the last.
    Each(Duration),
    /// As soon as the last is answered.
    Flood,
}

/// What `ping` measures, of so many; at a pace below a millisecond it waits for answers as a flood does.
pub fn ping(from: &Guest, to: &Guest, pace: Pace, count: u32) -> Result<Answers> {
    let interval = match pace {
        Pace::Each(pause) => format!("{}", pause.as_secs_f64()),
        Pace::Flood => "0".into(),
    };
    let mut command = from.namespace.command("taskset");
    command.args(["-c", &GENERATORS_CORE.to_string(), "ping", "-n", "-i", &interval]);
    let began = Instant::now();
    let text = run(command.args(["-c", &count.to_string(), &to.address]))?;
    let time = began.elapsed();
    let micros = text.lines().filter_map(|line| {
        let (_, after) = line.split_once("time=")?;
        Some(after.split(' ').next()?.parse::<f64>().ok()? * 1000.0)
    });
    Answers::of(micros.collect(), time)
}

/// So many clients ask over UDP for so long.
pub fn by_udp(from: &Guest, to: &Guest, clients: u16, time: Duration) -> Result<Answers> {
    let server = to.namespace.enter(|| udp(&to.address, PORT))?;
    let sockets = (0..clients).map(|client| {
        let socket = from.namespace.enter(|| udp(&from.address, PORT + client))?;
        socket.connect((&*to.address, PORT))?;
        Ok(socket)
    });
    let sockets = sockets.collect::<Result<Vec<_>>>()?;
    let over = AtomicBool::new(false);
    let serve = || {
        pin(GENERATORS_CORE);
        let mut bytes = [0; 64];
        while !over.load(Ordering::Relaxed) {
            if let Ok((len, client)) = server.recv_from(&mut bytes) {
                let _ = server.send_to(&bytes[..len], client);
            }
        }
    };
    let ask = |socket: &UdpSocket| -> std::io::Result<()> {
        socket.send(&[7; SIZE])?;
        socket.recv(&mut [0; SIZE]).map(drop)
    };
    asked((sockets, ask), &[&serve], &over, time)
}

/// So many clients ask over a connection each.
pub fn by_tcp(from: &Guest, to: &Guest, clients: u16, time: Duration) -> Result<Answers> {
    let listener = to
        .namespace
        .enter(|| TcpListener::bind((&*to.address, PORT)).context("a socket that listens"))?;
    let (mut near, mut far) = (Vec::new(), Vec::new());
    for _ in 0..clients {
        let stream = from.namespace.enter(|| {
            TcpStream::connect((&*to.address, PORT)).context("connecting through the switch")
        })?;
        let (accepted, _) = listener.accept()?;
        for stream in [&stream, &accepted] {
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(PATIENCE))?;
        }
        near.push(stream);
        far.push(accepted);
    }
    let over = AtomicBool::new(false);
    let serve = |mut stream: &TcpStream| {
        pin(GENERATORS_CORE);
        let mut bytes = [0; SIZE];
        while !over.load(Ordering::Relaxed) {
            match stream.read_exact(&mut bytes) {
                Ok(()) => drop(stream.write_all(&bytes)),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(_) => return,
            }
        }
    };
    let serving: Vec<_> = far.iter().map(|stream| move || serve(stream)).collect();
    let serving: Vec<&(dyn Fn() + Sync)> =
        serving.iter().map(|serve| serve as &(dyn Fn() + Sync)).collect();
    let ask = |mut stream: &TcpStream| -> std::io::Result<()> {
        stream.write_all(&[7; SIZE])?;
        stream.read_exact(&mut [0; SIZE])
    };
    asked((near, ask), &serving, &over, time)
}

/// Each client asks until the time is over, while those serve.
fn asked<C: Sync>(
    (clients, ask): (Vec<C>, impl Fn(&C) -> std::io::Result<()> + Sync),
    serving: &[&(dyn Fn() + Sync)],
    over: &AtomicBool,
    time: Duration,
) -> Result<Answers> {
    std::thread::scope(|scope| {
        for serve in serving {
            scope.spawn(serve);
        }
        let asking: Vec<_> = clients
            .iter()
            .map(|client| {
                let ask = &ask;
                scope.spawn(move || {
                    pin(GENERATORS_CORE);
                    let (began, mut micros) = (Instant::now(), Vec::new());
                    while began.elapsed() < time {
                        let asked = Instant::now();
                        if ask(client).is_ok() {
                            micros.push(asked.elapsed().as_nanos() as f64 / 1000.0);
                        }
                    }
                    micros
                })
            })
            .collect();
        let micros = asking
            .into_iter()
            .flat_map(|client| client.join().expect("a client does not panic"))
            .collect();
        over.store(true, Ordering::Relaxed);
        Answers::of(micros, time)
    })
}

fn udp(address: &str, port: u16) -> Result<UdpSocket> {
    let socket = UdpSocket::bind((address, port))
        .with_context(|| format!("{address}: a socket for requests"))?;
    socket.set_read_timeout(Some(PATIENCE))?;
    Ok(socket)
}
