//! Calling a controller until it answers, and again whenever it is gone.

use crate::agent::Shared;
use crate::agent::liveness::Backoff;
use crate::agent::peer::PeerKind;
use crate::agent::session::{Caller, End, serve};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpStream;

/// Calls `controller` for ever. An outage is logged once, at its beginning, with the remedy; its end is logged too.
pub async fn keep_connected(controller: SocketAddr, shared: Arc<Shared>) {
    let mut backoff = Backoff::new(shared.timing);
    let mut reported = false;
    let switch = shared.switch.name();
    loop {
        let wait = match call(controller, &shared).await {
            Ok(stream) => {
                let name = format!("tcp:{controller}");
                let caller = Caller {
                    id: shared.next_id(),
                    name,
                    kind: PeerKind::Controller,
                    timing: shared.timing,
                };
                let end = serve(stream, caller, shared.switch.clone()).await;
                reported = report_end(switch, controller, &end, reported);
                if end.is_fault_of_peer() {
                    backoff.after_failure()
                } else {
                    backoff.after_success()
                }
            }
            Err(error) => {
                if !std::mem::replace(&mut reported, true) {
                    tracing::warn!(switch, %controller, step = "connect", cause = %error,
                        "no controller; start it, or correct the switch's controllers. Trying on");
                }
                backoff.after_failure()
            }
        };
        tokio::time::sleep(wait).await;
    }
}

async fn call(controller: SocketAddr, shared: &Shared) -> io::Result<TcpStream> {
    let stream =
        tokio::time::timeout(shared.timing.hello_within, TcpStream::connect(controller)).await??;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Logs a connection's end: a fault of the controller once per outage.
fn report_end(switch: &str, controller: SocketAddr, end: &End, reported: bool) -> bool {
    if !end.is_fault_of_peer() {
        tracing::info!(switch, %controller, cause = %end, "controller gone");
        return false;
    }
    if !reported {
        tracing::warn!(switch, %controller, cause = %end, "controller disconnected. Trying on");
    }
    true
}
