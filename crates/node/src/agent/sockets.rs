//! In which network namespace a switch's connections begin: its own sockets come from whoever may enter it.

use std::future::Future;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::Arc;
use tokio::net::TcpSocket;

/// A socket on its way.
pub type Coming = Pin<Box<dyn Future<Output = io::Result<OwnedFd>> + Send>>;

/// Makes TCP sockets somewhere else, of IPv6 if that is true.
pub type Sockets = Arc<dyn Fn(bool) -> Coming + Send + Sync>;

/// A TCP socket for that address.
///
/// # Errors
/// The host refuses it, or its namespace is not there.
pub async fn socket(address: SocketAddr, sockets: Option<&Sockets>) -> io::Result<TcpSocket> {
    match sockets {
        // A socket that is not connected is one all the same: the type only says that it speaks TCP.
        Some(make) => {
            Ok(TcpSocket::from_std_stream(TcpStream::from(make(address.is_ipv6()).await?)))
        }
        None if address.is_ipv4() => TcpSocket::new_v4(),
        None => TcpSocket::new_v6(),
    }
}
