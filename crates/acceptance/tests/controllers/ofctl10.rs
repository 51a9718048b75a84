//! `ovs-ofctl -O OpenFlow10`, its own default, over TCP and over the management socket, against a switch whose guests talk.

use crate::ofctl::{
    a_drop_rule_blocks_until_it_is_deleted, a_packet_out_arrives,
    a_port_set_down_is_dead_until_it_is_up, lab,
};
use acceptance::{Lab, Ofctl, privileged, until};

const TCP: u16 = 6654;

#[test]
fn ovs_ofctl_of_1_0_blocks_changes_shows_and_watches() {
    if !privileged() {
        return;
    }
    let lab = lab();
    for ofctl in [Ofctl::management(&lab, "sw0"), Ofctl::tcp(&lab, TCP)] {
        let ofctl = ofctl.speaking_1_0();
        a_drop_rule_blocks_until_it_is_deleted(&lab, &ofctl);
        a_port_set_down_is_dead_until_it_is_up(&lab, &ofctl);
        a_packet_out_arrives(&lab, &ofctl);
        a_modify_changes_what_is_there_and_adds_what_is_not(&lab, &ofctl);
        vlan_actions_tag_and_strip_untagged_frames(&lab, &ofctl);
        statistics_are_shown(&lab, &ofctl);
        what_cannot_be_is_refused(&ofctl);
        misses_reach_a_monitor(&lab, &ofctl);
    }
}

#[test]
fn a_switch_speaks_the_versions_that_it_is_told_to() {
    if !privileged() {
        return;
    }
    let lab = Lab::running(&[]);
    lab.suiro(&["switch", "add", "sw0", "--protocols", "1.0"]);
    let (old, new) =
        (Ofctl::management(&lab, "sw0").speaking_1_0(), Ofctl::management(&lab, "sw0"));
    for (protocols, speaks, stranger) in [("1.0", &old, &new), ("1.3", &new, &old)] {
        lab.suiro(&["switch", "mod", "sw0", "--protocols", protocols]);
        assert!(
            lab.suiro(&["switch", "show", "sw0"]).contains(&format!("OpenFlow      {protocols}"))
        );
        speaks.run("show", &[]);
        let said = stranger.says("show", &[]);
        assert!(said.err.contains("version negotiation failed"), "{}{}", said.out, said.err);
    }
    lab.suiro(&["switch", "mod", "sw0", "--protocols", "1.0,1.3"]);
    old.run("show", &[]);
    new.run("show", &[]);
}

/// ICMP from g1.
const FROM_G1: &str = "priority=100,icmp,in_port=1";

fn a_modify_changes_what_is_there_and_adds_what_is_not(lab: &Lab, ofctl: &Ofctl<'_>) {
    ofctl.run("mod-flows", &["icmp,in_port=1,actions=drop"]);
    assert!(lab.is_cut_off("g1", "g2"), "added");
    ofctl.run("mod-flows", &["icmp,in_port=1,actions=output:2"]);
    assert_eq!(lab.exchange("g1", "g2", 3), 3, "changed");
    assert!(lab.is_cut_off("g1", "g3"), "g3 is not where it goes");
    ofctl.run("del-flows", &["icmp,in_port=1"]);
    assert_eq!(lab.exchange("g1", "g3", 3), 3);
}

fn vlan_actions_tag_and_strip_untagged_frames(lab: &Lab, ofctl: &Ofctl<'_>) {
    for (actions, passes) in [
        ("mod_vlan_vid:5,output:2", false),
        ("mod_vlan_vid:5,strip_vlan,output:2", true),
        ("strip_vlan,output:2", true),
        ("mod_vlan_pcp:3,mod_vlan_vid:5,strip_vlan,mod_nw_tos:184,enqueue:2:1", true),
    ] {
        ofctl.run("add-flow", &[&format!("{FROM_G1},actions={actions}")]);
        let shown = ofctl.run("dump-flows", &["icmp,in_port=1"]);
        assert!(shown.contains(&format!("actions={actions}")), "{actions}:\n{shown}");
        assert_eq!(lab.exchange("g1", "g2", 3), if passes { 3 } else { 0 }, "{actions}");
    }
    ofctl.run("del-flows", &["icmp,in_port=1"]);
}

fn statistics_are_shown(lab: &Lab, ofctl: &Ofctl<'_>) {
    let shown = ofctl.run("show", &[]);
    for part in ["n_tables:254", "1(g1): addr:", "actions: output enqueue set_vlan_vid"] {
        assert!(shown.contains(part), "{part} is missing:\n{shown}");
    }
    assert!(ofctl.run("dump-ports", &["1"]).contains("rx pkts="));
    assert!(ofctl.run("dump-tables", &[]).contains("table 0"));
    assert!(ofctl.run("dump-aggregate", &[]).contains("flow_count=1"));
    assert!(ofctl.run("dump-desc", &[]).contains("suiro"));
    ofctl.run("queue-stats", &[]);
    let connections = lab.json(&["switch", "show", "sw0"])["connections"].clone();
    assert!(connections.is_array(), "{connections}");
}

fn what_cannot_be_is_refused(ofctl: &Ofctl<'_>) {
    let said = ofctl.says("add-flow", &["icmp,actions=output:0"]);
    assert!(said.err.contains("OFPBAC_BAD_OUT_PORT"), "{}", said.err);
    let said = ofctl.says("add-group", &["group_id=1,type=all"]);
    assert_ne!(said.code, 0, "1.0 has no groups");
}

/// Nothing else is there to forward g3's pings, and nobody wrote an entry that sends them to the controller.
fn misses_reach_a_monitor(lab: &Lab, ofctl: &Ofctl<'_>) {
    ofctl.run("del-flows", &[]);
    assert!(lab.is_cut_off("g3", "g2"), "the switch is secure");
    let monitor = ofctl.monitor();
    until("the monitor hears of a ping", || {
        lab.exchange("g3", "g2", 1);
        monitor.output().contains("OFPT_PACKET_IN")
    });
    let heard = monitor.output();
    for part in ["(via no_match)", "in_port=3", "dl_src=02:00:00:00:00:03"] {
        assert!(heard.contains(part), "{part} is missing:\n{heard}");
    }
    drop(monitor);
    ofctl.run("add-flow", &["priority=1,actions=NORMAL"]);
    until("pings pass again", || lab.exchange("g3", "g2", 1) == 1);
}
