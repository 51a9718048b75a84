//! Who may ask for what, by TLS on loopback: every operation of the document is tried as everybody.

use super::*;
use crate::controller::now_s;
use crate::doors::{Bounds, Door};
use crate::store::Embedded;
use api::{
    As, Client, ClientError, ControllerAt, Declaration, Fault, JoinRequest, JoinTokenSpec, Joined,
    Method, Role, Token, UserSpec,
};
use rcgen::{CertificateParams, KeyPair};
use std::io::Read;
use std::net::SocketAddr;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const DOMAIN: &str = "suiro: domain/1\nsites: {tokyo: {}}\nunderlays: {wan: {kind: vxlan, family: ipv4, mtu: 9000}}\nnodes:\n  t1: {site: tokyo, underlay: {wan: {addresses: [192.0.2.1], interface: eth0}}}\n  t2: {site: tokyo, underlay: {wan: {addresses: [192.0.2.2], interface: eth0}}}\ntenants: {red: {}, blue: {}}\n";
const PATIENCE: Duration = Duration::from_secs(10);

/// A controller that listens on loopback.
struct Served {
    controller: Shared,
    address: SocketAddr,
    _runtime: tokio::runtime::Runtime,
    _directory: tempfile::TempDir,
}

impl Served {
    fn new() -> Self {
        Self::at(now_s)
    }

    /// One whose certificate is of that time.
    fn at(clock: fn() -> u64) -> Self {
        Self::within(clock, Bounds::default())
    }

    fn within(clock: fn() -> u64, bounds: Bounds) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let store = Embedded::open(&directory.path().join("control.redb")).unwrap();
        let controller = Controller::new(Arc::new(store)).map_err(ApiError::into_fault).unwrap();
        let (text, file) = (DOMAIN.into(), "domain.yaml".into());
        let declared = Declaration { file, text, ..Declaration::default() };
        controller.put_domain(declared).map_err(ApiError::into_fault).unwrap();
        let controller = Arc::new(controller);
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let door = Door::Domain(controller.authority(), clock);
        let there = runtime.block_on(async { There::open(listener, door, bounds) }).unwrap();
        let address = there.address();
        runtime.spawn(serve_there(there, controller.clone()));
        Self { controller, address, _runtime: runtime, _directory: directory }
    }

    fn client(&self, who: As) -> Client {
        let authority = api::Pin::new(self.controller.authority().fingerprint());
        let controller = ControllerAt::new(&self.address.to_string(), &authority, who).unwrap();
        Client::remote(controller, PATIENCE)
    }

    fn user(&self, name: &str, tenant: Option<&str>, role: Role) -> Client {
        let spec = UserSpec { tenant: tenant.map(str::to_owned), role, for_s: 60 };
        let made = self.controller.put_user(&name.parse().unwrap(), spec);
        self.client(As::Bearer(made.map_err(ApiError::into_fault).unwrap().token))
    }

    fn token(&self, nodes: &[&str]) -> Token {
        let nodes = nodes.iter().map(|&node| node.into()).collect();
        let made = self.controller.add_token(&JoinTokenSpec { nodes, for_s: 60 });
        made.map_err(ApiError::into_fault).unwrap().token
    }

    fn join(&self, node: &str, token: &Token) -> Result<(KeyPair, Joined), Fault> {
        let key = KeyPair::generate().unwrap();
        let request = CertificateParams::default().serialize_request(&key).unwrap();
        let (node, token, request) = (node.into(), token.clone(), request.pem().unwrap());
        let request = JoinRequest { node, token, request };
        let joined = self.client(As::Nobody).send(Method::POST, "/v1/join", &request);
        joined.map(|joined| (key, joined)).map_err(fault)
    }

    fn node(&self, node: &str) -> Client {
        let (key, joined) = self.join(node, &self.token(&[node])).unwrap();
        self.client(As::Certificate { certificate: joined.certificate, key: key.serialize_pem() })
    }
}

fn fault(error: ClientError) -> Fault {
    match error {
        ClientError::Refused(body) => body.error,
        ClientError::NoNode(fault) | ClientError::Silent(fault) => fault,
    }
}

/// Whether the request came as far as a handler: the gate's refusals have steps of their own.
fn passes(client: &Client, method: &Method, path: &str) -> bool {
    let answer: Result<serde_json::Value, _> = if *method == Method::GET {
        client.get(path)
    } else {
        client.send(method.clone(), path, &serde_json::json!({"no": "body of any"}))
    };
    answer.map_err(fault).map_or_else(
        |fault| !["know who asks", "do what was asked"].contains(&fault.step.as_str()),
        |_| true,
    )
}

/// What the documentation says of roles, said once more and in another way than the gate does.
fn may(who: &str, method: &Method, path: &str) -> bool {
    let reads = *method == Method::GET;
    let words: Vec<_> = path.trim_start_matches("/v1/").split(['/', '?']).collect();
    let of_node = |node: &str| {
        words[0] == "nodes"
            && words.get(1) == Some(&node)
            && ["report", "certificate", "parts", "streams"].contains(words.get(2).unwrap_or(&""))
    };
    match who {
        _ if path == "/v1/join" || path == "/v1/session" && *method == Method::POST => true,
        "nobody" => false,
        "node t1" => of_node("t1"),
        "operator" => !of_node("t1") && !of_node("t2"),
        _ if ["self", "read", "events", "sites", "session", "calendar", "calendar.ics"]
            .contains(&words[0])
            || path == "/v1/slices" =>
        {
            true
        }
        "user of red" => words[..words.len().min(2)] == ["slices", "red"],
        "viewer of red" => {
            words[..words.len().min(2)] == ["slices", "red"]
                && (reads && words.last() != Some(&"console") || words.last() == Some(&"why"))
        }
        other => panic!("{other}"),
    }
}

#[test]
fn every_operation_of_the_document_is_refused_to_everybody_but_those_whose_it_is() {
    let served = Served::new();
    let callers = [
        ("nobody", served.client(As::Nobody)),
        ("node t1", served.node("t1")),
        ("user of red", served.user("alice", Some("red"), Role::User)),
        ("viewer of red", served.user("bob", Some("red"), Role::Viewer)),
        ("operator", served.user("ops", None, Role::Operator)),
    ];
    let document: serde_json::Value = serde_json::from_str(&document()).unwrap();
    let mut tried = 0;
    for (path, operations) in document["paths"].as_object().unwrap() {
        for method in operations.as_object().unwrap().keys() {
            let method: Method = method.to_uppercase().parse().unwrap();
            for (tenant, node) in [("red", "t1"), ("blue", "t2")] {
                let values = [
                    ("tenant", tenant),
                    ("node", node),
                    ("slice", "s"),
                    ("part", "underlay"),
                    ("user", "u"),
                    ("id", "0"),
                    ("guest", "h1"),
                    ("switch", "s1"),
                ];
                let path = values.iter().fold(path.clone(), |path, (word, value)| {
                    path.replace(&format!("{{{word}}}"), value)
                });
                assert!(!path.contains('{'), "{path}: a word without a value");
                for (who, client) in &callers {
                    // Forgetting a node ends what it may: tried as others only.
                    if path.ends_with("/forget") && *who == "operator" {
                        continue;
                    }
                    assert_eq!(
                        passes(client, &method, &path),
                        may(who, &method, &path),
                        "{who}: {method} {path}"
                    );
                    tried += 1;
                }
            }
        }
    }
    assert!(tried > 150, "{tried}");
    let lines = served.controller.audit().map_err(ApiError::into_fault).unwrap();
    assert!(
        lines.iter().any(|line| line.who.starts_with("user alice of red") && line.status == 403)
    );
    assert!(lines.iter().all(|line| !line.who.starts_with("nobody") || line.status == 200));
}

#[test]
fn a_node_reports_as_itself_alone_and_is_nobody_when_it_is_forgotten_or_its_name_joins_anew() {
    let served = Served::new();
    let t1 = served.node("t1");
    let part = |client: &Client, node: &str| {
        client.get::<serde_json::Value>(&format!("/v1/nodes/{node}/parts/underlay")).map_err(fault)
    };
    assert!(part(&t1, "t1").is_ok());
    assert!(part(&t1, "t2").unwrap_err().cause.contains("only node t2 itself"));
    let again = served.node("t1");
    assert!(part(&t1, "t1").unwrap_err().cause.contains("joined anew"));
    assert!(part(&again, "t1").is_ok());
    served.controller.forget(&"t1".parse().unwrap()).map_err(ApiError::into_fault).unwrap();
    assert!(part(&again, "t1").unwrap_err().cause.contains("forgotten"));
}

#[test]
fn a_token_that_was_stolen_and_used_first_is_found_out() {
    let served = Served::new();
    let token = served.token(&["t1"]);
    served.join("t1", &token).unwrap();
    let said = served.join("t1", &token).unwrap_err();
    assert!(said.cause.contains("127.0.0.1") && said.remedy.contains("stolen"), "{said}");
    let said = served.join("t2", &token).unwrap_err();
    assert!(said.cause.contains("it is for t1"), "{said}");
    let other = Token { secret: [0; 32], ..token };
    assert!(served.join("t1", &other).unwrap_err().cause.contains("no such token"));
    let bad = JoinRequest { node: "t2".into(), token: served.token(&["t2"]), request: "?".into() };
    let refused = served.client(As::Nobody).send::<Joined>(Method::POST, "/v1/join", &bad);
    assert!(refused.map_err(fault).unwrap_err().step.contains("signing request"));
    // Which used no token.
    assert!(served.join("t2", &bad.token).is_ok());
}

#[test]
fn another_domains_controller_and_one_of_another_time_are_known_by_their_certificates() {
    let (ours, theirs) = (Served::new(), Served::new());
    let authority = api::Pin::new(ours.controller.authority().fingerprint());
    let wrong = ControllerAt::new(&theirs.address.to_string(), &authority, As::Nobody).unwrap();
    let error = Client::remote(wrong, PATIENCE).get::<serde_json::Value>("/v1/self");
    let said = fault(error.unwrap_err());
    assert!(said.cause.contains("another controller") && said.thing == "controller", "{said}");
    for clock in [(|| 1_000_000_000) as fn() -> u64, || now_s() + 40 * 86_400] {
        let late = Served::at(clock);
        let error = late.client(As::Nobody).get::<serde_json::Value>("/v1/self");
        let said = fault(error.unwrap_err());
        assert!(said.cause.contains("another time") && said.remedy.contains("date -u"), "{said}");
    }
}

#[test]
fn what_does_not_speak_tls_is_told_so_and_holds_nobody_up() {
    let served = Served::new();
    let _silent = std::net::TcpStream::connect(served.address).unwrap();
    let plain = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = plain.local_addr().unwrap().to_string();
    let answering = std::thread::spawn(move || {
        let (mut stream, _) = plain.accept().unwrap();
        std::io::Write::write_all(&mut stream, b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
        // Until the caller has gone.
        let _ = std::io::Read::read_to_end(&mut stream, &mut Vec::new());
    });
    let authority = api::Pin::new([0; 32]);
    let client =
        Client::remote(ControllerAt::new(&address, &authority, As::Nobody).unwrap(), PATIENCE);
    let said = fault(client.get::<serde_json::Value>("/v1/self").unwrap_err());
    assert!(said.cause.contains("does not speak TLS"), "{said}");
    drop(client);
    answering.join().unwrap();
    assert!(served.user("ops", None, Role::Operator).get::<serde_json::Value>("/v1/self").is_ok());
}

#[test]
fn a_certificate_whose_time_is_over_is_refused() {
    let served = Served::new();
    let key = KeyPair::generate().unwrap();
    let request = CertificateParams::default().serialize_request(&key).unwrap().pem().unwrap();
    let signed = served.controller.authority().sign("t1", &request, 1_000_000_000);
    let (certificate, _) = signed.map_err(ApiError::into_fault).unwrap();
    let old = served.client(As::Certificate { certificate, key: key.serialize_pem() });
    let said = fault(old.get::<serde_json::Value>("/v1/nodes/t1/parts/underlay").unwrap_err());
    assert!(said.cause.contains("another time") && said.remedy.contains("join again"), "{said}");
}

#[test]
fn the_document_in_the_repository_is_the_one_that_is_served() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/control-openapi.json");
    let (kept, served) = (std::fs::read_to_string(path).unwrap_or_default(), document());
    if kept != served {
        if std::env::var_os("SUIRO_UPDATE").is_some() {
            std::fs::write(path, served).unwrap();
            return;
        }
        panic!(
            "docs/reference/control-openapi.json is out of date: run this test with SUIRO_UPDATE=1 and review the change"
        );
    }
}

#[test]
fn a_tenants_user_hears_of_its_own_slices_and_an_operator_of_all() {
    let served = Served::new();
    let slice = |tenant: &str| {
        let text = format!("suiro: slice/1\nname: s\ntenant: {tenant}\n");
        let declared = Declaration { file: "s.yaml".into(), text, ..Declaration::default() };
        let key = format!("{tenant}/s").parse().unwrap();
        served.controller.put(&key, declared, None, None).map_err(ApiError::into_fault).unwrap();
    };
    slice("red");
    slice("blue");
    served.controller.look();
    let heard = |client: &Client| {
        let mut names = std::collections::BTreeSet::new();
        client
            .watch("/v1/events?since=oldest", |message| {
                let event: api::Event = serde_json::from_str(&message.data).unwrap();
                names.insert(event.news.name.unwrap());
                Ok::<_, ClientError>(std::ops::ControlFlow::Continue(()))
            })
            .unwrap();
        names.into_iter().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(heard(&served.user("alice", Some("red"), Role::User)), "red/s");
    assert_eq!(heard(&served.user("eve", Some("blue"), Role::Viewer)), "blue/s");
    assert_eq!(heard(&served.user("ops", None, Role::Operator)), "blue/s domain red/s");
}

/// A node that reports for as long as `asked` wants, and answers each question in these words.
fn answers(node: &Client, asked: &AtomicBool, answer: &[u8]) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let report = serde_json::json!({"cpu_milli": 2000, "memory": 1u64 << 30, "kinds": ["process"],
        "host": {"boot": "b", "socket": "/s"}, "parts": {}, "circuits": [], "strays": []});
    let report: api::Report = serde_json::from_value(report).unwrap();
    let mut done = std::collections::BTreeSet::new();
    while asked.load(Relaxed) {
        let wanted: api::Wanted = node.send(Method::POST, "/v1/nodes/t1/report", &report).unwrap();
        for number in wanted.streams.iter().filter(|number| done.insert(**number)) {
            let path = format!("/v1/nodes/t1/streams/{number}");
            runtime.block_on(async {
                let mut stream = node.upgraded(&path, Vec::new(), api::exec::STREAM).await.unwrap();
                let mut heard = Vec::new();
                while !heard.windows(4).any(|four| four == b"\r\n\r\n") {
                    stream.read_buf(&mut heard).await.unwrap();
                }
                stream.write_all(answer).await.unwrap();
                stream.shutdown().await.unwrap();
                // Until the controller has heard it.
                let _ = stream.read_to_end(&mut heard).await;
            });
        }
    }
}

#[test]
fn a_tenants_user_asks_about_a_guest_and_its_node_answers_by_a_stream_that_it_opens() {
    let served = Served::new();
    let t1 = served.node("t1");
    let log = "{\"text\":\"here\"}";
    let whole = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{log}", log.len());
    let switched = [
        &b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: suiro-exec\r\n\r\n"
            [..],
        b"\x01\0\0\0\x02hi\x03\0\0\0\x01\x07",
    ]
    .concat();
    let during = |answer: &[u8], work: &dyn Fn()| {
        let asked = AtomicBool::new(true);
        std::thread::scope(|scope| {
            scope.spawn(|| answers(&t1, &asked, answer));
            work();
            asked.store(false, Relaxed);
        });
    };
    let alice = served.user("alice", Some("red"), Role::User);
    let ask =
        |who: &Client| who.get::<api::LogView>("/v1/slices/red/s/guests/h1/log").map_err(fault);
    during(whole.as_bytes(), &|| {
        let mut heard = served.controller.heard_moves();
        served._runtime.block_on(heard.changed()).unwrap();
        let text = "suiro: slice/1\nname: s\ntenant: red\nswitches: {s1: {site: tokyo, dpid: '0x1'}}\nguests: {h1: {kind: process, site: tokyo, ports: {eth0: {to: 's1:1'}}}}\n";
        let declared =
            Declaration { file: "s.yaml".into(), text: text.into(), ..Declaration::default() };
        let put = served.controller.put(&"red/s".parse().unwrap(), declared, None, None);
        put.map_err(ApiError::into_fault).unwrap();
        assert_eq!(ask(&alice).unwrap().text, "here");
        let eve = served.user("eve", Some("blue"), Role::User);
        assert!(ask(&eve).unwrap_err().cause.contains("that is tenant red's"));
    });
    let run = |who: &Client| {
        let request = api::exec::ExecRequest { command: vec!["id".into()], terminal: None };
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let path = "/v1/slices/red/s/guests/h1/exec";
        let to: api::Outputs<'_> = (&mut out, &mut err);
        who.exec(path, &request, std::io::empty(), to, || None).map(|status| (status, out))
    };
    during(&switched, &|| assert_eq!(run(&alice).unwrap(), (7, b"hi".to_vec())));
    let bob = served.user("bob", Some("red"), Role::Viewer);
    assert!(fault(run(&bob).unwrap_err()).cause.contains("sees and does not change"));
    let lines = served.controller.audit().map_err(ApiError::into_fault).unwrap();
    let has = |who: &str, what: &str| {
        lines.iter().any(|line| line.who.starts_with(who) && line.what.ends_with(what))
    };
    assert!(has("user alice of red", "/guests/h1/exec id") && has("user bob", "/guests/h1/exec"));
    assert!(!lines.iter().any(|line| line.what.contains("/streams/")));
}

/// How long it took until the controller hung up on who says nothing.
fn until_hung_up(mut stream: impl Read) -> Duration {
    let began = std::time::Instant::now();
    let _ = stream.read_to_end(&mut Vec::new());
    began.elapsed()
}

/// A connection after its handshake.
fn shaken(served: &Served) -> rustls::StreamOwned<rustls::ClientConnection, TcpStream> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(served.controller.authority().certificate()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = api::CONTROLLER_NAME.try_into().unwrap();
    let session = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
    let stream = TcpStream::connect(served.address).unwrap();
    let mut stream = rustls::StreamOwned::new(session, stream);
    stream.conn.complete_io(&mut stream.sock).unwrap();
    stream
}

#[test]
fn who_says_nothing_before_or_behind_the_handshake_is_let_go_and_one_address_takes_not_all() {
    let short = Duration::from_millis(300);
    let bounds = Bounds { handshake: short, idle: short, of_an_address: 4 };
    let served = Served::within(now_s, bounds);
    let half = TcpStream::connect(served.address).unwrap();
    std::io::Write::write_all(&mut &half, b"\x16\x03\x01\x02\0").unwrap();
    assert!(until_hung_up(half) < PATIENCE);
    assert!(until_hung_up(shaken(&served)) < PATIENCE);
    let mut begun = shaken(&served);
    std::io::Write::write_all(&mut begun, b"GET /v1/self HTTP/1.1\r\nhost: ").unwrap();
    assert!(until_hung_up(begun) < PATIENCE);

    let patient = Bounds { of_an_address: 4, ..Bounds::default() };
    let served = Served::within(now_s, patient);
    let held: Vec<_> = (0..4).map(|_| shaken(&served)).collect();
    let fifth = TcpStream::connect(served.address).unwrap();
    assert!(until_hung_up(fifth) < Bounds::default().handshake, "refused, not waited for");
    drop(held);
    // They are counted until the controller has heard that they are gone.
    let again = || served.client(As::Nobody).get::<serde_json::Value>("/v1/openapi.json").is_ok();
    assert!((0..1000).any(|_| again()));
}
