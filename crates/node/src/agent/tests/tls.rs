//! TLS between two switches' agents: one calls, the other is called, and both say what is wrong.

use super::client::Client;
use crate::agent::{Agent, Endpoints, LinkStatus, Phase, Timing};
use crate::switch::Switch;
use crate::switch::tests::switch;
use crate::tls::tests::Authority;
use crate::tls::{Credentials, Tls};
use api::{Controller, Host, Listen, Target, TlsSpec, Transport};
use openflow::{FragmentMode, Message, SwitchConfig};
use rcgen::ExtendedKeyUsagePurpose;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{TlsAcceptor, TlsConnector};

const PATIENCE: Duration = Duration::from_secs(20);
const NAME: &str = "localhost";

fn quick() -> Timing {
    let retry = Duration::from_millis(10);
    Timing { retry_min: retry, retry_max: 2 * retry, ..Timing::default() }
}

fn endpoints(spec: &TlsSpec) -> Endpoints {
    Endpoints { tls: Some(Tls::new(spec.clone())), ..Endpoints::default() }
}

/// A switch that waits for controllers.
async fn waiting(spec: &TlsSpec, transport: Transport) -> (Agent, Arc<Switch>, SocketAddr) {
    let (switch, _) = switch();
    let listen = vec![Listen::at(transport, "127.0.0.1:0".parse().unwrap())];
    let agent = Agent::start(switch.clone(), &Endpoints { listen, ..endpoints(spec) }, quick())
        .await
        .unwrap();
    let address = agent.listening()[0];
    (agent, switch, address)
}

/// A switch that calls a controller, by name or by address.
async fn calling(
    spec: &TlsSpec,
    transport: Transport,
    host: Host,
    port: u16,
) -> (Agent, Arc<Switch>) {
    let (switch, _) = switch();
    let text = match transport {
        Transport::Tls => format!("ssl:{host}:{port}"),
        Transport::Tcp => format!("tcp:{host}:{port}"),
    };
    let controller: Controller = text.parse().unwrap();
    assert_eq!(*controller.target(), Target { transport, host, port });
    let endpoints = Endpoints { controllers: vec![controller], ..endpoints(spec) };
    (Agent::start(switch.clone(), &endpoints, quick()).await.unwrap(), switch)
}

fn local() -> Host {
    Host::Ip([127, 0, 0, 1].into())
}

async fn status(agent: &Agent, is_so: impl Fn(&LinkStatus) -> bool) -> LinkStatus {
    let look = async {
        loop {
            let status = agent.links()[0].status();
            if is_so(&status) {
                return status;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, look)
        .await
        .unwrap_or_else(|_| panic!("{:?}", agent.links()[0].status()))
}

async fn trouble(agent: &Agent, part: &str) {
    let is_it = |status: &LinkStatus| {
        status.trouble.as_ref().is_some_and(|(_, found)| found.cause.contains(part))
    };
    let (_, found) = status(agent, is_it).await.trouble.unwrap();
    assert!(!found.remedy.is_empty());
}

fn connector(spec: &TlsSpec) -> TlsConnector {
    TlsConnector::from(Credentials::load(spec).unwrap().client.clone())
}

#[tokio::test]
async fn a_controller_is_called_by_name_over_tls_and_says_which_version_and_role() {
    let authority = Authority::new();
    let controller = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = controller.local_addr().unwrap().port();
    let ours = authority.sign("sw", &[]);
    let theirs = authority.sign("ctl", &[NAME]);
    let (agent, switch) = calling(&ours, Transport::Tls, Host::Name(NAME.into()), port).await;
    let (stream, _) = controller.accept().await.unwrap();
    let acceptor = TlsAcceptor::from(Credentials::load(&theirs).unwrap().server.clone());
    let mut client = Client::over(acceptor.accept(stream).await.unwrap()).greet().await;
    assert!(switch.has_controller());
    assert!(matches!(client.ask(Message::FeaturesRequest).await, Message::FeaturesReply(_)));
    let connected = status(&agent, |status| status.phase == Phase::Connected).await;
    let connection = connected.connection.unwrap();
    assert_eq!((connection.version, connection.role), ("1.3", "equal"));
    assert_eq!(connected.target, format!("ssl:localhost:{port}"));
    drop(client);
    status(&agent, |status| status.phase != Phase::Connected && status.connection.is_none()).await;
}

#[tokio::test]
async fn a_caller_with_a_certificate_of_our_authority_is_served() {
    let authority = Authority::new();
    let (_agent, switch, at) = waiting(&authority.sign("sw", &[NAME]), Transport::Tls).await;
    let stream = TcpStream::connect(at).await.unwrap();
    let name = NAME.try_into().unwrap();
    let stream = connector(&authority.sign("ctl", &[])).connect(name, stream).await.unwrap();
    let mut client = Client::over(stream).greet().await;
    assert!(!switch.has_controller(), "a tool until it behaves as a controller");
    let config = SwitchConfig { fragments: FragmentMode::Normal, miss_send_len: 128 };
    client.send(Message::SetConfig(config)).await;
    client.ask(Message::BarrierRequest).await;
    assert!(switch.has_controller());
}

/// One side's certificates against the other's; what each says.
async fn both_say(
    called: &TlsSpec,
    caller: &TlsSpec,
    host: Host,
    by_called: &str,
    by_caller: &str,
) {
    let (called, _, at) = waiting(called, Transport::Tls).await;
    let (caller, switch) = calling(caller, Transport::Tls, host, at.port()).await;
    trouble(&called, by_called).await;
    trouble(&caller, by_caller).await;
    assert!(switch.connections().is_empty());
}

#[tokio::test]
async fn a_certificate_of_another_authority_is_refused_on_either_side() {
    let (ours, theirs) = (Authority::new(), Authority::new());
    let good = ours.sign("sw", &[NAME]);
    let stranger = TlsSpec { ca: good.ca.clone(), ..theirs.sign("ctl", &[NAME]) };
    both_say(
        &good,
        &stranger,
        local(),
        "is of no CA in our `ca` file",
        "does not know the CA of our certificate",
    )
    .await;
    both_say(
        &stranger,
        &good,
        local(),
        "does not know the CA of our certificate",
        "is of no CA in our `ca` file",
    )
    .await;
}

#[tokio::test]
async fn an_expired_certificate_is_refused_on_either_side() {
    let authority = Authority::new();
    let (good, old) = (authority.sign("new", &[NAME]), authority.sign_expired("old", &[NAME]));
    both_say(&good, &old, local(), "peer's certificate has expired", "our certificate has expired")
        .await;
    both_say(&old, &good, local(), "our certificate has expired", "peer's certificate has expired")
        .await;
}

#[tokio::test]
async fn a_certificate_counts_for_its_name_its_side_and_its_pin_only() {
    let authority = Authority::new();
    let by_name = || Host::Name(NAME.into());
    let (good, other) =
        (authority.sign("good", &[NAME]), authority.sign("other", &["ctl.example"]));
    both_say(
        &other,
        &good,
        by_name(),
        "TLS: ",
        "is for DnsName(\"ctl.example\"), not for localhost",
    )
    .await;
    let client_only = authority.sign_for("client", &[NAME], ExtendedKeyUsagePurpose::ClientAuth);
    both_say(&client_only, &good, local(), "TLS: ", "is not meant for its side").await;
    let pin = "sha256:".to_owned() + &"00".repeat(32);
    let strict = TlsSpec { pins: vec![pin.parse().unwrap()], ..good.clone() };
    both_say(&good, &strict, local(), "TLS: ", "is not among `pins`: its fingerprint is sha256:")
        .await;
    both_say(&strict, &good, local(), "is not among `pins`", "TLS: ").await;
}

#[tokio::test]
async fn a_controller_called_by_its_address_needs_no_certificate_for_that() {
    let authority = Authority::new();
    let (_called, _, at) =
        waiting(&authority.sign("other", &["ctl.example"]), Transport::Tls).await;
    let (agent, switch) =
        calling(&authority.sign("sw", &[]), Transport::Tls, local(), at.port()).await;
    // Both are switches: they agree on a version and have nothing to say.
    status(&agent, |status| status.phase == Phase::Connected).await;
    assert!(switch.has_controller());
}

#[tokio::test]
async fn a_caller_without_a_certificate_gets_the_alert_that_says_so() {
    let authority = Authority::new();
    let (agent, _, at) = waiting(&authority.sign("sw", &[NAME]), Transport::Tls).await;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = rustls::RootCertStore::empty();
    let pem = std::fs::read(authority.file("ca.pem")).unwrap();
    roots.add(CertificateDer::from_pem_slice(&pem).unwrap()).unwrap();
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(at).await.unwrap();
    let name = NAME.try_into().unwrap();
    let mut stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap();
    let error = stream.read(&mut [0; 8]).await.unwrap_err();
    assert!(error.to_string().contains("CertificateRequired"), "{error}");
    trouble(&agent, "127.0.0.1: TLS: the peer shows no certificate").await;
}

#[tokio::test]
async fn plain_openflow_at_a_tls_address_is_told_so_in_openflow() {
    let authority = Authority::new();
    let (agent, _, at) = waiting(&authority.sign("sw", &[NAME]), Transport::Tls).await;
    let mut stream = TcpStream::connect(at).await.unwrap();
    stream.write_all(&[4, 0, 0, 8, 0, 0, 0, 77]).await.unwrap();
    let mut answer = Vec::new();
    tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await.unwrap().unwrap();
    assert_eq!(answer[..2], [4, 1], "an error of the peer's version");
    assert_eq!(
        answer[4..12],
        [0, 0, 0, 77, 0, 0, 0, 0],
        "its transaction; hello failed, incompatible"
    );
    assert!(String::from_utf8_lossy(&answer).ends_with("connect with ssl: instead of tcp:"));
    trouble(&agent, "the peer speaks OpenFlow without TLS").await;
}

#[tokio::test]
async fn anything_else_at_a_tls_address_gets_an_alert() {
    let authority = Authority::new();
    let (agent, _, at) = waiting(&authority.sign("sw", &[NAME]), Transport::Tls).await;
    let mut stream = TcpStream::connect(at).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await.unwrap().unwrap();
    assert_eq!(answer.first(), Some(&21), "an alert: {answer:?}");
    trouble(&agent, "what the peer sends is not TLS").await;
}

#[tokio::test]
async fn tls_at_a_plain_address_is_named_on_both_sides() {
    let authority = Authority::new();
    let spec = authority.sign("sw", &[NAME]);
    let (plain, _, at) = waiting(&spec, Transport::Tcp).await;
    let (tls, _) = calling(&spec, Transport::Tls, local(), at.port()).await;
    trouble(&plain, "the peer speaks TLS, and this connection is plain TCP").await;
    trouble(&tls, "what the peer sends is not TLS").await;
}

#[tokio::test]
async fn plain_calls_to_a_tls_controller_are_named_on_both_sides() {
    let authority = Authority::new();
    let spec = authority.sign("sw", &[NAME]);
    let (tls, _, at) = waiting(&spec, Transport::Tls).await;
    let (plain, _) = calling(&spec, Transport::Tcp, local(), at.port()).await;
    trouble(&tls, "the peer speaks OpenFlow without TLS").await;
    trouble(&plain, "hello: ").await;
}

#[tokio::test]
async fn the_next_connection_shows_the_certificate_of_now_and_standing_ones_go_on() {
    let authority = Authority::new();
    let spec = authority.sign("sw", &[NAME]);
    let (_agent, _, at) = waiting(&spec, Transport::Tls).await;
    let caller = authority.sign("ctl", &[]);
    let shown = async || {
        let stream = TcpStream::connect(at).await.unwrap();
        let stream = connector(&caller).connect(NAME.try_into().unwrap(), stream).await.unwrap();
        let shown = stream.get_ref().1.peer_certificates().unwrap()[0].to_vec();
        (Client::over(stream).greet().await, shown)
    };
    let (mut standing, first) = shown().await;
    let next = authority.sign("next", &[NAME]);
    std::fs::rename(next.key, &spec.key).unwrap();
    std::fs::rename(next.certificate, &spec.certificate).unwrap();
    let (_second, second) = shown().await;
    assert_ne!(first, second);
    assert_eq!(standing.ask(Message::BarrierRequest).await, Message::BarrierReply);
}

#[tokio::test]
async fn a_controller_by_tls_without_certificates_of_ours_is_not_called() {
    let (switch, _) = switch();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let controllers = vec![Controller::at(Transport::Tls, at)];
    let endpoints = Endpoints { controllers, ..Endpoints::default() };
    let agent = Agent::start(switch, &endpoints, quick()).await.unwrap();
    trouble(&agent, "no certificate is configured").await;
}
