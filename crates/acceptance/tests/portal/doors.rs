//! The portal's doors: what is opened and to whom, by TLS and on loopback.

use acceptance::{Said, privileged, suiro};
use rcgen::{CertificateParams, KeyPair};
use std::process::Command;

const DOMAIN: &str = "suiro: domain/1\nsites: {tokyo: {}}\ntenants: {red: {}}\n";

/// A controller of its own; ended when dropped.
struct Control {
    directory: tempfile::TempDir,
    said: Said,
}

impl Control {
    fn start(options: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut command = Command::new(suiro());
        command.args(["control", "--background"]).args(options);
        command.arg("--run-dir").arg(directory.path().join("run"));
        command.arg("--state-dir").arg(directory.path().join("state"));
        let said = Said::of(command.output().unwrap());
        Self { directory, said }
    }

    fn portal(&self) -> String {
        assert_eq!(self.said.code, 0, "{}", self.said.err);
        let line = self.said.out.lines().find_map(|line| line.strip_prefix("portal "));
        line.unwrap().to_owned()
    }

    /// A command of the operator's, with that as its input.
    fn says(&self, words: &[&str], input: &str) -> Said {
        let file = self.directory.path().join("input");
        std::fs::write(&file, input).unwrap();
        let mut command = Command::new(suiro());
        command.args(words).env("SUIRO_CONTROL", self.directory.path().join("run/api.sock"));
        Said::of(command.stdin(std::fs::File::open(file).unwrap()).output().unwrap())
    }

    fn with_user(self) -> Self {
        let file = self.directory.path().join("domain.yaml");
        std::fs::write(&file, DOMAIN).unwrap();
        for (words, input) in [
            (&["apply", "-f", file.to_str().unwrap()][..], ""),
            (&["domain", "user", "add", "alice", "--tenant", "red"], ""),
            (&["domain", "user", "password", "alice"], "four words are enough\n"),
        ] {
            let said = self.says(words, input);
            assert_eq!(said.code, 0, "{words:?}: {}", said.err);
        }
        self
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        let pid = self.said.out.split("process ").nth(1).and_then(|rest| rest.split(',').next());
        let pid = pid.and_then(|pid| rustix::process::Pid::from_raw(pid.parse().ok()?));
        if let Some(pid) = pid {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
            acceptance::until("the controller has ended", || {
                rustix::process::test_kill_process(pid).is_err()
            });
        }
    }
}

/// Whether the controller has that address and no other one.
fn listens(control: &Control, portal: &str) -> bool {
    let pid = control.said.out.split("process ").nth(1).unwrap().split(',').next().unwrap();
    let output = Command::new("ss").args(["-ltnHp"]).output().unwrap();
    let all = String::from_utf8(output.stdout).unwrap();
    let own: Vec<_> = all.lines().filter(|line| line.contains(&format!("pid={pid},"))).collect();
    let port = portal.trim_end_matches("/ui/").rsplit(':').next().unwrap();
    match &own[..] {
        [] => false,
        [one] => one.contains(&format!(" 127.0.0.1:{port} ")),
        more => panic!("{more:?}"),
    }
}

fn curl(words: &[&str]) -> String {
    let output = Command::new("curl").args(["-sS", "-i", "--max-time", "20"]).args(words).output();
    let output = output.unwrap();
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

fn sign_in(base: &str, more: &[&str]) -> String {
    let body = r#"{"user":"alice","password":"four words are enough"}"#;
    let json = ["-H", "content-type: application/json", "-d", body];
    curl(&[&json[..], more, &[&format!("{base}v1/session")]].concat())
}

#[test]
fn without_tls_the_portal_is_on_loopback_alone_and_a_cookie_that_no_script_reads() {
    if !privileged() {
        return;
    }
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
        let control = Control::start(&["--portal", address]);
        let said = &control.said.err;
        assert!(said.contains("passwords are never sent without TLS"), "{said}");
    }
    let control = Control::start(&["--portal", "127.0.0.1:0"]).with_user();
    let portal = control.portal();
    assert!(portal.starts_with("http://127.0.0.1:"), "{portal}");
    let page = curl(&[&portal]);
    assert!(page.contains("200 OK") && page.contains("/ui/assets/portal-"), "{page}");
    assert!(page.contains("content-security-policy: default-src 'self';"), "{page}");
    let base = portal.trim_end_matches("ui/");
    assert!(curl(&[base]).contains("location: /ui/"));
    let said = sign_in(base, &[]);
    assert!(said.contains("set-cookie: suiro=") && !said.contains("Secure"), "{said}");
    assert!(said.contains("; Path=/; HttpOnly; SameSite=Strict"), "{said}");
    let elsewhere = curl(&["-H", "host: evil.example", &portal]);
    assert!(elsewhere.contains(" 421 "), "{elsewhere}");
    assert!(listens(&control, &portal) && !listens(&Control::start(&[]), &portal));
    let short = control.says(&["domain", "user", "password", "alice"], "short\n");
    assert!(short.err.contains("12 to 256 bytes"), "{}", short.err);
}

#[test]
fn with_a_certificate_the_portal_speaks_tls_and_its_cookie_is_secure() {
    if !privileged() {
        return;
    }
    let files = tempfile::tempdir().unwrap();
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["portal.example".into()]).unwrap();
    let certificate = params.self_signed(&key).unwrap();
    let path = |name: &str| files.path().join(name).display().to_string();
    std::fs::write(path("cert.pem"), certificate.pem()).unwrap();
    std::fs::write(path("key.pem"), key.serialize_pem()).unwrap();
    let (cert, key) = (path("cert.pem"), path("key.pem"));
    let options = ["--portal", "127.0.0.1:0", "--portal-certificate", &cert, "--portal-key"];
    let control = Control::start(&[&options[..], &[&key]].concat()).with_user();
    let portal = control.portal();
    let port = portal.strip_prefix("https://127.0.0.1:").unwrap().trim_end_matches("/ui/");
    let resolve = format!("portal.example:{port}:127.0.0.1");
    let base = format!("https://portal.example:{port}/");
    let said = sign_in(&base, &["--cacert", &cert, "--resolve", &resolve]);
    assert!(said.contains("set-cookie: __Host-suiro="), "{said}");
    assert!(said.contains("; Path=/; HttpOnly; SameSite=Strict; Secure"), "{said}");
    assert!(!curl(&[&portal.replace("https", "http")]).contains("200 OK"));
    let control = Control::start(&[&options[..], &[&cert]].concat());
    assert!(control.said.err.contains("portal's certificate"), "{}", control.said.err);
}
