//! The kernel's lists of cores: `0-3,8,10-11`.

use place::CoreId;

/// Text that is no list of cores.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{0}` is no list of cores such as 0-3,8")]
pub(crate) struct BadList(String);

/// Rising numbers; of an empty list (a memory node without cores) none.
pub(crate) fn parse_list(text: &str) -> Result<Vec<CoreId>, BadList> {
    let text = text.trim();
    let bad = || BadList(text.chars().take(40).collect());
    let mut cores = Vec::new();
    for part in text.split(',').filter(|_| !text.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| text.parse::<u16>().map_err(|_| bad());
        let (first, last) = (number(first)?, number(last)?);
        let follows = cores.last().is_none_or(|&CoreId(before)| before < first);
        if first > last || !follows {
            return Err(bad());
        }
        cores.extend((first..=last).map(CoreId));
    }
    Ok(cores)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn numbers(text: &str) -> Option<Vec<u16>> {
        Some(parse_list(text).ok()?.into_iter().map(|core| core.0).collect())
    }

    #[test]
    fn ranges_and_single_cores_are_read() {
        assert_eq!(numbers("0-3,8,10-11\n"), Some(vec![0, 1, 2, 3, 8, 10, 11]));
        assert_eq!(numbers("5"), Some(vec![5]));
        assert_eq!(numbers("\n"), Some(vec![]));
    }

    proptest! {
        #[test]
        fn rising_numbers_written_by_the_kernel_are_read_back(cores in proptest::collection::btree_set(0u16..300, 0..40)) {
            let mut text: Vec<String> = Vec::new();
            let mut last = None;
            for &core in &cores {
                match (last, text.last_mut()) {
                    (Some(before), Some(part)) if before + 1 == core => {
                        let first = part.split('-').next().unwrap_or_default();
                        *part = format!("{first}-{core}");
                    }
                    _ => text.push(core.to_string()),
                }
                last = Some(core);
            }
            prop_assert_eq!(numbers(&text.join(",")), Some(cores.into_iter().collect()));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[-0-9, x]{0,30}") {
            if let Some(cores) = numbers(&text) {
                prop_assert!(cores.windows(2).all(|pair| pair[0] < pair[1]));
            }
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for text in ["3-1", "1,1", "4,2-3", "0-", "-1", "a", "0-70000", "1,,2", "0 1"] {
            assert_eq!(numbers(text), None, "{text}");
        }
    }
}
