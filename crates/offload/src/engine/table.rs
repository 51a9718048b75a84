//! Tables of flows: rungs of one kernel have one together.

use super::FlowName;
use crate::ProviderName;
use crate::ledger::Ledger;

/// A table, and who has its slots.
pub(super) struct Table {
    /// The rungs whose flows lie in it.
    pub rungs: Box<[ProviderName]>,
    pub ledger: Ledger<FlowName>,
}

/// Who has the slots of a rung's table.
pub(super) fn ledger_of(tables: &mut [Table], rung: ProviderName) -> Option<&mut Ledger<FlowName>> {
    let table = tables.iter_mut().find(|table| table.rungs.contains(&rung))?;
    Some(&mut table.ledger)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::{PortAt, SwitchId};
    use wire::Key;

    fn name(switch: u32, port: u32) -> FlowName {
        (PortAt { switch: SwitchId(switch), port }, Key::default())
    }

    #[test]
    fn flows_of_one_rung_leave_another_rung_of_its_table_what_is_free() {
        let rungs = [ProviderName::Tc, ProviderName::Xdp].into();
        let own = Table { rungs: [ProviderName::Nic].into(), ledger: Ledger::new(1) };
        let mut tables = [Table { rungs, ledger: Ledger::new(2) }, own];
        let on = |tables: &mut [Table], rung, port| {
            let ledger = ledger_of(tables, rung).unwrap();
            let is_free = ledger.admits(SwitchId(1), 1, 5.0).is_ok();
            if is_free {
                ledger.take(name(1, port), SwitchId(1), 1, 5.0);
            }
            is_free
        };
        assert!(on(&mut tables, ProviderName::Tc, 1));
        assert!(on(&mut tables, ProviderName::Xdp, 2));
        assert!(!on(&mut tables, ProviderName::Xdp, 3), "both slots are taken");
        assert!(on(&mut tables, ProviderName::Nic, 4), "a card has a table of its own");
        ledger_of(&mut tables, ProviderName::Tc).unwrap().give_back(name(1, 1));
        assert!(on(&mut tables, ProviderName::Xdp, 5));
    }
}
