mod damage;
mod format;
mod uses;

use super::*;
use flow::{Action, Instructions, Nanos, Output};
use openflow::{GroupDesc, GroupId, GroupType, MeterConfig, MeterFlags, MeterId};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use wire::{Field, Key};

fn sw(name: &str) -> SwitchName {
    name.parse().unwrap()
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// Opens a store whose clock stands still.
fn open_at(home: &Path, monotonic: Nanos) -> (Store, Kept) {
    let now = Moment { boot: 1, monotonic, wall_ms: 1000 };
    Store::open_with(home, &Arc::default(), Arc::new(move || now)).unwrap()
}

fn rule(number: u32) -> Change {
    let mut id = FlowId { table: 0, priority: 10, key: Key::default(), mask: Key::default() };
    for (field, value) in [(Field::EthType, 0x0800), (Field::Ipv4Dst, u128::from(number))] {
        id.key.set(field, value);
        id.mask.set(field, field.full());
    }
    let apply = vec![Action::Output(Output::Port(number % 7 + 1))];
    let entry = FlowEntry {
        cookie: u64::from(number),
        instructions: Instructions { apply, ..Default::default() },
        ..Default::default()
    };
    Change::FlowSet(id, entry)
}

fn cookies(kept: &Kept, switch: &str) -> Vec<u64> {
    let mut cookies = Vec::new();
    kept.changes(&sw(switch), |change| match change {
        Change::FlowSet(_, entry) => cookies.push(entry.cookie),
        other => panic!("{other:?}"),
    })
    .unwrap();
    cookies.sort_unstable();
    cookies
}

#[test]
fn everything_put_comes_back_in_an_order_that_can_be_added() {
    let home = tempfile::tempdir().unwrap();
    let spec = SwitchSpec::named(sw("sw0"));
    let port = PortSpec::new("p1".parse().unwrap(), api::Kind::Tap(api::Tap::default()));
    let group = GroupDesc { kind: GroupType::All, id: GroupId(3), buckets: vec![] };
    let meter = MeterConfig { flags: MeterFlags::BURST, id: MeterId(4), bands: vec![] };
    let changes = [
        rule(1),
        Change::GroupSet(group, 0),
        Change::MeterSet(meter, 0),
        Change::PortConfig { port: 1, bits: 5 },
    ];
    {
        let (store, kept) = open_at(home.path(), Nanos(7));
        drop(kept);
        store.put_switch(&spec);
        store.put_port(&spec.name, &"p1".parse().unwrap(), &port);
        store.put_number(&spec.name, &"p1".parse().unwrap(), 9);
        let journal = store.journal(&spec.name);
        changes.iter().for_each(|change| journal.record(change.clone()));
        store.journal(&sw("sw0-other")).record(rule(77));
    }
    let (_store, kept) = open_at(home.path(), Nanos(7));
    assert_eq!(kept.switches().unwrap(), std::slice::from_ref(&spec));
    assert_eq!(kept.ports(&spec.name).unwrap(), [port]);
    assert_eq!(kept.numbers(&spec.name).unwrap(), [("p1".parse().unwrap(), 9)]);
    let mut found = Vec::new();
    kept.changes(&spec.name, |change| found.push(change)).unwrap();
    let [flow, group, meter, config] = changes;
    let Change::PortConfig { port, bits } = config else { unreachable!() };
    let mut configs = Vec::new();
    kept.port_configs(&spec.name, |port, bits| configs.push((port, bits))).unwrap();
    assert_eq!(configs, [(port, bits)]);
    assert_eq!(found, [meter, group, flow]);
    assert_eq!(kept.orphans(std::slice::from_ref(&spec.name)).unwrap(), ["sw0-other"]);
}

#[test]
fn ages_go_on_while_nobody_keeps_them() {
    let home = tempfile::tempdir().unwrap();
    {
        let (store, _) = open_at(home.path(), Nanos(100));
        let Change::FlowSet(id, entry) = rule(1) else { unreachable!() };
        store.journal(&sw("sw0")).record(Change::FlowSet(id, FlowEntry { age_ns: 30, ..entry }));
    }
    let (_store, kept) = open_at(home.path(), Nanos(150));
    let mut ages = Vec::new();
    kept.changes(&sw("sw0"), |change| {
        let Change::FlowSet(_, entry) = change else { panic!("{change:?}") };
        ages.push(entry.age_ns);
    })
    .unwrap();
    assert_eq!(ages, [80]);
}

#[test]
fn the_tables_of_a_pipeline_are_kept_until_they_are_the_usual_ones() {
    let home = tempfile::tempdir().unwrap();
    let tables = TableNames::from([(0, "".into()), (9, "routes".into())]);
    for wanted in [Some(tables), None] {
        let (store, kept) = Store::open(home.path(), &Arc::default()).unwrap();
        drop(kept);
        store.journal(&sw("sw0")).record(Change::Tables(wanted.clone()));
        drop(store);
        let (_store, kept) = Store::open(home.path(), &Arc::default()).unwrap();
        assert_eq!(kept.tables(&sw("sw0")).unwrap(), wanted);
        assert_eq!(kept.tables(&sw("sw")).unwrap(), None);
    }
}

#[test]
fn a_forgotten_switch_leaves_nothing_and_takes_no_neighbour_along() {
    let home = tempfile::tempdir().unwrap();
    {
        let (store, _) = Store::open(home.path(), &Arc::default()).unwrap();
        for name in ["sw1", "sw10", "sw2"] {
            store.put_switch(&SwitchSpec::named(sw(name)));
            store.journal(&sw(name)).record(rule(1));
        }
        runtime().block_on(store.flushed());
        store.forget_switch(&sw("sw1"));
    }
    let (_store, kept) = Store::open(home.path(), &Arc::default()).unwrap();
    let names: Vec<_> =
        kept.switches().unwrap().into_iter().map(|spec| spec.name.to_string()).collect();
    assert_eq!(names, ["sw10", "sw2"]);
    assert_eq!([cookies(&kept, "sw1"), cookies(&kept, "sw10")], [vec![], vec![1]]);
}

#[test]
fn the_file_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let home = tempfile::tempdir().unwrap();
    drop(Store::open(home.path(), &Arc::default()).unwrap());
    let mode = fs::metadata(home.path().join(FILE_NAME)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn deleted_things_stay_deleted() {
    let home = tempfile::tempdir().unwrap();
    {
        let (store, _) = Store::open(home.path(), &Arc::default()).unwrap();
        let journal = store.journal(&sw("sw0"));
        (0..10).for_each(|number| journal.record(rule(number)));
        runtime().block_on(store.flushed());
        let Change::FlowSet(id, _) = rule(3) else { unreachable!() };
        journal.record(Change::FlowGone(id));
    }
    let (_store, kept) = Store::open(home.path(), &Arc::default()).unwrap();
    assert_eq!(cookies(&kept, "sw0"), [0, 1, 2, 4, 5, 6, 7, 8, 9]);
}

#[test]
fn a_second_process_on_the_same_state_is_told_so() {
    let home = tempfile::tempdir().unwrap();
    let first = Store::open(home.path(), &Arc::default()).unwrap();
    let error = Store::open(home.path(), &Arc::default()).map(|_| ()).unwrap_err();
    assert!(matches!(error, StoreError::InUse { .. }), "{error}");
    assert!(error.remedy().contains("state_dir"));
    drop(first);
}

#[test]
fn a_damaged_file_is_set_aside_and_a_fresh_one_works() {
    let garbage: Vec<u8> = (0..100_000u32).map(|n| (n * 7 + 3) as u8).collect();
    for content in [&b"not a database"[..], &garbage, &[0; 4096], &[]] {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join(FILE_NAME), content).unwrap();
        let (store, kept) = Store::open(home.path(), &Arc::default()).unwrap();
        assert_eq!(fs::read(kept.set_aside.as_ref().unwrap()).unwrap(), content);
        drop(kept);
        store.put_switch(&SwitchSpec::named(sw("sw0")));
        runtime().block_on(store.flushed());
        assert!(store.problem().is_none());
    }
}

#[test]
fn what_is_no_file_is_set_aside_and_keeps_nobody_waiting() {
    let make_fifo = |path: &Path| {
        let done = std::process::Command::new("mkfifo").arg(path).status().unwrap();
        assert!(done.success());
    };
    for make in [&|path: &Path| fs::create_dir(path).unwrap(), &make_fifo as &dyn Fn(&Path)] {
        let home = tempfile::tempdir().unwrap();
        make(&home.path().join(FILE_NAME));
        let (store, kept) = Store::open(home.path(), &Arc::default()).unwrap();
        assert!(kept.set_aside.as_ref().unwrap().exists() && store.problem().is_none());
    }
}

#[test]
fn a_file_that_is_removed_or_replaced_is_written_whole_again() {
    let remove = |path: &Path| fs::remove_file(path).unwrap();
    let replace = |path: &Path| {
        fs::rename(path, path.with_extension("old")).unwrap();
        fs::copy(path.with_extension("old"), path).unwrap();
    };
    let remove_all = |path: &Path| fs::remove_dir_all(path.parent().unwrap()).unwrap();
    let acts: [&dyn Fn(&Path); 3] = [&remove, &replace, &remove_all];
    for (number, act) in acts.into_iter().enumerate() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().join("state");
        let (store, kept) = Store::open(&home, &Arc::default()).unwrap();
        drop(kept);
        let journal = store.journal(&sw("sw0"));
        (0..5).for_each(|number| journal.record(rule(number)));
        runtime().block_on(store.flushed());
        act(store.path());
        journal.record(rule(5));
        runtime().block_on(store.flushed());
        assert!(store.problem().is_none() && store.path().exists(), "act {number}");
        act(store.path());
        drop((journal, store)); // nothing waits: the end looks once more
        let (_store, kept) = Store::open(&home, &Arc::default()).unwrap();
        assert_eq!(cookies(&kept, "sw0"), [0, 1, 2, 3, 4, 5], "act {number}");
        assert!(kept.set_aside.is_none());
    }
}

#[test]
fn a_file_that_is_removed_is_there_again_though_nothing_changes() {
    let home = tempfile::tempdir().unwrap();
    let (store, kept) = Store::open(home.path(), &Arc::default()).unwrap();
    drop(kept);
    fs::remove_file(store.path()).unwrap();
    let start = Instant::now();
    while !store.path().exists() {
        assert!(start.elapsed() < Duration::from_secs(30), "nobody looked");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
#[ignore = "a child process of a_file_on_a_read_only_disk_is_in_force_and_said_to_be_unsaved"]
fn child_has_a_read_only_disk() {
    let Some(home) = child_home() else { return };
    let (store, kept) = Store::open(&home, &Arc::default()).unwrap();
    println!("\nkept {:?}", cookies(&kept, "sw0"));
    drop(kept);
    println!("\nproblem {}", api::chain(&*store.problem().expect("the disk is read-only")));
    let journal = store.journal(&sw("sw0"));
    journal.record(rule(7));
    runtime().block_on(journal.flushed());
    println!("\nsaved {}", store.problem().is_none());
}

#[test]
fn a_file_on_a_read_only_disk_is_in_force_and_said_to_be_unsaved() {
    if !crate::privileged_tests() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    {
        let (store, _) = Store::open(home.path(), &Arc::default()).unwrap();
        let journal = store.journal(&sw("sw0"));
        (0..3).for_each(|number| journal.record(rule(number)));
    }
    let path = home.path().display();
    let mount = format!(
        "mount --bind {path} {path} && mount -o remount,ro,bind {path} && exec \"$0\" \"$@\""
    );
    let wrap = ["unshare", "-m", "sh", "-c", &mount];
    let output = spawn_child("child_has_a_read_only_disk", home.path(), &wrap);
    let output = output.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    for told in ["kept [0, 1, 2]", "problem state file", "Read-only", "saved false"] {
        assert!(text.contains(told), "{told}: {text}");
    }
}

#[test]
fn a_file_cut_short_is_set_aside_too() {
    let home = tempfile::tempdir().unwrap();
    {
        let (store, _) = Store::open(home.path(), &Arc::default()).unwrap();
        let journal = store.journal(&sw("sw0"));
        (0..10_000).for_each(|number| journal.record(rule(number)));
    }
    let path = home.path().join(FILE_NAME);
    let length = fs::metadata(&path).unwrap().len();
    fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(length / 2).unwrap();
    let (_store, kept) = Store::open(home.path(), &Arc::default()).unwrap();
    assert!(kept.set_aside.is_some());
}

#[test]
fn a_file_of_a_later_format_is_refused_and_left_alone() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join(FILE_NAME);
    {
        let database = redb::Database::create(&path).unwrap();
        let transaction = database.begin_write().unwrap();
        transaction
            .open_table(redb::TableDefinition::<&str, u64>::new("meta"))
            .unwrap()
            .insert("format", 99)
            .unwrap();
        transaction.commit().unwrap();
    }
    let error = Store::open(home.path(), &Arc::default()).map(|_| ()).unwrap_err();
    assert!(matches!(error, StoreError::Format { found: 99, .. }), "{error}");
    assert!(path.exists());
}

#[test]
fn a_session_without_room_waits_for_the_disk_and_its_neighbour_does_not() {
    let home = tempfile::tempdir().unwrap();
    let (store, _) = Store::open(home.path(), &Arc::default()).unwrap();
    let (busy, idle) = (store.journal(&sw("busy")), store.journal(&sw("idle")));
    (0..2 * ROOM as u32).for_each(|number| busy.record(rule(number)));
    runtime().block_on(async {
        idle.room().await;
        busy.room().await;
    });
    assert!(store.shared.progress().tried > 0, "there is room only because something was written");
}

/// Runs one of the `child_…` functions below in a process of its own.
fn spawn_child(name: &str, home: &Path, wrap: &[&str]) -> Child {
    let this = std::env::current_exe().unwrap();
    let mut words: Vec<_> = wrap.iter().map(Into::into).collect();
    words.push(this.into_os_string());
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).args([
        "--exact",
        &format!("store::tests::{name}"),
        "--ignored",
        "--nocapture",
    ]);
    command.env("SUIRO_TEST_HOME", home).stdout(Stdio::piped()).spawn().unwrap()
}

fn child_home() -> Option<PathBuf> {
    std::env::var_os("SUIRO_TEST_HOME").map(PathBuf::from)
}

#[test]
#[ignore = "a child process of killed_in_the_middle_of_writing_nothing_promised_is_lost"]
fn child_writes_until_killed() {
    let Some(home) = child_home() else { return };
    let (store, kept) = Store::open(&home, &Arc::default()).unwrap();
    drop(kept);
    let journal = store.journal(&sw("sw0"));
    for round in 0.. {
        (0..100).for_each(|n| journal.record(rule(round * 100 + n)));
        if round % 5 == 0 {
            runtime().block_on(journal.flushed());
            println!("\ndurable {}", (round + 1) * 100);
        }
    }
}

#[test]
fn killed_in_the_middle_of_writing_nothing_promised_is_lost() {
    let home = tempfile::tempdir().unwrap();
    for round in 1..=5 {
        fs::remove_file(home.path().join(FILE_NAME)).ok();
        let mut child = spawn_child("child_writes_until_killed", home.path(), &[]);
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let promises = lines.filter_map(|line| line.strip_prefix("durable ")?.parse::<u64>().ok());
        let promised = promises.take(3 * round).last().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        let (_store, kept) = Store::open(home.path(), &Arc::default()).unwrap();
        assert_eq!(kept.set_aside, None);
        let found = cookies(&kept, "sw0");
        assert!(found.len() as u64 >= promised, "{} of {promised}", found.len());
        assert!(
            found.iter().copied().eq(0..found.len() as u64),
            "a commit is whole or absent, in order"
        );
    }
}

#[test]
#[ignore = "a child process of on_a_full_disk_the_node_goes_on_and_catches_up_when_there_is_space"]
fn child_fills_its_disk() {
    let Some(home) = child_home() else { return };
    let filler = home.join("filler");
    let (store, kept) = Store::open(&home, &Arc::default()).unwrap();
    drop(kept);
    let journal = store.journal(&sw("sw0"));
    journal.record(rule(0));
    runtime().block_on(journal.flushed());
    assert!(store.problem().is_none());
    let mut file = fs::File::create(&filler).unwrap();
    while file.write_all(&[0; 4096]).is_ok() {}
    (0..50_000).for_each(|number| journal.record(rule(number)));
    runtime().block_on(journal.flushed());
    let problem = store.problem().expect("the disk is full");
    println!("\nproblem {}", api::chain(&*problem));
    runtime().block_on(journal.room());
    drop(file);
    fs::remove_file(filler).unwrap();
    let start = Instant::now();
    while store.problem().is_some() {
        assert!(start.elapsed() < Duration::from_secs(30), "writing never resumed");
        std::thread::sleep(Duration::from_millis(50));
    }
    drop((journal, store));
    println!("\nkept {}", cookies(&Store::open(&home, &Arc::default()).unwrap().1, "sw0").len());
}

#[test]
fn on_a_full_disk_the_node_goes_on_and_catches_up_when_there_is_space() {
    if !crate::privileged_tests() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let mount =
        format!("mount -t tmpfs -o size=24m none {} && exec \"$0\" \"$@\"", home.path().display());
    let child =
        spawn_child("child_fills_its_disk", home.path(), &["unshare", "-m", "sh", "-c", &mount]);
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    assert!(text.contains("problem state file: writing failed"), "{text}");
    assert!(text.contains("kept 50000"), "{text}");
}
