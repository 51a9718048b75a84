//! Queues as `ovs-ofctl` reads them, in 1.3 and in 1.0.

use crate::support::{Kind, Lab, Ofctl, privileged};

#[test]
fn ovs_ofctl_reads_queues_and_sends_by_them_in_both_versions() {
    if !privileged() {
        return;
    }
    let lab = Lab::running(&["g1", "g2"]);
    lab.suiro(&["switch", "add", "sw0", "--fail-mode", "secure"]);
    for guest in ["g1", "g2"] {
        lab.connect("sw0", guest, Kind::Tap);
    }
    lab.suiro(&["port", "mod", "sw0", "g2", "--rate", "1G"]);
    lab.suiro(&["queue", "add", "sw0", "g2", "3", "--min-rate", "250M", "--max-rate", "500M"]);
    lab.suiro(&["queue", "add", "sw0", "g1", "3"]);
    let (new, old) =
        (Ofctl::management(&lab, "sw0"), Ofctl::management(&lab, "sw0").speaking_1_0());
    new.run("add-flow", &["arp,actions=NORMAL"]);
    new.run("add-flow", &["icmp,in_port=2,actions=output:1"]);
    let mut sent = 0;
    for (ofctl, actions) in [(&new, "set_queue:3,output:2"), (&old, "enqueue:2:3")] {
        ofctl.run("add-flow", &[&format!("icmp,in_port=1,actions={actions}")]);
        sent += lab.exchange("g1", "g2", 3);
        let stats = ofctl.run("queue-stats", &["2", "3"]);
        assert!(stats.contains(&format!("pkts={sent}")), "{sent} sent: {stats}");
        let all = ofctl.run("queue-stats", &[]);
        assert!(all.contains("2 queues"), "{all}");
        let config = ofctl.run("queue-get-config", &["2"]);
        assert!(config.contains("queue 3") && config.contains("min_rate:25.0%"), "{config}");
        let absent = ofctl.says("queue-stats", &["2", "9"]);
        assert!(absent.out.contains("OFPQOFC_BAD_QUEUE"), "{}{}", absent.out, absent.err);
    }
    assert_eq!(sent, 6);
    let config = new.run("queue-get-config", &[]);
    assert!(
        config.contains("max_rate:50.0%") && config.matches("queue 3").count() == 2,
        "{config}"
    );
}
