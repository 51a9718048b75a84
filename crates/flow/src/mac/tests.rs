use super::*;
use proptest::prelude::*;
use std::collections::HashMap;

const SECRET: [u64; 2] = [0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210];

fn at(seconds: u64) -> Nanos {
    Nanos(seconds * 1_000_000_000)
}

fn table(entries: usize) -> MacTable {
    MacTable::new(SECRET, entries)
}

#[test]
fn a_station_is_found_in_its_vlan_only() {
    let table = table(64);
    assert_eq!(table.lookup(0, 5, at(0)), None);
    table.learn(0, 5, 1, at(0));
    table.learn(7, 5, 2, at(0));
    assert_eq!(table.lookup(0, 5, at(1)), Some(1));
    assert_eq!(table.lookup(7, 5, at(1)), Some(2));
    assert_eq!(table.lookup(8, 5, at(1)), None);
}

#[test]
fn a_station_that_moves_is_found_at_its_new_port_at_once() {
    let table = table(64);
    table.learn(1, 5, 1, at(0));
    table.learn(1, 5, 0xffff_fffe, at(0));
    assert_eq!(table.lookup(1, 5, at(0)), Some(0xffff_fffe));
    assert_eq!(table.dump(at(0)).len(), 1);
}

#[test]
fn an_entry_ages_from_its_last_frame() {
    let table = table(64);
    table.learn(1, 5, 1, at(0));
    table.learn(1, 5, 1, at(200));
    assert_eq!(table.lookup(1, 5, at(500)), Some(1));
    assert_eq!(table.lookup(1, 5, at(501)), None);
    table.set_ageing(1000);
    assert_eq!(table.dump(at(501)), [MacEntry { vlan: 1, mac: 5, port: 1, age_s: 301 }]);
    assert_eq!(table.lookup(1, 5, at(100)), Some(1), "a clock behind is no reason to forget");
}

#[test]
fn a_flush_forgets_one_port_or_all() {
    let table = table(64);
    (0..20).for_each(|mac| table.learn(0, mac, mac as u32 % 2, at(0)));
    table.flush_ports(|port| port == 1);
    assert!(table.dump(at(0)).iter().all(|entry| entry.port == 0));
    assert_eq!(table.dump(at(0)).len(), 10);
    table.flush();
    assert!(table.dump(at(0)).is_empty());
}

#[test]
fn a_table_holds_what_it_was_made_for() {
    let table = table(4096);
    (0..4096).for_each(|mac| table.learn(0, mac << 8, mac as u32 % 8, at(0)));
    let found = table.dump(at(0)).len();
    assert!(found > 4096 - 4096 / 200, "{found} of 4096");
}

#[test]
fn a_flood_of_addresses_puts_out_no_other_guests_station() {
    let table = table(1024);
    let guests = |mac: u64| (mac % 50) as u32 + 2;
    (0..200).for_each(|mac| table.learn(0, mac, guests(mac), at(0)));
    (1000..200_000).for_each(|mac| table.learn(0, mac, 1, at(1)));
    for mac in 0..200 {
        assert_eq!(table.lookup(0, mac, at(2)), Some(guests(mac)), "station {mac}");
    }
}

#[test]
fn during_a_flood_newcomers_still_find_a_place() {
    let table = table(1024);
    (1000..200_000).for_each(|mac| table.learn(0, mac, 1, at(1)));
    (0..200).for_each(|mac| table.learn(0, mac, mac as u32 + 2, at(2)));
    (200_000..400_000).for_each(|mac| table.learn(0, mac, 1, at(2)));
    let found = (0..200).filter(|&mac| table.lookup(0, mac, at(3)) == Some(mac as u32 + 2)).count();
    assert_eq!(found, 200);
}

#[test]
fn a_flood_keeps_the_flooders_own_newest_stations() {
    let table = table(64);
    (0..10_000).for_each(|mac| table.learn(0, mac, 1, at(mac)));
    assert_eq!(table.lookup(0, 9_999, at(9_999)), Some(1));
}

#[test]
fn readers_never_see_a_mixture_of_two_entries() {
    // One set; the port of an entry follows from its VLAN and address, so that a mixture shows.
    let table = table(1);
    let port = |vlan: u16, mac: u64| u32::from(vlan) << 16 | mac as u32;
    std::thread::scope(|scope| {
        for worker in 0..2u64 {
            let table = &table;
            scope.spawn(move || {
                for turn in 0..200_000u64 {
                    let (vlan, mac) = ((turn % 5) as u16, (turn * 7 + worker) % 23);
                    table.learn(vlan, mac, port(vlan, mac), at(turn / 10)); // aged at once: everything is put out
                }
            });
        }
        scope.spawn(|| {
            table.set_ageing(0);
            for turn in 0..400_000u64 {
                let (vlan, mac) = ((turn % 5) as u16, turn % 23);
                if let Some(found) = table.lookup(vlan, mac, at(0)) {
                    assert_eq!(found, port(vlan, mac));
                }
            }
        });
    });
}

proptest! {
    /// The slow obvious form, while nothing has to be put out.
    #[test]
    fn the_table_agrees_with_a_map(
        steps in proptest::collection::vec((0u16..3, 0u64..40, 0u32..4, 0u64..200, 0u8..8), 1..200),
    ) {
        let (table, mut map, mut now) = (table(4096), HashMap::new(), 0);
        for (vlan, mac, port, pause, what) in steps {
            now += pause;
            match what {
                0 => {
                    table.flush_ports(|flushed| flushed == port);
                    map.retain(|_, entry: &mut (u32, u64)| entry.0 != port);
                }
                1..=4 => {
                    table.learn(vlan, mac, port, at(now));
                    map.insert((vlan, mac), (port, now));
                }
                _ => {
                    let known = map.get(&(vlan, mac)).filter(|(_, seen)| now - seen <= 300).map(|(port, _)| *port);
                    prop_assert_eq!(table.lookup(vlan, mac, at(now)), known);
                }
            }
        }
    }
}
