use super::*;
use proptest::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const SECOND: u64 = 1_000_000_000;

fn band(rate: u32, kind: BandKind) -> Band {
    Band { rate, burst: 0, kind }
}

fn config(unit: MeterUnit, bands: &[Band]) -> MeterConfig {
    MeterConfig { unit, burst: true, stats: true, bands: bands.to_vec() }
}

fn table(config: MeterConfig) -> MeterTable {
    let mut table = MeterTable::default();
    table.apply(MeterMod::Add { id: 1, config }, Nanos(0)).unwrap();
    table
}

/// Offers frames of `bytes` at `offered` a second for `seconds`; returns how many got each verdict.
fn offer(table: &MeterTable, bytes: u32, offered: u64, seconds: u64) -> (u64, u64, u64) {
    let (mut passed, mut dropped, mut remarked) = (0, 0, 0);
    for frame in 0..offered * seconds {
        match table.pass(1, bytes, Nanos(frame * SECOND / offered)) {
            MeterVerdict::Pass => passed += 1,
            MeterVerdict::Drop => dropped += 1,
            MeterVerdict::Remark(_) => remarked += 1,
        }
    }
    (passed, dropped, remarked)
}

fn assert_within_percent(have: u64, want: u64) {
    let error = have.abs_diff(want) as f64 / want as f64;
    assert!(error < 0.01, "{have}, {want} expected");
}

#[test]
fn a_packet_rate_is_exact_to_a_percent() {
    let burst = Band { rate: 1000, burst: 10, kind: BandKind::Drop };
    let (passed, ..) = offer(&table(config(MeterUnit::Pktps, &[burst])), 64, 7_000, 20);
    assert_within_percent(passed, 20_000 + 10);
}

#[test]
fn a_bit_rate_is_exact_to_a_percent_for_small_and_large_frames() {
    for (bytes, offered) in [(60, 20_000), (1500, 2_000), (65_000, 100)] {
        let burst = Band { rate: 8_000, burst: 100, kind: BandKind::Drop };
        let (passed, ..) = offer(&table(config(MeterUnit::Kbps, &[burst])), bytes, offered, 60);
        assert_within_percent(passed * u64::from(bytes) * 8, 60 * 8_000_000 + 100_000);
    }
}

#[test]
fn what_keeps_to_the_rate_passes_whole() {
    let (passed, dropped, _) =
        offer(&table(config(MeterUnit::Pktps, &[band(1000, BandKind::Drop)])), 64, 1000, 30);
    assert_eq!((passed, dropped), (30_000, 0));
}

#[test]
fn a_burst_passes_after_a_pause_and_no_more_than_it() {
    let burst = Band { rate: 100, burst: 50, kind: BandKind::Drop };
    let table = table(config(MeterUnit::Pktps, &[burst]));
    let passed =
        |now| (0..200).filter(|_| table.pass(1, 64, Nanos(now)) == MeterVerdict::Pass).count();
    assert_eq!(passed(0), 51, "the last one overdraws");
    assert_eq!(passed(0), 0);
    assert_eq!(passed(3600 * SECOND), 51);
}

#[test]
fn of_the_exceeded_bands_the_highest_rate_decides() {
    let bands = [band(1000, BandKind::DscpRemark { level: 1 }), band(2000, BandKind::Drop)];
    let table = table(config(MeterUnit::Pktps, &bands));
    let (passed, dropped, remarked) = offer(&table, 100, 5000, 50);
    assert_within_percent(passed, 50 * 1000);
    assert_within_percent(remarked, 50 * 1000);
    assert_within_percent(dropped, 50 * 3000);
    let stats = &table.stats(Some(1), Nanos(50 * SECOND))[0];
    assert_eq!(stats.counted, Counted { packets: 250_000, bytes: 25_000_000 });
    assert_eq!((stats.bands[0].packets, stats.bands[1].packets), (remarked, dropped));
    assert_eq!(stats.age_ns, 50 * SECOND);
}

#[test]
fn several_workers_share_one_limit() {
    let table = table(config(
        MeterUnit::Pktps,
        &[Band { rate: 100_000, burst: 100, kind: BandKind::Drop }],
    ));
    let (clock, passed) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _worker in 0..4 {
            scope.spawn(|| {
                for _frame in 0..250_000 {
                    let now = Nanos(clock.fetch_add(1000, Relaxed)); // a million frames a second in all
                    passed.fetch_add(
                        u64::from(table.pass(1, 64, now) == MeterVerdict::Pass),
                        Relaxed,
                    );
                }
            });
        }
    });
    assert_within_percent(passed.into_inner(), 100_000 + 100);
}

#[test]
fn time_that_wraps_the_bucket_neither_opens_nor_shuts_it() {
    let table =
        table(config(MeterUnit::Pktps, &[Band { rate: 1000, burst: 1, kind: BandKind::Drop }]));
    let wrap = u64::MAX / 1024; // nanoseconds until the word wraps
    for start in [wrap / 2 - 5 * SECOND, wrap - 5 * SECOND, wrap + wrap / 2] {
        let passed = (0..100_000u64)
            .filter(|frame| {
                table.pass(1, 64, Nanos(start + frame * SECOND / 10_000)) == MeterVerdict::Pass
            })
            .count();
        assert_within_percent(passed as u64, 10_000);
    }
}

#[test]
fn the_drop_precedence_rises_inside_its_class_only() {
    assert_eq!(remarked(10, 1), 12, "AF11 becomes AF12");
    assert_eq!(remarked(34, 2), 38, "AF41 becomes AF43");
    assert_eq!(remarked(30, 200), 30, "AF33 is the last of its class");
    for other in [0, 8, 46, 11, 42] {
        assert_eq!(remarked(other, 1), other);
    }
}

#[test]
fn each_refusal_has_its_error_and_changes_nothing() {
    let one = config(MeterUnit::Kbps, &[band(1, BandKind::Drop)]);
    let mut table = table(one.clone());
    let add = |id, bands: &[Band]| MeterMod::Add { id, config: config(MeterUnit::Kbps, bands) };
    let cases = [
        (add(1, &[]), MeterModError::Exists(1)),
        (add(0, &[]), MeterModError::Invalid(0)),
        (add(MAX_METER + 1, &[]), MeterModError::Invalid(MAX_METER + 1)),
        (MeterMod::Modify { id: 2, config: one.clone() }, MeterModError::Unknown(2)),
        (add(2, &[band(0, BandKind::Drop)]), MeterModError::BadRate(0)),
        (add(2, &[band(1, BandKind::DscpRemark { level: 0 })]), MeterModError::BadBandValue(0)),
        (add(2, &[band(1, BandKind::Drop); 9]), MeterModError::OutOfBands(8)),
    ];
    for (change, error) in cases {
        assert_eq!(table.apply(change, Nanos(0)), Err(error));
        assert_eq!(table.configs().collect::<Vec<_>>(), [(1, &one)]);
    }
    let mut full = MeterTable::new(MeterLimits { meters: 1, bands: 1 });
    full.apply(add(5, &[]), Nanos(0)).unwrap();
    assert_eq!(full.apply(add(6, &[]), Nanos(0)), Err(MeterModError::OutOfMeters(1)));
    assert_eq!(full.apply(MeterMod::Delete { id: 6 }, Nanos(0)), Ok(vec![]));
    assert_eq!(full.apply(MeterMod::DeleteAll, Nanos(0)), Ok(vec![5]));
}

#[test]
fn a_modify_keeps_the_meters_counters_and_age_and_clears_its_bands() {
    let mut table = table(config(MeterUnit::Pktps, &[band(1, BandKind::Drop)]));
    let snapshot = table.clone();
    (0..3).for_each(|_| _ = snapshot.pass(1, 100, Nanos(0)));
    let change =
        MeterMod::Modify { id: 1, config: config(MeterUnit::Pktps, &[band(5, BandKind::Drop)]) };
    table.apply(change, Nanos(7)).unwrap();
    snapshot.pass(1, 100, Nanos(7));
    let stats = &table.stats(None, Nanos(9))[0];
    assert_eq!((stats.counted.packets, stats.bands[0].packets, stats.age_ns), (4, 0, 9));
}

proptest! {
    /// The slow obvious form: tokens as a fraction, refilled with the time that passed.
    #[test]
    fn the_word_agrees_with_a_bucket_of_tokens(
        rate in 1u32..2_000_000,
        burst in 1u32..1000,
        frames in proptest::collection::vec((0u64..3_000_000, 60u32..9000), 1..200),
    ) {
        let limit = Band { rate, burst, kind: BandKind::Drop };
        let table = table(config(MeterUnit::Kbps, &[limit]));
        let (full, mut tokens, mut now) = (f64::from(burst) * 1000.0, f64::from(burst) * 1000.0, 0);
        for (pause, bytes) in frames {
            now += pause;
            tokens = full.min(tokens + pause as f64 * f64::from(rate) * 1e-6);
            let passes = table.pass(1, bytes, Nanos(now)) == MeterVerdict::Pass;
            if tokens.abs() > 1.0 {
                prop_assert_eq!(passes, tokens > 0.0, "{} bits left", tokens);
            }
            tokens -= if passes { f64::from(bytes) * 8.0 } else { 0.0 };
        }
    }
}

/// A bucket in the memory of a rung that takes from it, too.
#[derive(Debug, Default)]
struct Elsewhere {
    full_at: AtomicU64,
    idle: AtomicU64,
}

impl SharedBucket for Arc<Elsewhere> {
    fn place(&self) -> u32 {
        7
    }
    fn is_live(&self) -> bool {
        false
    }
    fn full_at(&self) -> &AtomicU64 {
        &self.full_at
    }
    fn idle(&self) -> &AtomicU64 {
        &self.idle
    }
    fn refused(&self) -> Counted {
        Counted { packets: 5, bytes: 500 }
    }
}

#[test]
fn a_word_that_moves_to_a_rung_while_workers_take_loses_and_gives_nothing() {
    const RATE: u32 = 100_000;
    for turn in 0..20 {
        let limit = Band { rate: RATE, burst: 100, kind: BandKind::Drop };
        let table = table(config(MeterUnit::Pktps, &[limit]));
        // Offered ten times the rate after a first frame, the bucket is never idle, whichever worker comes first.
        assert_eq!(table.pass(1, 64, Nanos(0)), MeterVerdict::Pass);
        let (clock, passed) = (AtomicU64::new(0), AtomicU64::new(1));
        let rung = Arc::new(Elsewhere::default());
        std::thread::scope(|scope| {
            for _worker in 0..3 {
                scope.spawn(|| {
                    for _frame in 0..20_000 {
                        let now = Nanos(clock.fetch_add(1000, Relaxed));
                        let passes = table.pass(1, 64, now) == MeterVerdict::Pass;
                        passed.fetch_add(u64::from(passes), Relaxed);
                    }
                });
            }
            while clock.load(Relaxed) < turn * 2_000_000 {
                std::hint::spin_loop();
            }
            let mut find = |shape: &BucketShape| -> Option<Arc<dyn SharedBucket>> {
                assert_eq!((shape.rate, shape.unit), (RATE.into(), RateUnit::Frames));
                Some(Arc::new(rung.clone()))
            };
            assert_eq!(table.shared(1, &mut find), Some(vec![7]));
            table.share(1);
        });
        let cost = 1_000_000_000 * 1024 / u64::from(RATE);
        let (full_at, idle) = (rung.full_at.load(Relaxed), rung.idle.load(Relaxed));
        assert_eq!(full_at, passed.load(Relaxed) * cost + idle);
        let stats = &table.stats(Some(1), Nanos(0))[0];
        assert_eq!(stats.bands[0].packets, 60_001 - passed.into_inner() + 5);
    }
}
