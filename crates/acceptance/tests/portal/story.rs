//! A slice by mouse, from sign-in to sign-out, in Debian's Chromium; and what another tenant's user sees of it meanwhile.

use crate::browser::{Browser, Page};
use crate::lab::Lab;
use acceptance::{privileged, until};
use serde_json::{Value, json};
use std::path::PathBuf;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const FILE: &str = r#"# The course's first network.
suiro: slice/1
name: demo
tenant: red
defaults:
  switch: {fail_mode: standalone}
switches:
  s1: {site: tokyo, dpid: "0x1", labels: {x: "100", y: "100"}} # where it begins
  s2: {site: osaka, dpid: "0x2", labels: {x: "300", y: "100"}}
  s3: {site: sendai, dpid: "0x3", labels: {x: "500", y: "100"}}
guests:
  h1: {kind: process, site: tokyo, labels: {x: "100", y: "220"}, ports: {eth0: {to: "s1:1", addresses: [10.0.0.1/24]}}}
  h3: {kind: process, site: sendai, labels: {x: "500", y: "220"}, ports: {eth0: {to: "s3:1", addresses: [10.0.0.3/24]}}}
links:
  a: {between: ["s1:2", "s2:2"], rate: 100M} # two sites
  b: {between: ["s2:3", "s3:3"], rate: 100M}
"#;
/// What is typed.
const TEXT: &str = "document.querySelector('.editor textarea').value";

/// The user's story, step by step.
struct Story<'a> {
    lab: &'a Lab,
    page: &'a Page<'a>,
    axe: String,
}

#[test]
fn a_slice_by_mouse_is_planned_applied_proved_drawn_and_deleted_and_another_tenant_sees_none_of_it()
{
    if !privileged() {
        return;
    }
    let (lab, browser) = (Lab::up(), Browser::start());
    let (alice, bob, ops) =
        (browser.page(1280, 900), browser.page(1280, 900), browser.page(1280, 900));
    let story = Story { lab: &lab, page: &alice, axe: axe() };
    story.signs_in();
    story.looks_around();
    story.brings_a_file();
    story.plans_and_applies();
    story.looks_into_a_switch();
    story.asks_what_becomes_of_a_packet();
    story.works_in_a_guest();
    story.is_not_seen_by(&bob);
    story.is_run_by(&ops);
    story.draws();
    story.is_warned_of_what_is_interrupted();
    story.runs_no_markup();
    story.is_read_by_everybody();
    story.reserves();
    story.deletes_and_leaves();
    assert_eq!(alice.complaints(), [""; 0]);
    assert_eq!(ops.complaints(), [""; 0]);
}

/// What checks pages: `scripts/setup test` puts it beside what was built.
fn axe() -> String {
    let this = std::env::current_exe().unwrap();
    let path = this.ancestors().nth(3).unwrap().join("axe/axe.min.js");
    let missing = |error| panic!("{}: {error}: run scripts/setup test", path.display());
    std::fs::read_to_string(&path).unwrap_or_else(missing)
}

fn sign_in(page: &Page<'_>, user: &str, password: &str) {
    page.fill("input[name=user]", user);
    page.fill("input[name=password]", password);
    page.key("Enter", 13, "\r");
}

impl Story<'_> {
    #[track_caller]
    fn checked(&self, what: &str) {
        assert_eq!(self.page.axe(&self.axe), [""; 0], "{what}");
    }

    /// The picture in the tutorial, made anew if that is asked for.
    fn picture(&self, name: &str) {
        if std::env::var_os("SUIRO_UPDATE").is_some() {
            // Not every machine that makes pictures has fonts of Japan.
            self.page.eval(
                "document.querySelector('header button[lang]').style.visibility = 'hidden'; scrollTo(0, 0)",
            );
            self.page.until("scrollY === 0");
            let path = PathBuf::from(ROOT).join("docs/pictures").join(name);
            std::fs::write(path, self.page.picture()).unwrap();
            self.page.eval("document.querySelector('header button[lang]').style.visibility = ''");
        }
    }

    fn signs_in(&self) {
        let page = self.page;
        page.go(&self.lab.portal);
        page.shows("Sign in");
        self.checked("sign-in");
        sign_in(page, "alice", "not her password");
        page.shows("name and password do not go together");
        sign_in(page, "alice", &self.lab.password);
        page.shows("There are no slices yet.");
        page.shows("● live");
        self.checked("slices");
        assert_eq!(page.eval("document.cookie"), "", "no script reads the cookie");
    }

    fn looks_around(&self) {
        let page = self.page;
        page.click("nav a", "Sites");
        page.shows("tokyo-osaka: tokyo – osaka");
        page.shows("9.5 Gbit/s of 9.5 Gbit/s");
        page.shows("process, port");
        self.checked("sites");
        page.click("nav a", "Calendar");
        page.shows("Nothing is promised to anybody.");
        page.click("nav a", "Events");
        page.shows("Filter");
        self.checked("events");
    }

    fn brings_a_file(&self) {
        let page = self.page;
        page.click("nav a", "My slices");
        page.click("a.button", "New slice");
        page.shows("From files");
        self.checked("new slice");
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("demo.yaml");
        std::fs::write(&file, FILE).unwrap();
        page.choose("input[type=file]", &[file.to_str().unwrap()]);
        page.until("document.querySelector('[data-drawn=true]')");
        assert_eq!(page.eval(TEXT), FILE);
        page.until("document.querySelector('.drawing').ariaLabel.includes('3 switches, 2 guests, 2 links')");
    }

    fn plans_and_applies(&self) {
        let page = self.page;
        page.eval("window.sameDocument = true");
        page.click("button", "Show the plan");
        page.shows("It interrupts nothing.");
        page.until("document.querySelectorAll('.plan li.add').length === 7");
        self.picture("portal-plan.png");
        self.checked("plan");
        page.click("button", "Apply this plan");
        page.shows("Applied: generation 1.");
        self.proved("a");
        self.proved("b");
        page.until("document.querySelector('h1 + .state[data-state=ready]')");
        for told in [
            "link red/demo/a\tstate: proving",
            "link red/demo/a\tstate: up",
            "slice red/demo\tstate: ready",
        ] {
            page.shows(told);
        }
        page.click("[data-line=b] th button", "b");
        page.shows("Round trip: ");
        self.picture("portal-slice.png");
        self.checked("slice");
        let ping = ["slice", "exec", "red/demo", "h1", "--", "ping", "-c1", "-w2", "10.0.0.3"];
        until("h1 reaches h3", || self.lab.says(&ping).code == 0);
        assert_eq!(page.eval("window.sameDocument"), true, "all of it came by events");
    }

    fn looks_into_a_switch(&self) {
        let page = self.page;
        page.click("th button.plain", "s1");
        page.click("a.button", "Ports, rules, controllers");
        page.shows("It has no rules and learns addresses by itself.");
        page.shows("forwards by itself: no controller is there");
        page.shows("It has no controllers.");
        page.until("document.querySelector('[data-port=\"1\"] [data-state=up]')");
        page.until("document.querySelector('[data-port=\"2\"]')?.textContent.includes('a: s2:2')");
        let received = "Number(document.querySelector('[data-port=\"1\"]').children[4].textContent.split(' ')[0])";
        page.eval(&format!("window.before = {received}"));
        let ping = ["slice", "exec", "red/demo", "h1", "--", "ping", "-c3", "-i0.2", "10.0.0.3"];
        assert_eq!(self.lab.says(&ping).code, 0);
        page.until(&format!("{received} >= window.before + 3"));
        self.checked("switch");
        self.picture("portal-switch.png");
        page.fill("input[name=filter]", "tabel=0");
        page.key("Enter", 13, "\r");
        page.shows("tabel");
        page.until("document.querySelector('.faults')");
        page.fill("input[name=filter]", "");
        page.key("Enter", 13, "\r");
        page.until("!document.querySelector('.faults')");
    }

    fn asks_what_becomes_of_a_packet(&self) {
        let page = self.page;
        page.fill("input[name=packet]", "in_port=1,icmp,nw_src=10.0.0.1,nw_dst=10.0.0.3");
        page.key("Enter", 13, "\r");
        page.shows("its way depends on dl_dst, which is not said");
        let whole = "in_port=1,icmp,nw_src=10.0.0.1,nw_dst=10.0.0.3,dl_src=02:00:00:00:00:01,dl_dst=ff:ff:ff:ff:ff:ff";
        page.fill("input[name=packet]", whole);
        page.key("Enter", 13, "\r");
        page.until("document.querySelector('[data-verdict=leaves]')");
        page.shows("s1:2 → s2:2 by link a");
        page.shows("s2:3 → s3:3 by link b");
        page.shows("s3:1 → h3:eth0 by port eth0 of guest h3");
        let way = page.eval("document.querySelector('.way').textContent");
        let way = way.as_str().unwrap();
        for hidden in ["K ", "tun_id", "vxlan", "192.0.2.", "red.demo"] {
            assert!(!way.contains(hidden), "{hidden}: {way}");
        }
        self.checked("packet");
        page.eval("location.hash = '#/slices/red/demo'");
        page.until("document.querySelector('[data-drawn=true]')");
    }

    /// Alone: what is typed there, and markup that the guest writes.
    fn works_in_a_guest(&self) {
        let page = self.page;
        page.click("th button.plain", "h1");
        page.click("a.button", "State, log, console");
        page.until("document.querySelector('h1 + [data-state=running]')");
        page.shows("eth0 10.0.0.1/24");
        page.click("button", "Open the console");
        let screen = "document.querySelector('.xterm-rows')?.textContent ?? ''";
        page.until(&format!("/[#$] *$/.test(({screen}).trim())"));
        self.types_in_terminal("echo \"<b>$((6*7))</b>\"; ip -4 -o addr show eth0");
        page.until(&format!("({screen}).includes('<b>42</b>')"));
        page.until(&format!("({screen}).includes('10.0.0.1/24')"));
        assert_eq!(page.eval("document.querySelectorAll('.xterm-rows b').length"), 0);
        self.checked("console");
        self.types_in_terminal("stty size");
        page.until(&format!("/[0-9]+ [0-9]+/.test({screen})"));
        self.types_in_terminal("exit 3");
        page.shows("The console is closed: ended with status 3.");
        self.checked("guest");
        page.eval("location.hash = '#/slices/red/demo'");
        page.until("document.querySelector('[data-drawn=true]')");
        let lines = self.lab.says(&["domain", "audit"]).out;
        assert!(lines.contains("guests/h1/console"), "{lines}");
    }

    fn types_in_terminal(&self, text: &str) {
        // Key by key: a terminal that is read aloud takes no pasted text for typed.
        for key in text.chars().map(String::from) {
            self.page.key(&key, 0, &key);
        }
        self.page.key("Enter", 13, "\r");
    }

    /// What an operator's pages show and do.
    fn is_run_by(&self, ops: &Page<'_>) {
        ops.go(&self.lab.portal);
        sign_in(ops, "ops", &self.lab.password);
        ops.shows("red/demo");
        let checked = |what| assert_eq!(ops.axe(&self.axe), [""; 0], "{what}");
        ops.click("nav a", "Nodes");
        ops.until("document.querySelectorAll('[data-node] [data-state=here]').length === 3");
        ops.click("button", "Compare with what is declared");
        ops.shows("Everything is as it is declared.");
        ops.fill("input[name=nodes]", "t1 o1");
        ops.key("Enter", 13, "\r");
        ops.shows("It is shown this once: join-");
        ops.shows("t1, not yet");
        checked("nodes");
        ops.click("td button", "Forget");
        ops.shows("Its certificate is worth nothing from then on.");
        ops.click("dialog button", "Cancel");
        ops.click("nav a", "Users");
        ops.until("document.querySelector('[data-user=alice]')");
        ops.fill("input[name=new-user]", "carol");
        ops.fill("input[name=tenant]", "blue");
        ops.click("form button", "Add");
        ops.shows("It is shown this once: user-");
        ops.until("document.querySelector('[data-user=carol]')?.textContent.includes('blue')");
        checked("users");
        ops.click("[data-user=carol] button", "Delete");
        ops.click("dialog button.main", "Delete");
        ops.until("!document.querySelector('[data-user=carol]')");
        ops.click("nav a", "Audit");
        ops.shows("DELETE /v1/users/carol");
        checked("audit");
    }

    #[track_caller]
    fn proved(&self, link: &str) {
        self.page.until(&format!("document.querySelector('[data-line={link}] [data-state=up]')"));
    }

    /// Every path that a document of the API names for reading, tried with the other tenant's session.
    fn is_not_seen_by(&self, bob: &Page<'_>) {
        bob.go(&self.lab.portal);
        sign_in(bob, "bob", &self.lab.password);
        bob.shows("There are no slices yet.");
        let asked = "Promise.all(Object.entries((await (await fetch('/v1/openapi.json')).json()).paths).filter(([path, it]) => it.get && path !== '/v1/events').map(async ([path]) => { const values = {tenant: 'red', slice: 'demo', guest: 'h1', switch: 's1', node: 't1', part: 'underlay', user: 'alice', id: '0'}; const answer = await fetch(path.replace(/\\{(\\w+)\\}/g, (_, name) => values[name])); return [path, answer.status, await answer.text()]; }))";
        let got = bob.eval(&format!("(async () => await {asked})()"));
        let may = [
            "/v1/self",
            "/v1/slices",
            "/v1/sites",
            "/v1/session",
            "/v1/openapi.json",
            "/v1/calendar",
            "/v1/calendar.ics",
        ];
        let mut refused = 0;
        for one in got.as_array().unwrap() {
            let (path, status, text) =
                (one[0].as_str().unwrap(), &one[1], one[2].as_str().unwrap());
            assert!(!text.contains("s1") && !text.contains("10.0.0"), "{path}: {text}");
            if may.contains(&path) {
                assert_eq!(*status, 200, "{path}: {text}");
                continue;
            }
            assert!(*status == 403 || *status == 404, "{path}: {status} {text}");
            refused += 1;
        }
        assert!(refused >= 8, "{refused}");
        let opened = "new Promise((done) => { const socket = new WebSocket(location.origin.replace('http', 'ws') + '/v1/slices/red/demo/guests/h1/console'); socket.onopen = () => done('open'); socket.onerror = () => done('refused'); })";
        assert_eq!(bob.eval(opened), "refused");
        let place = json!(format!("{}#/slices/red/demo", self.lab.portal));
        bob.eval(&format!("location.href = {place}"));
        bob.shows("that is tenant red's");
        assert_eq!(bob.eval("document.querySelectorAll('.feed tr').length"), 0);
    }

    fn draws(&self) {
        let page = self.page;
        page.click("button", "Select and move");
        self.shows_drawing();
        let place = page.eval("(() => { const box = document.querySelector('.drawing').getBoundingClientRect(); return [box.x, box.y, box.width, box.height]; })()");
        let side = |at: usize| place[at].as_f64().unwrap();
        let at = |x: f64, y: f64| (side(0) + x * side(2), side(1) + y * side(3));
        let (one, two) = (at(0.3, 0.9), at(0.7, 0.9));
        page.click("[data-tool=switch]", "");
        for (site, (x, y)) in [("tokyo", one), ("osaka", two)] {
            page.eval(&format!("(() => {{ const it = document.querySelector('[role=toolbar] select'); it.value = {}; it.dispatchEvent(new Event('change', {{bubbles: true}})); }})()", json!(site)));
            self.shows_drawing();
            page.click_at(x, y);
            page.until(&format!("{TEXT}.includes('{{site: {site}, labels: ')"));
        }
        page.click("[data-tool=link]", "");
        self.shows_drawing();
        page.click_at(one.0, one.1);
        page.click_at(two.0, two.1);
        page.until(&format!("{TEXT}.includes('l1: {{between: [\"s4:1\", \"s5:1\"]}}')"));
        page.click("[data-tool=select]", "");
        self.shows_drawing();
        let before = self.line("s4:");
        page.drag(one, (one.0 - 30.0, one.1 - 40.0));
        page.until(&format!("!{TEXT}.includes({})", json!(before)));
        let after = self.line("s4:");
        assert!(after.contains("site: tokyo, labels: {x: "), "{after}");
        for kept in ["# The course's first network.", "# where it begins", "# two sites"] {
            assert!(page.eval(TEXT).as_str().unwrap().contains(kept), "{kept}");
        }
        page.click("button", "Show the plan");
        page.until("document.querySelectorAll('.plan li.add').length === 3");
        page.click("button", "Apply this plan");
        page.shows("Applied: generation 2.");
        self.proved("l1");
        page.until("document.querySelector('h1 + .state[data-state=ready]')");
    }

    /// Has the drawing in the middle of the window, when what was to be painted has been.
    fn shows_drawing(&self) {
        self.page.eval("document.querySelector('.drawing').scrollIntoView({block: 'center'})");
        self.page.eval("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))).then(() => true)");
    }

    /// The line of the file that has that.
    fn line(&self, has: &str) -> String {
        let text = self.page.eval(TEXT);
        let line = text.as_str().unwrap().lines().find(|line| line.contains(has));
        line.unwrap_or_default().to_owned()
    }

    #[track_caller]
    fn types(&self, change: impl Fn(&str) -> String) {
        let text = self.page.eval(TEXT);
        self.page.fill(".editor textarea", &change(text.as_str().unwrap()));
    }

    fn is_warned_of_what_is_interrupted(&self) {
        let page = self.page;
        self.types(|text| {
            let kept = text.lines().filter(|line| !line.contains("h3:"));
            kept.map(|line| line.replace("rate: 100M} # two", "rate: 20M} # two") + "\n").collect()
        });
        page.click("button", "Show the plan");
        page.shows("guest h3 goes at s1 – interrupts what runs in it");
        page.shows("link a changes at t1–o1: rate 100M → 20M");
        page.shows("It interrupts 1 of 2.");
        self.types(|text| text.replace("name: demo", "name: demo # more"));
        page.shows("The file has changed since this plan");
        assert_eq!(page.eval("document.querySelector('button.main').disabled"), true);
        self.types(|text| text.replace("site: osaka", "site: osaca"));
        page.click("button", "Show the plan");
        page.shows("did you mean osaka?");
        page.click("button", "reset to what is applied");
    }

    /// Names, words and faults of a file are text, whatever they look like.
    fn runs_no_markup(&self) {
        let page = self.page;
        let bad = "<img src=x onerror=\"window.ran=1\"><script>window.ran=1</script>";
        self.types(|text| {
            text.replace("switches:\n", &format!("switches:\n  '{bad}': {{site: '{bad}'}}\n"))
        });
        page.shows("<script>window.ran=1</script>");
        page.click("button", "Show the plan");
        page.until("document.querySelector('.faults')");
        assert_eq!(page.eval("window.ran === undefined && document.querySelectorAll('main img, main script').length === 0"), true);
        page.click("button", "reset to what is applied");
        page.until(&format!("!{TEXT}.includes('<img')"));
    }

    /// Another language, dark, a telephone's width, which is 400 % of a desk's, and by keyboard.
    fn is_read_by_everybody(&self) {
        let page = self.page;
        page.ask("Page.reload", json!({}));
        page.until("document.querySelector('[data-drawn=true]')");
        page.click("header button", "日本語");
        page.shows("プランを表示");
        assert_eq!(page.eval("document.documentElement.lang"), "ja");
        self.checked("Japanese");
        page.click("header button", "English");
        page.set_dark(true);
        self.checked("dark");
        page.resize(320, 700, 1.0);
        for place in [
            "#/slices/red/demo",
            "#/slices/red/demo/switches/s1",
            "#/slices/red/demo/guests/h1",
            "#/slices",
            "#/sites",
            "#/calendar",
            "#/new",
            "#/events",
        ] {
            page.eval(&format!("location.hash = {}", json!(place)));
            page.until("document.querySelector('h1, h2')");
            page.until("!document.querySelector('main').textContent.includes('Loading…')");
            let fits = "document.documentElement.scrollWidth <= innerWidth";
            page.until(fits);
            self.checked(place);
        }
        page.resize(1280, 900, 1.0);
        page.set_dark(false);
        page.eval("location.hash = '#/slices/red/demo'");
        page.until("document.querySelector('[data-drawn=true]')");
        // Without a mouse: to the tool, to its button, each by Tab and Enter alone.
        page.eval("document.querySelector('[data-tool=guest]').focus()");
        page.key("Enter", 13, "\r");
        page.until("document.querySelector('[data-tool=guest]').ariaPressed === 'true'");
        for _ in 0..3 {
            page.key("Tab", 9, "");
        }
        assert_eq!(page.eval("document.activeElement.textContent"), Value::from("Add"));
        page.key("Enter", 13, "\r");
        page.until(&format!("{TEXT}.includes('h2: {{kind: process, site: ')"));
        page.click("button", "reset to what is applied");
    }

    /// A slice for another year, and the calendar that has it.
    fn reserves(&self) {
        let page = self.page;
        self.types(|text| text.replace("switches:\n", "until: 2040-03-31T18:00:00Z\nswitches:\n"));
        page.click("button", "Show the plan");
        page.shows("time changes: until none → 2040-03-31T18:00:00Z");
        page.click("button", "Apply this plan");
        page.shows("Applied: generation 3.");
        page.click("nav a", "Calendar");
        page.until("document.querySelector('[data-span=\"red/demo\"]')?.textContent.includes('2040-03-31 18:00:00Z')");
        self.checked("calendar");
    }

    fn deletes_and_leaves(&self) {
        let page = self.page;
        page.eval("location.hash = '#/slices'");
        page.click("td button", "Delete");
        page.shows("Delete slice red/demo?");
        self.checked("delete");
        page.click("dialog button.main", "Delete");
        page.shows("There are no slices yet.");
        page.click("header button", "Sign out");
        page.shows("Password");
        assert_eq!(page.eval("fetch('/v1/self').then((it) => it.status)"), 401);
        let lines = self.lab.says(&["domain", "audit"]).out;
        for done in [
            "POST /v1/session as alice: 401 name and password do not go together",
            "POST /v1/session as alice: 200 done",
            "PUT /v1/slices/red/demo?plan=",
            "DELETE /v1/slices/red/demo: 200 done",
            "DELETE /v1/session: 200 done",
        ] {
            assert!(lines.contains(done), "{done}:\n{lines}");
        }
        assert!(!lines.contains(&self.lab.password));
    }
}
