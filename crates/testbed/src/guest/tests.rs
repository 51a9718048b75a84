use super::*;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;

/// Whether tests that boot machines may run; they need what `make setup` installs, but not root.
fn wanted() -> bool {
    std::env::var_os("SUIRO_SKIP_PRIVILEGED").is_none_or(|value| value != "1")
}

fn cable(directory: &Path, name: &str, (here, there): (&str, &str), mac: &str) -> GuestSpec {
    let path = |end: &str| -> PathBuf { directory.join(end) };
    let backend = Backend::Cable { here: path(here), there: path(there) };
    GuestSpec::new(name).nic(Nic::new(backend, mac))
}

#[test]
fn two_guests_on_a_cable_reach_each_other_and_tell_what_went_wrong() {
    if !wanted() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let [a, b] = Guest::boot_all([
        cable(directory.path(), "a", ("one", "two"), "02:00:00:00:00:01"),
        cable(directory.path(), "b", ("two", "one"), "02:00:00:00:00:02"),
    ])
    .unwrap();
    println!("Linux {} takes commands after {:?} and {:?}", a.release, a.start, b.start);
    for (guest, address) in [(&a, "10.0.0.1"), (&b, "10.0.0.2")] {
        guest.run(&format!("ip addr add {address}/24 dev eth0 && ip link set eth0 up")).unwrap();
    }
    let pings = a.run("ping -c 3 -i 0.1 10.0.0.2").unwrap();
    assert!(pings.contains("3 packets received"), "{pings}");
    b.run("iperf3 -s -D -1").unwrap();
    let report = a.run("iperf3 -c 10.0.0.2 -t 1 -J").unwrap();
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    assert!(report["end"]["sum_received"]["bits_per_second"].as_f64().unwrap() > 0.0, "{report}");
    assert!(a.run("ethtool -i eth0").unwrap().contains("driver: virtio_net"));
    assert!(a.run("modprobe 8021q && ip link add link eth0 name v5 type vlan id 5").is_ok());

    let error = a.run("echo said; exit 7").unwrap_err().to_string();
    assert_eq!(error, "guest a: `echo said; exit 7` ended with 7: said");
    let said = a.says("sleep 60", Duration::from_secs(1)).unwrap();
    assert_eq!(said.status, 137, "a command that lasts too long is ended");
    let pid = a.pid();
    a.kill();
    assert!(!Path::new(&format!("/proc/{pid}")).exists());
    let error = format!("{:#}", b.run("poweroff -f").unwrap_err());
    assert!(
        error.contains("guest b: `poweroff -f` failed") && error.contains("hung up"),
        "{error}"
    );
}

#[test]
fn what_qemu_says_at_its_end_is_part_of_the_error() {
    if !wanted() {
        return;
    }
    let nic = Nic::vhost_user(Path::new("/nowhere/socket"), "02:00:00:00:00:01");
    let error = format!("{:#}", Guest::boot(&GuestSpec::new("lost").nic(nic)).err().unwrap());
    assert!(
        error.contains("guest lost: takes no commands") && error.contains("/nowhere/socket"),
        "{error}"
    );
}

#[test]
fn a_guest_goes_when_whoever_holds_its_channel_goes() {
    if !wanted() {
        return;
    }
    let Guest { mut qemu, channel, directory: _directory, .. } =
        Guest::boot(&GuestSpec::new("orphan")).unwrap();
    drop(channel);
    assert!(qemu.0.wait().unwrap().success());
}

#[test]
fn a_guest_goes_also_in_the_middle_of_a_command_and_its_log_has_what_was_said_by_then() {
    if !wanted() {
        return;
    }
    let spec = GuestSpec::new("busy").log().program("/usr/bin/env".into()).modules(&["veth"]);
    let Guest { mut qemu, channel, directory: _directory, log, .. } = Guest::boot(&spec).unwrap();
    let mut channel = channel.into_inner().unwrap();
    let said = channel.ask("ip link add name x0 type veth && ls /bin/env", START).unwrap();
    assert_eq!((said.status, said.output.trim()), (0, "/bin/env"));
    let mut lines = BufReader::new(log.unwrap()).lines();
    channel.send(&format!("echo begun >{LOG}; sleep 600"), START * 10).unwrap();
    assert_eq!(lines.next().unwrap().unwrap(), "begun");
    drop(channel);
    assert!(qemu.0.wait().unwrap().success());
    assert!(lines.next().is_none(), "the log ends with the machine");
}
