//! A controller from start to end: the store is opened, which only one process can; then the API is served until a signal comes.

use crate::controller::{Controller, now_s};
use crate::doors::{Bounds, Door, Files, Here, There};
use crate::http;
use crate::store::Embedded;
use api::{Fault, chain};
use rustix::fs::{Mode, OFlags};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fmt::Display;
use std::fs::Permissions;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::UnixListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

/// The API's socket in the run directory.
pub const SOCKET: &str = "api.sock";
/// The file in the run directory that says where portals are, one address a line.
pub const PORTAL: &str = "portal";
/// Threads for connections. Chosen: one can work while another waits for the disk.
const THREADS: usize = 2;
/// Between two looks at how slices and nodes are.
const LOOK: Duration = Duration::from_millis(250);

/// What to run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Directory of the API's socket.
    pub run_dir: PathBuf,
    /// Directory of the store.
    pub state_dir: PathBuf,
    /// Where to listen for nodes and users, by TLS.
    pub listen: Vec<SocketAddr>,
    /// Where to listen for browsers.
    pub portals: Portals,
}

/// Doors for browsers.
#[derive(Clone, Debug, Default)]
pub struct Portals {
    /// Where.
    pub addresses: Vec<SocketAddr>,
    /// The certificate that they show; none: without TLS, on loopback alone.
    pub certificate: Option<Files>,
    /// The network namespace that they are in; none: the controller's own.
    pub netns: Option<PathBuf>,
}

/// Runs a controller until SIGTERM or SIGINT.
///
/// # Errors
/// The store or the socket cannot be had.
pub fn run(options: &Options) -> Result<(), Fault> {
    let failed = |step: &'static str| {
        move |error: io::Error| {
            Fault::new(
                "controller",
                step,
                error.to_string(),
                "run as root, or choose other directories: suiro control --help",
            )
        }
    };
    std::fs::create_dir_all(&options.run_dir).map_err(failed("make its run directory"))?;
    std::fs::create_dir_all(&options.state_dir).map_err(failed("make its state directory"))?;
    // The authority's key is in the store.
    std::fs::set_permissions(&options.state_dir, Permissions::from_mode(0o700))
        .map_err(failed("close its state directory"))?;
    let store = Embedded::open(&options.state_dir.join("control.redb"));
    let store = store.map_err(|error| {
        Fault::new("controller", "open its store", chain(&error), error.remedy())
    })?;
    let controller =
        Controller::new(Arc::new(store)).map_err(serve::error::ApiError::into_fault)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(THREADS)
        .thread_name("suiro-control")
        .enable_all()
        .build();
    let socket = options.run_dir.join(SOCKET);
    let runtime = runtime.map_err(failed("start its threads"))?;
    let portals = portals(options)?;
    runtime.block_on(serve(&socket, (&options.listen, portals), Arc::new(controller)))?;
    // Nodes that wait for an answer ask again, of the next one.
    runtime.shutdown_background();
    let _ = std::fs::remove_file(socket);
    let _ = std::fs::remove_file(options.run_dir.join(PORTAL));
    Ok(())
}

async fn serve(
    socket: &Path,
    (addresses, portals): (&[SocketAddr], Vec<(TcpListener, Door)>),
    controller: Arc<Controller>,
) -> Result<(), Fault> {
    let mut servers = JoinSet::new();
    for address in addresses {
        let door = Door::Domain(controller.authority(), now_s);
        let there = TcpListener::bind(address)
            .and_then(|listener| open(listener, door))
            .map_err(|error| cannot_listen(address, &error))?;
        tracing::info!("serving {} by TLS; portal: https://{0}/ui/", there.address());
        servers.spawn(http::serve_there(there, controller.clone()));
    }
    for (listener, door) in portals {
        let there =
            open(listener, door).map_err(|error| cannot_listen(&"a portal's address", &error))?;
        servers.spawn(http::serve_there(there, controller.clone()));
    }
    // Last: who waits for the socket finds all of it served.
    let here = bind(socket).map_err(|error| cannot_listen(&socket.display(), &error))?;
    servers.spawn(http::serve_here(Here(here), controller.clone()));
    tracing::info!("serving {}", socket.display());
    // Without systemd it does nothing.
    if let Err(error) = sd_notify::notify(&[sd_notify::NotifyState::Ready]) {
        tracing::warn!("systemd cannot be told: {error}");
    }
    let ended = tokio::select! {
        served = servers.join_next() => served.map_or(Ok(()), |served| served?),
        ended = signals() => ended,
        () = look(&controller) => Ok(()),
    };
    controller.feed().close();
    ended.map_err(|error| cannot_listen(&socket.display(), &error))
}

/// Opens the portals' doors, and writes down where they are.
fn portals(options: &Options) -> Result<Vec<(TcpListener, Door)>, Fault> {
    let Portals { addresses, certificate, netns } = &options.portals;
    let door = match certificate {
        Some(files) => {
            files.server()?;
            Door::Browsers(Arc::new(files.clone()))
        }
        None => Door::Near,
    };
    let (mut open, mut told) = (Vec::new(), String::new());
    for address in addresses {
        if certificate.is_none() && !address.ip().is_loopback() {
            return Err(Fault::new(
                format!("portal {address}"),
                "listen there",
                "passwords are never sent without TLS, but on loopback",
                "name a certificate (--portal-certificate, --portal-key), or a loopback address",
            ));
        }
        let listener =
            bind_in(netns.as_deref(), *address).map_err(|error| cannot_listen(address, &error))?;
        let at = listener.local_addr().map_err(|error| cannot_listen(address, &error))?;
        let scheme = if certificate.is_some() { "https" } else { "http" };
        told += &format!("{scheme}://{at}/ui/\n");
        tracing::info!("portal: {scheme}://{at}/ui/");
        open.push((listener, door.clone()));
    }
    let path = options.run_dir.join(PORTAL);
    let written = std::fs::write(&path, told);
    written.map_err(|error| cannot_listen(&path.display(), &error))?;
    Ok(open)
}

/// A socket that listens, of that namespace.
fn bind_in(netns: Option<&Path>, address: SocketAddr) -> io::Result<TcpListener> {
    let Some(netns) = netns else { return TcpListener::bind(address) };
    // A FIFO in its place keeps nobody waiting.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::open(netns, flags, Mode::empty())?;
    // A thread of its own is there, so that this process stays where it is.
    let inside = std::thread::spawn(move || {
        let network = Some(LinkNameSpaceType::Network);
        move_into_link_name_space(file.as_fd(), network)?;
        TcpListener::bind(address)
    });
    inside.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))
}

fn open(listener: TcpListener, door: Door) -> io::Result<There> {
    listener.set_nonblocking(true)?;
    There::open(tokio::net::TcpListener::from_std(listener)?, door, Bounds::default())
}

/// Looks again and again whose state has changed.
async fn look(controller: &Controller) {
    let mut each = tokio::time::interval(LOOK);
    each.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        each.tick().await;
        controller.look();
    }
}

/// Waits for SIGTERM or SIGINT.
async fn signals() -> io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::select! {
        _ = terminate.recv() => tracing::info!("SIGTERM: ending"),
        _ = interrupt.recv() => tracing::info!("SIGINT: ending"),
    }
    Ok(())
}

fn bind(socket: &Path) -> io::Result<UnixListener> {
    match std::fs::remove_file(socket) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(socket)?;
    std::fs::set_permissions(socket, Permissions::from_mode(0o660))?;
    Ok(listener)
}

fn cannot_listen(address: &dyn Display, error: &io::Error) -> Fault {
    Fault::new(
        "controller",
        format!("listen at {address}"),
        error.to_string(),
        "run as root, and choose an address of this host that nobody else has: suiro control --help",
    )
}
