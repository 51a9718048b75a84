//! Steering beside flows past the worker: of their interface, and of their switch.

use crate::offload::{
    TC, Under, XDP, are_up, end, flows, leaves_nothing, packets, pings, place, place_as, program_on,
};
use acceptance::{Place, privileged, until};
use rustix::process::Signal;
use serde_json::Value;

/// Puts a rule of its own before the one that pings' requests match, or takes it away.
fn change(place: &Place, to: &str) {
    place.suiro(&["flow", to, "sw0", "priority=50000,icmp,in_port=g1,actions=output:g2"]);
}

#[test]
fn steering_comes_and_goes_beside_flows_on_xdp() {
    if !privileged() {
        return;
    }
    let mut place = place(XDP);
    assert!(place.reaches("g1", "10.0.0.2"));
    place.suiro(&["offload", "policy", "add", "all", "--match", "icmp", "--when", "first"]);
    place.suiro(&["offload", "on"]);
    let pings = pings(&place);
    until("both directions leave the worker", || are_up(&place, XDP));
    place.suiro(&["steer", "attach", "g1", "--unmatched", "stay"]);
    place.suiro(&["steer", "flow", "add", "udp,tp_dst=5022 actions=place(core=1)", "--on", "g1"]);
    assert!(are_up(&place, XDP), "steering takes nothing of them");
    change(&place, "add");
    until("requests leave again, by way of a worker beside steering", || are_up(&place, XDP));
    assert!(packets(&place, "icmp,in_port=g1") > 0);
    place.suiro(&["steer", "detach", "g1"]);
    let past = flows(&place)[0]["offloaded_packets"].as_u64().unwrap();
    until("the rung goes on", || flows(&place)[0]["offloaded_packets"].as_u64().unwrap() > past);
    end(pings);
    place.suiro(&["offload", "off"]);
    place.end(Signal::TERM);
    assert_eq!(program_on(&place, "g1"), "", "the interface is as it was");
    leaves_nothing(&place);
}

#[test]
fn a_steered_switchs_flows_come_back_without_loss_and_leave_again_as_soon_as_it_is_steered_no_more()
{
    steered(TC);
}

#[test]
fn a_steered_switchs_flows_come_back_from_xdp_and_leave_again_as_soon_as_it_is_steered_no_more() {
    steered(XDP);
}

fn steered(under: Under) {
    if !privileged() {
        return;
    }
    let mut place = place_as(under, &["--cores", "0,1"]);
    assert!(place.reaches("g1", "10.0.0.2"));
    place.suiro(&["offload", "policy", "add", "all", "--match", "icmp", "--when", "first"]);
    place.suiro(&["offload", "on"]);
    let pings = pings(&place);
    until("both directions leave the worker", || are_up(&place, under));

    place.suiro(&["steer", "attach", "switch:sw0"]);
    let are_back = flows(&place).iter().all(|flow| flow["rung"] == "worker");
    assert!(are_back, "steering has begun: {:?}", flows(&place));
    let why = place.suiro(&["offload", "why", "sw0", "in_port=g1,icmp,icmp_type=8"]);
    for said in ["possible  on no rung: its switch is steered", "`suiro steer detach switch:NAME`"]
    {
        assert!(why.contains(said), "{why}");
    }
    let waits = |flow: &Value, seconds: f64| flow["next_try_s"].as_f64() > Some(seconds);
    until("they are refused for the third time", || {
        flows(&place).iter().all(|flow| waits(flow, 2.0))
    });

    place.suiro(&["steer", "detach", "switch:sw0"]);
    let left = flows(&place);
    assert!(left.iter().all(|flow| !waits(flow, 1.0)), "no flow waits for its next try: {left:?}");
    until("both directions leave again", || are_up(&place, under));
    end(pings);
    place.suiro(&["offload", "off"]);
    place.end(Signal::TERM);
    leaves_nothing(&place);
}
