//! Records that are damaged, or that nobody takes back.

use super::*;
use crate::store::database::{SET_ASIDE, table};
use redb::{Database, ReadableDatabase, ReadableTableMetadata};

/// Two rules on the disk.
fn home_with_rules() -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    let (store, _) = Store::open(home.path(), &Arc::default()).unwrap();
    let journal = store.journal(&sw("sw0"));
    (0..2).for_each(|number| journal.record(rule(number)));
    drop((journal, store));
    home
}

fn database(home: &Path) -> Database {
    Database::open(home.join(FILE_NAME)).unwrap()
}

/// Flips a bit of the second rule: of its record, or of the key that says what it matches.
fn flip(home: &Path, in_record: bool) {
    let database = database(home);
    let transaction = database.begin_write().unwrap();
    {
        let mut rules = transaction.open_table(table(Kind::Flow)).unwrap();
        let (key, record) = rules
            .pop_last()
            .unwrap()
            .map(|(key, record)| (key.value().1.to_vec(), record.value().to_vec()))
            .unwrap();
        let (mut key, mut record) = (key, record);
        let bytes = if in_record { &mut record } else { &mut key };
        *bytes.last_mut().unwrap() ^= 1;
        rules.insert(("sw0", &*key), &*record).unwrap();
    }
    transaction.commit().unwrap();
}

fn set_aside(home: &Path) -> u64 {
    let transaction = database(home).begin_read().unwrap();
    transaction.open_table(SET_ASIDE).unwrap().len().unwrap()
}

#[test]
fn a_flipped_bit_puts_no_other_rule_in_force_and_is_told() {
    for in_record in [true, false] {
        let home = home_with_rules();
        flip(home.path(), in_record);
        for told in [1, 0] {
            let (store, kept) = Store::open(home.path(), &Arc::default()).unwrap();
            assert_eq!(cookies(&kept, "sw0"), [0], "in_record: {in_record}");
            assert_eq!(store.left_out(), told, "at the start that meets it, and not again");
        }
        assert_eq!(set_aside(home.path()), 1);
    }
}

#[test]
fn what_a_switch_does_not_take_back_is_gone_at_the_next_start() {
    let home = home_with_rules();
    {
        let (store, kept) = Store::open(home.path(), &Arc::default()).unwrap();
        drop(kept);
        store.forget_refused(&sw("sw0"), &rule(1));
        assert_eq!(store.left_out(), 1);
    }
    let (_store, kept) = Store::open(home.path(), &Arc::default()).unwrap();
    assert_eq!(cookies(&kept, "sw0"), [0]);
}

#[test]
fn a_damaged_page_ends_no_start_and_puts_no_other_rule_in_force() {
    let sound = home_with_rules();
    let clean = fs::read(sound.path().join(FILE_NAME)).unwrap();
    for (number, fill) in (0..clean.len() / 4096).flat_map(|number| [(number, 0), (number, 0xa5)]) {
        let home = tempfile::tempdir().unwrap();
        let mut damaged = clean.clone();
        damaged[number * 4096..][..4096].fill(fill);
        fs::write(home.path().join(FILE_NAME), damaged).unwrap();
        let (store, kept) = Store::open(home.path(), &Arc::default()).unwrap();
        let found = cookies(&kept, "sw0");
        assert!(found.iter().all(|cookie| *cookie < 2), "page {number}: {found:?}");
        drop(kept);
        store.put_switch(&SwitchSpec::named(sw("sw0")));
        runtime().block_on(store.flushed());
        assert!(store.problem().is_none(), "page {number}");
    }
}

/// Three switches with more rules than a page holds.
fn large_home() -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    let (store, _) = Store::open(home.path(), &Arc::default()).unwrap();
    for name in ["a", "b", "c"] {
        store.put_switch(&SwitchSpec::named(sw(name)));
        let journal = store.journal(&sw(name));
        (0..400).for_each(|number| journal.record(rule(number)));
    }
    drop(store);
    home
}

/// All that a start reads.
fn read_all(kept: &Kept) {
    kept.switches().unwrap();
    kept.all_ports().unwrap();
    kept.steer(|_, _| {}).unwrap();
    let orphans = kept.orphans(&[sw("a"), sw("b")]).unwrap();
    assert!(orphans.iter().all(|orphan| !orphan.is_empty()));
    for name in ["a", "b", "c"] {
        assert!(cookies(kept, name).iter().all(|cookie| *cookie < 400), "no other rule");
        kept.ports(&sw(name)).unwrap();
        kept.numbers(&sw(name)).unwrap();
        kept.past_numbers(&sw(name)).unwrap();
        kept.port_configs(&sw(name), |_, _| {}).unwrap();
        kept.tables(&sw(name)).unwrap();
    }
}

/// Ways to damage a file.
const DAMAGES: [&str; 5] =
    ["a bit", "a sector at random", "a page of zeros", "a page at random", "truncated"];

/// What becomes of a file at a start. Something else in force, or something missing without a word, fails.
fn outcome(home: &Path) -> &'static str {
    let (store, kept) = Store::open(home, &Arc::default()).unwrap();
    read_all(&kept);
    let all: usize = ["a", "b", "c"].map(|name| cookies(&kept, name).len()).iter().sum();
    let is_said = kept.set_aside.is_some() || store.left_out() > 0;
    // It can be written, too.
    store.put_switch(&SwitchSpec::named(sw("a")));
    runtime().block_on(store.flushed());
    assert!(store.problem().is_none());
    match (kept.switches().unwrap().len(), all) {
        (3, 1200) if kept.set_aside.is_some() => "all there, copied to a new file",
        (3, 1200) => "all there",
        (switches, rules) if !is_said => {
            panic!("{switches} switches and {rules} rules, and not a word")
        }
        (1.., 1..) if kept.set_aside.is_some() => "some lost, the rest copied to a new file",
        (1.., 1..) => "some set aside in the file",
        _ => "file set aside, begun anew",
    }
}

/// `SUIRO_DAMAGES=1000` makes so many of each kind and prints a table.
#[test]
fn whatever_is_damaged_a_start_reads_all_that_it_can_and_says_what_is_missing() {
    let each = std::env::var("SUIRO_DAMAGES").map_or(20, |each| each.parse().unwrap());
    let sound = large_home();
    let clean = fs::read(sound.path().join(FILE_NAME)).unwrap();
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = |below: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (random >> 33) as usize % below
    };
    let mut outcomes = std::collections::BTreeMap::<_, usize>::new();
    for round in 0..each * DAMAGES.len() {
        let home = tempfile::tempdir().unwrap();
        let mut damaged = clean.clone();
        let kind = DAMAGES[round % DAMAGES.len()];
        let mut place = |unit: usize| next(clean.len() / unit) * unit;
        match kind {
            "a bit" => damaged[place(1)] ^= 1 << (round / DAMAGES.len() % 8),
            "truncated" => damaged.truncate(place(1)),
            "a page of zeros" => damaged[place(4096)..][..4096].fill(0),
            kind => {
                let unit = if kind == "a sector at random" { 512 } else { 4096 };
                let at = place(unit);
                damaged[at..][..unit].fill_with(|| next(256) as u8);
            }
        }
        fs::write(home.path().join(FILE_NAME), damaged).unwrap();
        *outcomes.entry((kind, outcome(home.path()))).or_default() += 1;
    }
    for ((kind, outcome), count) in &outcomes {
        println!("{kind:<20} {outcome:<42} {count:>5}");
    }
}

/// What is in force would be gone at the next start, and nobody knew.
#[test]
fn a_file_that_is_opened_again_keeps_what_is_damaged_in_its_place() {
    let home = home_with_rules();
    flip(home.path(), true);
    let place = place::Place::open(&home.path().join(FILE_NAME)).unwrap();
    drop(File::open_again(&place.into(), machine_clock()()).unwrap());
    let transaction = database(home.path()).begin_read().unwrap();
    assert!(transaction.open_table(SET_ASIDE).is_err(), "nothing was set aside");
}
