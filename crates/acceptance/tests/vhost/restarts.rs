//! Either side ends in any way, at any time, and comes back.

use super::guest::talk;
use super::{Guests, privileged};
use rustix::process::Signal;
use testbed::driver::frontend::Shape;

#[test]
fn a_killed_node_finds_its_guests_again() {
    if !privileged() {
        return;
    }
    let mut guests = Guests::called(2);
    let mut pair = guests.pair();
    talk(&mut pair, "before");
    for round in 0..3 {
        guests.lab.end(Signal::KILL);
        drop(pair);
        guests.lab.start();
        pair = guests.pair();
        talk(&mut pair, &format!("after kill {round}"));
    }
}

#[test]
fn a_guest_that_starts_anew_is_served_anew_and_the_other_never_notices() {
    if !privileged() {
        return;
    }
    let guests = Guests::called(2);
    let [mut one, mut other] = guests.pair();
    for round in 0..5 {
        drop(one);
        one = guests.connect(1, Shape::default());
        guests.until(1, "ready");
        let mut pair = [one, other];
        talk(&mut pair, &format!("start {round}"));
        [one, other] = pair;
    }
}

#[test]
fn both_end_at_once_and_come_back_in_either_order() {
    if !privileged() {
        return;
    }
    let mut guests = Guests::called(2);
    for round in 0..2 {
        drop(guests.pair());
        guests.lab.end(Signal::KILL);
        guests.lab.start();
        let mut pair = guests.pair();
        talk(&mut pair, &format!("round {round}"));
        drop(pair);
    }
}

#[test]
fn an_orderly_end_and_a_reload_keep_ports_that_the_file_declares() {
    if !privileged() {
        return;
    }
    let mut guests = Guests::called(0);
    guests.lab.end(Signal::TERM);
    let socket = guests.path(7);
    guests.lab.configure(&format!(
        "[[switch]]\nname = \"sw1\"\n[[switch.port]]\nname = \"vm7\"\ntype = \"vhost-user\"\nsocket = \"{}\"\nserver = true\nqueues = 2\n",
        socket.display()
    ));
    guests.lab.start();
    let shown = guests.lab.json(&["port", "show", "sw1", "vm7"]);
    assert_eq!(
        (&shown["guest"]["server"], shown["guest"]["rings"].as_array().unwrap().len()),
        (&true.into(), 4)
    );
    super::until("the socket is there", || socket.exists());
    guests.lab.end(Signal::TERM);
    assert!(!socket.exists(), "an orderly end takes the socket away");
}
