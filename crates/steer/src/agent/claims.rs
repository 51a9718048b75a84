//! Which rule an entry of one interface comes from, when several rules want the same one.
//!
//! Rules become entries (a rule for a machine with two addresses becomes two). Two rules may become the same entry, by an alias or
//! because one is for all interfaces and one for this: each has a *claim*, and the best claim is in force. When it goes, the next one is.

use place::steering::{Entry, EntryKey, Step};
use std::collections::{BTreeMap, HashMap};

/// Which rule: its interface (`None` is all of them) and its key.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct RuleId {
    /// Where.
    pub on: Option<String>,
    /// Priority and match, as text.
    pub key: String,
}

/// The claims on one interface's entries.
#[derive(Default)]
pub struct Claims {
    /// The last of each list is in force; no list is empty.
    by_entry: HashMap<EntryKey, Vec<(RuleId, Entry)>>,
    by_rule: BTreeMap<RuleId, Vec<EntryKey>>,
}

impl Claims {
    /// A rule wants these entries, and no others any more. Returns what follows.
    pub fn claim(&mut self, rule: &RuleId, entries: &[Entry]) -> Vec<Step> {
        let mut steps: Vec<Step> = Vec::new();
        let keys: Vec<EntryKey> = entries.iter().map(|entry| entry.key).collect();
        let before = self.by_rule.remove(rule).unwrap_or_default();
        for key in before.iter().filter(|key| !keys.contains(key)) {
            steps.extend(self.release(rule, key));
        }
        for entry in entries {
            let claims = self.by_entry.entry(entry.key).or_default();
            let was = claims.last().map(|(_, entry)| *entry);
            claims.retain(|(other, _)| other != rule);
            // A rule for this interface stands above one for all.
            let at = match rule.on {
                Some(_) => claims.len(),
                None => claims.partition_point(|(other, _)| other.on.is_none()),
            };
            claims.insert(at, (rule.clone(), *entry));
            let now = claims.last().map(|(_, entry)| *entry);
            steps.extend(now.filter(|_| now != was).map(Step::Put));
        }
        if !keys.is_empty() {
            self.by_rule.insert(rule.clone(), keys);
        }
        steps
    }

    fn release(&mut self, rule: &RuleId, key: &EntryKey) -> Option<Step> {
        let claims = self.by_entry.get_mut(key)?;
        let was = claims.last().map(|(_, entry)| *entry);
        claims.retain(|(other, _)| other != rule);
        match claims.last() {
            Some((_, entry)) => (Some(*entry) != was).then_some(Step::Put(*entry)),
            None => {
                self.by_entry.remove(key);
                Some(Step::Remove(*key))
            }
        }
    }

    /// The rule that an entry comes from.
    pub fn rule_of(&self, key: &EntryKey) -> Option<&RuleId> {
        self.by_entry.get(key)?.last().map(|(rule, _)| rule)
    }

    /// Every entry in force.
    pub fn in_force(&self) -> impl Iterator<Item = &Entry> {
        self.by_entry.values().filter_map(|claims| claims.last()).map(|(_, entry)| entry)
    }

    /// The entry in force of that key.
    pub fn entry(&self, key: &EntryKey) -> Option<&Entry> {
        self.by_entry.get(key)?.last().map(|(_, entry)| entry)
    }

    /// How many entries are in force.
    pub fn len(&self) -> usize {
        self.by_entry.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use place::CoreId;
    use place::steering::{Selector, Target};

    fn entry(priority: u16, core: u16) -> Entry {
        Entry {
            key: EntryKey { priority, selector: Selector::default() },
            target: Target::Core(CoreId(core)),
            is_priority: false,
            wants_own_core: false,
            vm: None,
        }
    }

    fn rule(on: Option<&str>, key: &str) -> RuleId {
        RuleId { on: on.map(str::to_owned), key: key.into() }
    }

    #[test]
    fn the_rule_of_the_interface_stands_above_the_one_for_all_whichever_came_first() {
        let mut claims = Claims::default();
        let (all, here) = (rule(None, "ip"), rule(Some("eth0"), "ip"));
        assert_eq!(claims.claim(&here, &[entry(1, 5)]), [Step::Put(entry(1, 5))]);
        assert_eq!(claims.claim(&all, &[entry(1, 3)]), []);
        assert_eq!(claims.rule_of(&entry(1, 0).key), Some(&here));
        assert_eq!(claims.claim(&here, &[]), [Step::Put(entry(1, 3))]);
        assert_eq!(claims.claim(&all, &[]), [Step::Remove(entry(1, 0).key)]);
        assert_eq!(claims.len(), 0);
    }

    #[test]
    fn of_two_rules_alike_the_later_is_in_force_and_the_earlier_comes_back() {
        let mut claims = Claims::default();
        claims.claim(&rule(None, "a"), &[entry(1, 1)]);
        assert_eq!(claims.claim(&rule(None, "b"), &[entry(1, 2)]), [Step::Put(entry(1, 2))]);
        assert_eq!(claims.claim(&rule(None, "b"), &[]), [Step::Put(entry(1, 1))]);
    }

    #[test]
    fn a_rule_that_changes_keeps_what_it_still_wants() {
        let mut claims = Claims::default();
        let id = rule(None, "vm_id=1");
        claims.claim(&id, &[entry(1, 1), entry(2, 1)]);
        let steps = claims.claim(&id, &[entry(2, 1), entry(3, 1)]);
        assert_eq!(steps, [Step::Remove(entry(1, 0).key), Step::Put(entry(3, 1))]);
        assert_eq!(claims.in_force().count(), 2);
    }
}
