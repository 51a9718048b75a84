//! A controller from start to end: the store is opened, which only one process can; then the API is served until a signal comes.

use crate::controller::{Controller, now_s};
use crate::doors::{Bounds, Here, There};
use crate::http;
use crate::store::Embedded;
use api::{Fault, chain};
use std::fmt::Display;
use std::fs::Permissions;
use std::io;
use std::net::SocketAddr;
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
    runtime.block_on(serve(&socket, &options.listen, Arc::new(controller)))?;
    // Nodes that wait for an answer ask again, of the next one.
    runtime.shutdown_background();
    let _ = std::fs::remove_file(socket);
    Ok(())
}

async fn serve(
    socket: &Path,
    addresses: &[SocketAddr],
    controller: Arc<Controller>,
) -> Result<(), Fault> {
    let mut servers = JoinSet::new();
    for address in addresses {
        let there = There::open(*address, controller.authority(), now_s, Bounds::default()).await;
        let there = there.map_err(|error| cannot_listen(address, &error))?;
        tracing::info!("serving {} by TLS", there.address());
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
