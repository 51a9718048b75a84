//! Debian's Chromium, driven by its own protocol (DevTools) over a pipe: no driver and no library in between.

use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

const CHROMIUM: &str = "/usr/bin/chromium";
/// How long the browser may take for an answer, and a page for what is waited for. Chosen: many times what a busy machine takes.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between two looks at a page.
const PAUSE: Duration = Duration::from_millis(20);
/// What keeps it from talking to anybody but us.
const QUIET: [&str; 12] = [
    "--headless=new",
    "--remote-debugging-pipe",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-extensions",
    "--disable-sync",
    "--no-first-run",
    "--no-proxy-server",
    "--hide-scrollbars",
];

/// A browser, ended when dropped.
pub struct Browser {
    child: Child,
    to: RefCell<ChildStdin>,
    from: Receiver<Value>,
    last: Cell<u64>,
    heard: RefCell<Vec<Value>>,
    _profile: tempfile::TempDir,
}

/// A page of a browser, with cookies of its own.
pub struct Page<'a> {
    browser: &'a Browser,
    session: String,
}

impl Browser {
    /// Starts it, behind all that it looks at. Its pipes are its standard input and output, moved to where it wants them.
    pub fn start() -> Self {
        assert!(
            std::path::Path::new(CHROMIUM).exists(),
            "{CHROMIUM} is missing: run scripts/setup test"
        );
        let profile = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        command.args([
            "-c",
            "exec nice -n 19 \"$0\" \"$@\" 3<&0 4>&1 0</dev/null 1>/dev/null",
            CHROMIUM,
        ]);
        command.args(QUIET).arg(format!("--user-data-dir={}", profile.path().display()));
        command.env("HOME", profile.path());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let to = RefCell::new(child.stdin.take().unwrap());
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let (sender, from) = channel();
        std::thread::spawn(move || {
            let mut message = Vec::new();
            while output.read_until(0, &mut message).is_ok_and(|length| length > 0) {
                message.pop();
                let value = serde_json::from_slice(&message).unwrap();
                if sender.send(value).is_err() {
                    return;
                }
                message.clear();
            }
        });
        let (last, heard) = (Cell::new(0), RefCell::default());
        Self { child, to, from, last, heard, _profile: profile }
    }

    #[track_caller]
    fn ask(&self, session: Option<&str>, method: &str, params: Value) -> Value {
        self.last.set(self.last.get() + 1);
        let mut message = json!({"id": self.last.get(), "method": method, "params": params});
        if let Some(session) = session {
            message["sessionId"] = session.into();
        }
        self.to.borrow_mut().write_all(format!("{message}\0").as_bytes()).unwrap();
        loop {
            let said = self.from.recv_timeout(PATIENCE);
            let said = said.unwrap_or_else(|error| panic!("{method}: {error}"));
            if said["id"] != self.last.get() {
                self.heard.borrow_mut().push(said);
                continue;
            }
            assert!(said.get("error").is_none(), "{method}: {}", said["error"]);
            return said["result"].clone();
        }
    }

    /// A page with cookies of its own, of that size.
    pub fn page(&self, width: u32, height: u32) -> Page<'_> {
        let context = self.ask(None, "Target.createBrowserContext", json!({}));
        let target = json!({"url": "about:blank", "browserContextId": context["browserContextId"]});
        let target = self.ask(None, "Target.createTarget", target);
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let session = self.ask(None, "Target.attachToTarget", attach)["sessionId"].clone();
        let page = Page { browser: self, session: session.as_str().unwrap().into() };
        for domain in ["Page", "Runtime", "Log", "DOM"] {
            page.ask(&format!("{domain}.enable"), json!({}));
        }
        page.resize(width, height, 1.0);
        page
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.to.borrow_mut().write_all(b"{\"id\":0,\"method\":\"Browser.close\"}\0");
        let deadline = Instant::now() + Duration::from_secs(5);
        while Instant::now() < deadline && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(PAUSE);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Page<'_> {
    #[track_caller]
    pub fn ask(&self, method: &str, params: Value) -> Value {
        self.browser.ask(Some(&self.session), method, params)
    }

    /// Its size in CSS pixels, with so many of the screen's for each.
    pub fn resize(&self, width: u32, height: u32, scale: f64) {
        let size =
            json!({"width": width, "height": height, "deviceScaleFactor": scale, "mobile": false});
        self.ask("Emulation.setDeviceMetricsOverride", size);
    }

    /// As who wishes for dark pages has it, or not.
    pub fn set_dark(&self, dark: bool) {
        let value = if dark { "dark" } else { "light" };
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": value}]});
        self.ask("Emulation.setEmulatedMedia", features);
    }

    /// Goes to an address, and waits until its document is there.
    #[track_caller]
    pub fn go(&self, url: &str) {
        let went = self.ask("Page.navigate", json!({"url": url}));
        assert!(went.get("errorText").is_none(), "{url}: {}", went["errorText"]);
        self.until("document.readyState === 'complete'");
    }

    /// The value of an expression of JavaScript.
    #[track_caller]
    pub fn eval(&self, script: &str) -> Value {
        let params = json!({"expression": script, "returnByValue": true, "awaitPromise": true});
        let got = self.ask("Runtime.evaluate", params);
        assert!(got.get("exceptionDetails").is_none(), "{script}: {}", got["exceptionDetails"]);
        got["result"]["value"].clone()
    }

    /// Waits until an expression is true.
    #[track_caller]
    pub fn until(&self, script: &str) {
        let deadline = Instant::now() + PATIENCE;
        while self.eval(&format!("Boolean({script})")) != true {
            if Instant::now() > deadline {
                let shown = self.eval("document.body.innerText");
                panic!(
                    "waited in vain until {script}; the page shows:\n{}",
                    shown.as_str().unwrap_or("")
                );
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Waits until the page shows that text.
    #[track_caller]
    pub fn shows(&self, text: &str) {
        self.until(&format!("document.body.innerText.includes({})", json!(text)));
    }

    /// Clicks what a selector finds, or the first of it that has that text, when it is there and can be clicked.
    #[track_caller]
    pub fn click(&self, selector: &str, text: &str) {
        let find = format!(
            "[...document.querySelectorAll({})].find((it) => it.textContent.includes({}) && !it.disabled)",
            json!(selector),
            json!(text)
        );
        self.until(&find);
        let middle = format!(
            "(() => {{ const it = {find}; it.scrollIntoView({{block: 'center'}}); const box = it.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; }})()"
        );
        let at = self.eval(&middle);
        self.click_at(at[0].as_f64().unwrap(), at[1].as_f64().unwrap());
    }

    /// Clicks at a place of the window.
    pub fn click_at(&self, x: f64, y: f64) {
        for kind in ["mouseMoved", "mousePressed", "mouseReleased"] {
            let button = if kind == "mouseMoved" { "none" } else { "left" };
            let event = json!({"type": kind, "x": x, "y": y, "button": button, "clickCount": 1});
            self.ask("Input.dispatchMouseEvent", event);
        }
    }

    /// Presses the mouse at a place, and lets it go at another.
    pub fn drag(&self, from: (f64, f64), to: (f64, f64)) {
        let step = |kind: &str, (x, y): (f64, f64), buttons: u8| {
            let event = json!({"type": kind, "x": x, "y": y, "button": "left", "buttons": buttons, "clickCount": 1});
            self.ask("Input.dispatchMouseEvent", event);
        };
        step("mouseMoved", from, 0);
        step("mousePressed", from, 1);
        step("mouseMoved", ((from.0 + to.0) / 2.0, (from.1 + to.1) / 2.0), 1);
        step("mouseMoved", to, 1);
        step("mouseReleased", to, 0);
    }

    /// Presses a key.
    pub fn key(&self, key: &str, code: u32, text: &str) {
        for kind in ["keyDown", "keyUp"] {
            let event = json!({"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code, "text": if kind == "keyDown" { text } else { "" }});
            self.ask("Input.dispatchKeyEvent", event);
        }
    }

    /// Types into what a selector finds, in place of what is there.
    #[track_caller]
    pub fn fill(&self, selector: &str, text: &str) {
        self.until(&format!("document.querySelector({})", json!(selector)));
        self.eval(&format!(
            "(() => {{ const it = document.querySelector({}); it.focus(); it.select(); }})()",
            json!(selector)
        ));
        self.ask("Input.insertText", json!({"text": text}));
    }

    /// Chooses files where a selector finds the field for them.
    #[track_caller]
    pub fn choose(&self, selector: &str, files: &[&str]) {
        self.until(&format!("document.querySelector({})", json!(selector)));
        let found = self.ask(
            "Runtime.evaluate",
            json!({"expression": format!("document.querySelector({})", json!(selector))}),
        );
        let files = json!({"files": files, "objectId": found["result"]["objectId"]});
        self.ask("DOM.setFileInputFiles", files);
    }

    /// The picture of the window, as PNG.
    pub fn picture(&self) -> Vec<u8> {
        let shot =
            self.ask("Page.captureScreenshot", json!({"format": "png", "optimizeForSpeed": false}));
        decode(shot["data"].as_str().unwrap())
    }

    /// What axe finds that is serious or worse, as one line each.
    #[track_caller]
    pub fn axe(&self, axe: &str) -> Vec<String> {
        self.eval(&format!("{axe}; true"));
        let found = self.eval(
            "axe.run(document, {resultTypes: ['violations']}).then((it) => it.violations.filter((one) => ['serious', 'critical'].includes(one.impact)).map((one) => `${one.id}: ${one.nodes.map((node) => node.html + ' ' + node.failureSummary).join(' | ')}`))",
        );
        found.as_array().unwrap().iter().map(|one| one.as_str().unwrap().to_owned()).collect()
    }

    /// What the browser complained of so far: scripts that failed, what the content-security policy kept away.
    pub fn complaints(&self) -> Vec<String> {
        // What was said before an answer has been heard with it.
        self.eval("1");
        let heard = self.browser.heard.borrow();
        let of_page = heard.iter().filter(|said| said["sessionId"] == *self.session);
        let bad = of_page.filter_map(|said| {
            let params = &said["params"];
            match said["method"].as_str()? {
                "Runtime.exceptionThrown" => Some(params["exceptionDetails"].to_string()),
                "Log.entryAdded" if params["entry"]["level"] == "error" => {
                    // An answer that refuses is told to the user.
                    (params["entry"]["source"] != "network").then(|| params["entry"].to_string())
                }
                "Runtime.consoleAPICalled"
                    if ["error", "warning"].contains(&params["type"].as_str()?) =>
                {
                    Some(params["args"].to_string())
                }
                _ => None,
            }
        });
        bad.collect()
    }
}

/// Base64 (RFC 4648).
fn decode(text: &str) -> Vec<u8> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits = text.bytes().filter_map(|b| DIGITS.iter().position(|digit| *digit == b));
    let (mut bytes, mut held, mut bits) = (Vec::new(), 0u32, 0);
    for digit in digits {
        held = held << 6 | digit as u32;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push((held >> bits) as u8);
        }
    }
    bytes
}
