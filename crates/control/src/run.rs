//! A controller from start to end: the store is opened, which only one process can; then the API is served until a signal comes.

use crate::controller::Controller;
use crate::http;
use crate::store::Embedded;
use api::{Fault, chain};
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::net::UnixListener;
use tokio::signal::unix::{SignalKind, signal};

/// The API's socket in the run directory.
pub const SOCKET: &str = "api.sock";
/// Threads for connections. Chosen: one can work while another waits for the disk.
const THREADS: usize = 2;

/// What to run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Directory of the API's socket.
    pub run_dir: PathBuf,
    /// Directory of the store.
    pub state_dir: PathBuf,
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
    runtime.block_on(serve(&socket, Arc::new(controller))).map_err(failed("serve its API"))?;
    // Nodes that wait for an answer ask again, of the next one.
    runtime.shutdown_background();
    let _ = std::fs::remove_file(socket);
    Ok(())
}

async fn serve(socket: &Path, controller: Arc<Controller>) -> io::Result<()> {
    match std::fs::remove_file(socket) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(socket)?;
    std::fs::set_permissions(socket, Permissions::from_mode(0o660))?;
    tracing::info!("serving {}", socket.display());
    let (mut terminate, mut interrupt) =
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    tokio::select! {
        served = http::serve(listener, controller, std::future::pending()) => return served,
        _ = terminate.recv() => tracing::info!("SIGTERM: ending"),
        _ = interrupt.recv() => tracing::info!("SIGINT: ending"),
    }
    Ok(())
}
