//! Why packets go where they go, as the API asks.

use super::Node;
use super::directory::Member;
use super::rules::{port_names, resolver};
use crate::refusal::{Refusal, Why};
use crate::why::{self, Place, Places};
use api::{FailMode, Fault, WhyAnswer, WhyQuestion};

impl Node {
    /// What would become of a packet that came in at a switch now. Nothing is sent, counted or learned; looks at rules for up to some tenths
    /// of a second.
    ///
    /// # Errors
    /// There is no such switch, the packet cannot be read, or its way depends on what was not said of it.
    pub fn why(&self, switch: &str, question: &WhyQuestion) -> Result<WhyAnswer, Refusal> {
        let member = self.member(switch)?;
        let invalid = |fault| Refusal::new(Why::Invalid, fault);
        let (thing, ends) = (format!("switch {switch}"), self.ports.ends());
        let question = why::read(&thing, question, &resolver(&member), ends).map_err(invalid)?;
        if member.port(&question.in_port.to_string()).is_none() {
            let cause = format!("there is no port {}", question.in_port);
            let fault = Fault::new(thing, "read the packet", cause, "say a port: suiro port list");
            return Err(invalid(fault));
        }
        let places = self.places();
        member.switch.publish();
        let way = self.datapath.why(member.at(question.in_port), question.frame.clone(), &places);
        why::tell(&way, question, &places, ends).map_err(invalid)
    }

    fn places(&self) -> Places {
        let all = self.directory.all();
        Places(all.iter().map(|member| (member.id, place(member))).collect())
    }
}

fn place(member: &Member) -> Place {
    let mode = match member.state().spec.fail_mode {
        FailMode::Secure => "secure",
        FailMode::Standalone => "standalone",
    };
    let controllers = member.switch.connections().len();
    let connected = match controllers {
        0 => "no controller is connected".to_owned(),
        1 => "a controller is connected".to_owned(),
        many => format!("{many} controllers are connected"),
    };
    Place {
        name: member.name().to_string(),
        ports: port_names(member),
        switch: member.switch.clone(),
        control: format!("fail mode {mode}, {connected}"),
    }
}
