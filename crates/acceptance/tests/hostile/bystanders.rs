//! The two guests of another switch who must not notice anything.

use acceptance::{Kind, Lab, Pings};

/// A node with the switch `quiet` between two guests who ping each other all the while.
pub struct Bystanders {
    pings: Pings,
    /// The node.
    pub lab: Lab,
}

/// Address on which the switch of the tests, `sw0`, waits for OpenFlow.
pub const OPENFLOW: &str = "127.0.0.1:6654";

impl Bystanders {
    /// The bystanders, beside an empty switch `sw0` and further guests without ports.
    pub fn with(guests: &[&str]) -> Self {
        Self::configured("", guests)
    }

    /// The same, with further keys for the node.
    pub fn configured(keys: &str, guests: &[&str]) -> Self {
        let mut lab = Lab::new(&[&["g8", "g9"], guests].concat());
        lab.configure(keys);
        lab.start();
        lab.suiro(&["switch", "add", "quiet"]);
        lab.connect("quiet", "g8", Kind::AfXdp);
        lab.connect("quiet", "g9", Kind::Tap);
        lab.suiro(&["switch", "add", "sw0", "--dpid", "1", "--listen", "ptcp:6654:127.0.0.1"]);
        let pings = Pings::start(&lab, "g8", "g9");
        Self { pings, lab }
    }

    /// Ends the pings; none may be lost. The node goes on.
    #[track_caller]
    pub fn lost_nothing(self) -> Lab {
        self.pings.end_without_loss();
        self.lab
    }
}

/// Asserts that a text says all of these.
#[track_caller]
pub fn says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is missing in:\n{text}");
    }
}

/// Asserts that a port is at fault in these words.
#[track_caller]
pub fn fault_says(lab: &Lab, port: &str, parts: &[&str]) {
    let fault = lab.json(&["port", "show", "sw0", port])["fault"].clone();
    for key in ["thing", "step", "cause", "remedy"] {
        assert!(fault[key].as_str().is_some_and(|text| !text.is_empty()), "{key}: {fault}");
    }
    says(&fault.to_string(), parts);
}
