//! Sessions, as a browser meets them: over the routes of a controller, by both doors.

use super::*;
use crate::controller::Controller;
use crate::http::router;
use crate::store::Embedded;
use api::{Declaration, Role, UserSpec};
use axum::body::Body as Bytes;
use axum::http::Request;
use http_body_util::BodyExt;
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use std::sync::Arc;

const DOMAIN: &str = "suiro: domain/1\nsites: {tokyo: {}}\ntenants: {red: {}, blue: {}}\n";
const PASSWORD: &str = "four words are enough";

/// A controller with users of two tenants, each with the same password.
struct Rig {
    controller: Arc<Controller>,
    runtime: tokio::runtime::Runtime,
    _directory: tempfile::TempDir,
}

/// What came back.
struct Got {
    status: u16,
    headers: HeaderMap,
    body: serde_json::Value,
}

/// What a browser has.
struct Browser<'a> {
    rig: &'a Rig,
    peer: Peer,
    cookie: String,
    csrf: String,
}

impl Rig {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let store = Embedded::open(&directory.path().join("control.redb")).unwrap();
        let controller = Controller::new(Arc::new(store)).map_err(ApiError::into_fault).unwrap();
        let (text, file) = (DOMAIN.into(), "domain.yaml".into());
        let declared = Declaration { file, text, ..Declaration::default() };
        controller.put_domain(declared).map_err(ApiError::into_fault).unwrap();
        let users = [
            ("alice", Some("red"), Role::User),
            ("vera", Some("red"), Role::Viewer),
            ("ops", None, Role::Operator),
        ];
        for (name, tenant, role) in users {
            let spec = UserSpec { tenant: tenant.map(str::to_owned), role, for_s: 86_400 };
            let name = name.parse().unwrap();
            controller.put_user(&name, spec).map_err(ApiError::into_fault).unwrap();
            controller.put_password(&name, PASSWORD).map_err(ApiError::into_fault).unwrap();
        }
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        Self { controller: Arc::new(controller), runtime, _directory: directory }
    }

    fn ask(
        &self,
        peer: &Peer,
        (method, path): (&str, &str),
        headers: &[(&str, &str)],
        body: &str,
    ) -> Got {
        let router = router(self.controller.clone()).layer(Extension(ConnectInfo(peer.clone())));
        let mut request = Request::builder().method(method).uri(path).header("host", "127.0.0.1:1");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Bytes::from(body.to_owned())).unwrap();
        self.runtime.block_on(async {
            let asked = tokio::spawn(TowerToHyperService::new(router).call(request));
            let (head, body) = asked.await.unwrap().unwrap().into_parts();
            let body = body.collect().await.unwrap().to_bytes();
            let body = serde_json::from_slice(&body).unwrap_or_default();
            Got { status: head.status.as_u16(), headers: head.headers, body }
        })
    }

    fn sign_in(&self, peer: &Peer, user: &str, password: &str) -> Got {
        let body = serde_json::json!({"user": user, "password": password}).to_string();
        let json = [("content-type", "application/json")];
        self.ask(peer, ("POST", "/v1/session"), &json, &body)
    }

    fn browser(&self, user: &str) -> Browser<'_> {
        let peer = near();
        let got = self.sign_in(&peer, user, PASSWORD);
        assert_eq!(got.status, 200, "{}", got.body);
        let cookie = got.headers["set-cookie"].to_str().unwrap().split(';').next().unwrap().into();
        Browser { rig: self, peer, cookie, csrf: got.body["csrf"].as_str().unwrap().into() }
    }
}

impl Browser<'_> {
    fn get(&self, path: &str) -> Got {
        self.rig.ask(&self.peer, ("GET", path), &[("cookie", &self.cookie)], "")
    }

    fn change(&self, method: &str, path: &str, csrf: &str, body: &str) -> Got {
        let headers = [("cookie", &*self.cookie), (api::CSRF_HEADER, csrf)];
        self.rig.ask(&self.peer, (method, path), &headers, body)
    }
}

fn near() -> Peer {
    Peer::Near("127.0.0.1:50000".parse().unwrap())
}

fn there(last: u8) -> Peer {
    Peer::There(([192, 0, 2, last], 1).into(), None)
}

#[test]
fn who_signs_in_is_the_user_until_the_sign_out_and_the_secret_is_kept_as_a_digest() {
    let rig = Rig::new();
    let alice = rig.browser("alice");
    let session = alice.get("/v1/session");
    assert_eq!((session.status, &session.body["user"]["tenant"]), (200, &"red".into()));
    assert_eq!(session.body["csrf"], *alice.csrf);
    assert_eq!(alice.get("/v1/self").body["name"], "alice");
    assert_eq!(alice.get("/v1/users").status, 403);
    let secret = alice.cookie.split('=').nth(1).unwrap();
    let file = std::fs::read(rig._directory.path().join("control.redb")).unwrap();
    let has = |text: &str| file.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(has("session/") && !has(secret) && !has(PASSWORD));
    let out = alice.change("DELETE", "/v1/session", &alice.csrf, "");
    assert_eq!(out.status, 200);
    assert!(out.headers["set-cookie"].to_str().unwrap().contains("Max-Age=0"));
    assert_eq!(alice.get("/v1/self").status, 401);
    assert_eq!(rig.ask(&near(), ("GET", "/v1/self"), &[], "").status, 401);
}

#[test]
fn a_change_without_the_sessions_token_is_refused_whatever_it_is() {
    let rig = Rig::new();
    let (ops, other) = (rig.browser("ops"), rig.browser("ops"));
    let document: serde_json::Value = serde_json::from_str(&crate::http::document()).unwrap();
    let mut tried = 0;
    for (path, operations) in document["paths"].as_object().unwrap() {
        let path = path.replace(['{', '}'], "");
        for method in operations.as_object().unwrap().keys().filter(|method| *method != "get") {
            if ["/v1/session", "/v1/join"].contains(&&*path) && method == "post" {
                continue;
            }
            for csrf in ["", "1", &*other.csrf] {
                let got = ops.change(&method.to_uppercase(), &path, csrf, "{}");
                let said = got.body["error"]["cause"].as_str().unwrap_or_default().to_owned();
                let refused = said.contains("X-CSRF-Token") || said.contains("only node");
                assert!(got.status == 403 && refused, "{method} {path}: {} {said}", got.status);
                tried += 1;
            }
        }
    }
    assert!(tried > 30, "{tried}");
    let made = r#"{"tenant":"blue","role":"user","for_s":60}"#;
    assert_eq!(ops.change("PUT", "/v1/users/bob", &ops.csrf, made).status, 200);
    let vera = rig.browser("vera");
    assert_eq!(vera.change("DELETE", "/v1/slices/red/s", &vera.csrf, "").status, 403);
}

#[test]
fn a_form_of_another_site_signs_nobody_in() {
    let rig = Rig::new();
    let body = serde_json::json!({"user": "alice", "password": PASSWORD}).to_string();
    for kind in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        "application/json;x",
    ] {
        let got = rig.ask(&near(), ("POST", "/v1/session"), &[("content-type", kind)], &body);
        assert_eq!(got.status, 415, "{kind}");
    }
    assert_eq!(rig.ask(&near(), ("POST", "/v1/session"), &[], &body).status, 415);
    // Another site's name that leads to loopback.
    let router = router(rig.controller.clone()).layer(Extension(ConnectInfo(near())));
    let request = Request::get("/ui/").header("host", "evil.example").body(Bytes::empty()).unwrap();
    let got = rig.runtime.block_on(TowerToHyperService::new(router).call(request)).unwrap();
    assert_eq!(got.status(), 421);
}

#[test]
fn wrong_names_and_passwords_are_told_alike_and_bounded_and_the_right_one_is_let_in_elsewhere() {
    let rig = Rig::new();
    let wrong = |peer: &Peer, user: &str| rig.sign_in(peer, user, "not the password of any");
    let (known, unknown) = (wrong(&there(1), "alice"), wrong(&there(1), "nobody"));
    assert_eq!((known.status, unknown.status), (401, 401));
    assert_eq!(known.body["error"]["cause"], unknown.body["error"]["cause"]);
    let statuses: Vec<_> = (0..10).map(|_| wrong(&there(1), "alice").status).collect();
    assert_eq!(statuses.iter().filter(|status| **status == 401).count(), 9);
    let refused = rig.sign_in(&there(1), "alice", PASSWORD);
    assert_eq!(refused.status, 429);
    let wait: u64 = refused.headers["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((1..=30).contains(&wait), "{wait}");
    assert_eq!(rig.sign_in(&there(2), "alice", PASSWORD).status, 200);
    assert_eq!(rig.sign_in(&there(2), "alice", &"x".repeat(1 << 12)).status, 401);
    let lines = rig.controller.audit().map_err(ApiError::into_fault).unwrap();
    let of = |status| {
        let is_it =
            |line: &&api::AuditLine| line.status == status && line.what.contains("/v1/session as");
        lines.iter().filter(is_it).map(|line| line.what.clone()).collect::<Vec<_>>()
    };
    assert_eq!(
        of(401),
        ["POST /v1/session as alice"],
        "one line an hour of a name, none of strangers'"
    );
    assert_eq!(of(200), ["POST /v1/session as alice"]);
    assert!(!lines.iter().any(|line| line.what.contains("password of any")));
}

#[test]
fn sessions_end_with_another_password_role_or_the_user_and_no_one_has_more_than_sixteen() {
    let rig = Rig::new();
    let name = "alice".parse().unwrap();
    let spec = UserSpec { tenant: Some("red".into()), role: Role::Viewer, for_s: 60 };
    let alice = rig.browser("alice");
    rig.controller.put_password(&name, "another four words").map_err(ApiError::into_fault).unwrap();
    assert_eq!(alice.get("/v1/self").status, 401);
    assert_eq!(rig.sign_in(&near(), "alice", PASSWORD).status, 401);
    rig.controller.put_password(&name, PASSWORD).map_err(ApiError::into_fault).unwrap();
    let alice = rig.browser("alice");
    rig.controller.put_user(&name, spec).map_err(ApiError::into_fault).unwrap();
    assert_eq!(alice.get("/v1/self").status, 401);
    let alice = rig.browser("alice");
    assert_eq!(alice.get("/v1/self").body["role"], "viewer");
    let more: Vec<_> = (0..16).map(|_| rig.browser("alice")).collect();
    // Which of one second is the oldest is not said.
    let live =
        || more.iter().chain([&alice]).filter(|one| one.get("/v1/self").status == 200).count();
    assert_eq!(live(), 16);
    rig.controller.remove_user(&name).map_err(ApiError::into_fault).unwrap();
    assert_eq!(live(), 0);
    for short in ["", "eleven byte"] {
        let error = rig.controller.put_password(&"ops".parse().unwrap(), short).unwrap_err();
        assert!(error.into_fault().remedy.contains("12 to 256"));
    }
}

#[test]
fn every_answer_tells_browsers_to_run_nothing_from_elsewhere() {
    let rig = Rig::new();
    let ops = rig.browser("ops");
    let document: serde_json::Value = serde_json::from_str(&crate::http::document()).unwrap();
    let paths = document["paths"].as_object().unwrap();
    let read = paths.iter().filter(|(path, it)| it.get("get").is_some() && *path != "/v1/events");
    let read: Vec<_> = read.map(|(path, _)| path.replace(['{', '}'], "")).collect();
    let others = ["/ui/", "/ui/none", "/", "/ui/assets/none.js", "/none"].map(str::to_owned);
    for path in read.iter().chain(&others) {
        let got = ops.get(path);
        let csp = got.headers["content-security-policy"].to_str().unwrap();
        assert!(csp.starts_with("default-src 'self';") && csp.contains("frame-ancestors 'none'"));
        assert!(!csp.contains("unsafe"), "{csp}");
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
            ("cross-origin-opener-policy", "same-origin"),
        ] {
            assert_eq!(got.headers[name], value, "{path}");
        }
        let kept =
            if path.starts_with("/ui/") && got.status == 200 { "no-cache" } else { "no-store" };
        assert_eq!(got.headers["cache-control"], kept, "{path}");
        assert!(!got.headers.contains_key("access-control-allow-origin"), "{path}");
    }
}
