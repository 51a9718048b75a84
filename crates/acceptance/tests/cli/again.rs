//! `--may-exist` and `--if-exists`: a script that runs twice does once what it says, and the second time nothing.

use acceptance::{Place, privileged};

const SCRIPT: &[&[&str]] = &[
    &["switch", "add", "sw0", "--may-exist", "--fail-mode", "secure"],
    &["port", "add", "sw0", "g1", "--type", "tap", "--mtu", "1400", "--may-exist"],
    &["queue", "add", "sw0", "g1", "1", "--max-rate", "10M"],
];

#[test]
fn what_is_there_becomes_what_is_named_and_keeps_the_rest() {
    if !privileged() {
        return;
    }
    let mut place = Place::new(&[]);
    place.start();
    for words in SCRIPT {
        place.suiro(words);
    }
    place.suiro(&["port", "mod", "sw0", "g1", "--rate", "1G"]);
    let port = || place.json(&["port", "show", "sw0", "g1"]);
    let events = |from: &str| place.suiro(&["events", "--since", from]).lines().count();
    let last = place.suiro(&["events"]).lines().last().unwrap().to_owned();
    let last = last.split_whitespace().next().unwrap();
    let before = port();
    for words in SCRIPT {
        place.suiro(words);
    }
    assert_eq!(events(last), 0, "nothing was to do");
    assert_eq!((port()["spec"].clone(), &port()["rate"]), (before["spec"].clone(), &"1G".into()));

    place.suiro(&["port", "add", "sw0", "g1", "--type", "tap", "--mtu", "1300", "--may-exist"]);
    assert_eq!((&port()["mtu"], &port()["rate"]), (&1300.into(), &"1G".into()));
    place.suiro(&["switch", "add", "sw0", "--may-exist", "--aux", "2"]);
    let switch = place.json(&["switch", "show", "sw0"]);
    assert_eq!((&switch["aux"], &switch["fail_mode"]), (&2.into(), &"secure".into()));

    for (words, cause) in [
        (&["port", "add", "sw0", "g1", "--type", "tap", "--may-exist", "-n", "x"][..], "`netns`"),
        (&["port", "add", "sw0", "g1", "--type", "af_packet", "--may-exist"], "`type`"),
        (&["switch", "add", "sw0", "--may-exist", "--dpid", "77", "--aux", "1"], "`dpid`"),
        (&["port", "add", "sw0", "g1", "--type", "tap"], "this name"),
    ] {
        let said = place.says(words);
        assert!(said.code == 1 && said.err.contains(cause), "{words:?}: {}", said.err);
    }
    assert_eq!(
        place.json(&["switch", "show", "sw0"])["aux"],
        2,
        "what was refused changed nothing"
    );
}

#[test]
fn what_is_gone_may_be_removed_where_that_is_said() {
    if !privileged() {
        return;
    }
    let mut place = Place::new(&[]);
    place.start();
    for words in SCRIPT {
        place.suiro(words);
    }
    for words in [
        &["queue", "del", "sw0", "g1", "1"][..],
        &["port", "del", "sw0", "g1"],
        &["switch", "del", "sw0"],
    ] {
        for again in 0..2 {
            let said = place.suiro(&[words, &["--if-exists"]].concat());
            assert!(said.ends_with(" is gone\n"), "{words:?}, time {again}: {said}");
        }
        assert_eq!(place.says(words).code, 1, "{words:?}");
    }
    assert!(place.suiro(&["part", "del", "lab", "--if-exists"]).contains("nothing to do"));
    assert_eq!(place.says(&["part", "del", "lab"]).code, 1);
}
