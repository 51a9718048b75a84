//! Controllers by TLS, as the tests' own: one that switches call, and one that calls.

use crate::PORT;
use crate::certificates::tls_options;
use acceptance::{Lab, Speaker, inside, until};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection, StreamOwned,
};
use serde_json::Value;
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

/// Longest wait for the switch. Chosen: far above what a loaded machine needs.
const PATIENCE: Duration = Duration::from_secs(20);

/// The session of a controller that was called.
pub type Called = Speaker<StreamOwned<ServerConnection, TcpStream>>;

/// The session of a controller that calls.
pub type Calling = Speaker<StreamOwned<ClientConnection, TcpStream>>;

/// A controller that waits for switches of our authority in the node's namespace, until it is dropped.
pub struct TlsController {
    listener: TcpListener,
    config: Arc<ServerConfig>,
}

impl TlsController {
    const ADDRESS: &str = "127.0.0.1:6653";

    /// Waits from now on.
    pub fn wait(lab: &Lab) -> Self {
        let provider = Arc::new(ring::default_provider());
        let roots = Arc::new(authorities(lab));
        let clients = WebPkiClientVerifier::builder_with_provider(roots, provider.clone());
        let (chain, key) = identity(lab, "ctl");
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(clients.build().unwrap())
            .with_single_cert(chain, key)
            .unwrap();
        let listener = inside(&lab.netns, || TcpListener::bind(Self::ADDRESS).unwrap());
        listener.set_nonblocking(true).unwrap();
        Self { listener, config: Arc::new(config) }
    }

    /// The next connection that the switch makes.
    pub fn accept(&self) -> Called {
        let mut called = None;
        until("the switch calls", || {
            called = self.listener.accept().ok();
            called.is_some()
        });
        let (stream, _) = called.expect("the switch has called");
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let tls = ServerConnection::new(self.config.clone()).unwrap();
        Speaker::greet(StreamOwned::new(tls, stream))
    }
}

/// Makes the switch `sw0` that calls the controller. It asks for no echo: a test's controller reads only now and then.
pub fn add_switch(lab: &Lab, options: &[&str]) {
    let target = format!("ssl:{}", TlsController::ADDRESS);
    let tls = tls_options(lab);
    let tls: Vec<_> = tls.iter().map(String::as_str).collect();
    let add = ["switch", "add", "sw0", "--controller", &target, "--echo-interval-s", "60"];
    lab.suiro(&[&add[..], &tls, options].concat());
}

/// What the switch says of the controller that it calls, or of the address that it waits at.
pub fn endpoint(lab: &Lab) -> Value {
    lab.json(&["switch", "show", "sw0"])["endpoints"][0].clone()
}

/// Waits until the switch is connected to its controller, or is not.
pub fn await_connected(lab: &Lab, connected: bool) {
    let what = if connected { "the controller is connected" } else { "the controller is gone" };
    until(what, || (endpoint(lab)["state"] == "connected") == connected);
}

/// Calls the switch `sw0` with a certificate of ours.
pub fn call(lab: &Lab, owner: &str) -> Calling {
    let (chain, key) = identity(lab, owner);
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(authorities(lab))
        .with_client_auth_cert(chain, key)
        .unwrap();
    let address = format!("127.0.0.1:{PORT}");
    let stream = inside(&lab.netns, || TcpStream::connect(address).unwrap());
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let name = "localhost".try_into().unwrap();
    let tls = ClientConnection::new(Arc::new(config), name).unwrap();
    Speaker::greet(StreamOwned::new(tls, stream))
}

fn identity(lab: &Lab, owner: &str) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
    let chain = certificates(lab, &format!("{owner}.pem"));
    (chain, PrivateKeyDer::from_pem_file(lab.path(&format!("{owner}.key"))).unwrap())
}

fn authorities(lab: &Lab) -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(certificates(lab, "ca.pem"));
    roots
}

fn certificates(lab: &Lab, file: &str) -> Vec<CertificateDer<'static>> {
    let found = CertificateDer::pem_file_iter(lab.path(file)).unwrap();
    found.map(Result::unwrap).collect()
}
