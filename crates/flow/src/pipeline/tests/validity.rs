//! A packet finds in a worker's cache what a search finds, whatever has changed since.

use super::*;

/// Tables of the pipelines.
const TABLES: u8 = 3;

/// A change, and whether workers see it before the next one.
#[derive(Clone, Debug)]
struct Turn {
    table: u8,
    key: Key,
    mask: Key,
    /// Which of the entries there were to change; none: a new one.
    other: Option<prop::sample::Index>,
    gone: bool,
    goto: bool,
    metadata: Option<(u64, u64)>,
    publish: bool,
    keys: Vec<Key>,
}

fn turn_strategy() -> impl Strategy<Value = Turn> {
    let target = prop_oneof![1 => Just(None), 1 => any::<prop::sample::Index>().prop_map(Some)];
    let metadata = prop_oneof![Just(None), (0_u64..4).prop_map(|value| Some((value, 3)))];
    let what = (0..TABLES, key_strategy(), mask_strategy(), 0_u128..4);
    let how = (target, any::<bool>(), any::<bool>(), metadata, proptest::bool::weighted(0.8));
    (what, how, vec(key_strategy(), 0..12)).prop_map(
        |(
            (table, mut key, mut mask, metadata_bits),
            (other, gone, goto, metadata, publish),
            keys,
        )| {
            if table > 0 && metadata_bits < 3 {
                key.set(Field::Metadata, metadata_bits);
                mask.set(Field::Metadata, 3);
            }
            Turn { table, key, mask, other, gone, goto, metadata, publish, keys }
        },
    )
}

/// Which entry each one's name is: no two have one priority, so that the best is one.
fn flow_mod(turn: &Turn, number: u16) -> FlowMod {
    let goto = Some(turn.table + 1).filter(|&next| turn.goto && next < TABLES);
    let instructions =
        Instructions { goto, metadata: turn.metadata, ..to_port(u32::from(number) + 1) };
    FlowMod {
        table: Some(turn.table),
        key: turn.key.masked(&turn.mask),
        mask: turn.mask,
        priority: number,
        instructions,
        ..FlowMod::default()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn what_a_cache_holds_is_what_a_search_finds(turns in vec(turn_strategy(), 1..120)) {
        let mut pipeline = pipeline(32);
        let (mut cached, mut fresh) = (Workspace::new(0, [5, 6], 1024), Workspace::new(1, [5, 6], 0));
        let mut entries: Vec<FlowMod> = Vec::new();
        for (turn, number) in turns.iter().zip(1..) {
            let change = match &turn.other {
                Some(other) if !entries.is_empty() => {
                    let at = other.index(entries.len());
                    let FlowMod { key, mask, table, priority, .. } = entries[at].clone();
                    let command = match turn.gone {
                        true => FlowCommand::DeleteStrict,
                        false => FlowCommand::ModifyStrict,
                    };
                    let mut change = flow_mod(turn, number);
                    change.instructions.goto = change.instructions.goto.filter(|&goto| Some(goto) > table);
                    if turn.gone {
                        entries.remove(at);
                    }
                    FlowMod { command, key, mask, table, priority, ..change }
                }
                _ => {
                    entries.push(flow_mod(turn, number));
                    flow_mod(turn, number)
                }
            };
            pipeline.flow_mod(&change, Nanos(0)).unwrap();
            if !turn.publish {
                continue;
            }
            let snapshot = pipeline.snapshot();
            let found = |work: &mut Workspace| chains::verdicts(&snapshot, work, &turn.keys);
            prop_assert_eq!(found(&mut cached), found(&mut fresh));
        }
    }
}
