//! Instructions of entries, each distinct list kept once.
//!
//! A million entries usually do a handful of different things. Records name programs by number; numbers resolve
//! through pages that snapshots share and the control thread copies on write, a page of [`PAGE`] at a time.

use crate::action::{Action, Instructions, Output, PortNo};
use crate::action_set::ActionSet;
use crate::exec::LinearProgram;
use std::collections::HashMap;
use std::sync::Arc;
use wire::{Depth, Field};

/// Programs per page.
const PAGE: usize = 256;
/// Numbers a record has room for (24 bits).
const MOST: usize = 1 << 24;

/// What later tables see of a packet that ran a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Onward {
    /// There is no later table.
    #[default]
    End,
    /// The key as it was, but for metadata: the next lookup can be done before the program is run.
    Goto(u8),
    /// An edited packet: the next lookup must wait for the program.
    Edited(u8),
}

/// Whether a program's packets go to the controller.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Tells {
    Never,
    /// Only when a TTL runs out.
    IfTtlEnds,
    Perhaps,
}

/// Instructions with what the packet path wants to know of them.
#[derive(Debug)]
pub(crate) struct Program {
    pub instructions: Arc<Instructions>,
    pub onward: Onward,
    /// A packet may go to the controller, which is then told the entry's cookie.
    pub tells: Tells,
    /// All it does is to send the packet by this port.
    pub forwards_to: Option<PortNo>,
    /// The short form, for an entry that is the only one on a packet's way.
    pub linear: Option<LinearProgram>,
    /// How far its packets must have been parsed.
    depth: Depth,
    /// Its packets' headers may leave longer or shorter than they came.
    reshapes: bool,
}

impl Program {
    fn new(instructions: Arc<Instructions>) -> Self {
        // Only the actions applied at once come before the next table's lookup. A meter may remark the DSCP.
        let edits = instructions.meter.is_some() || instructions.apply.iter().any(changes_key);
        let onward = match instructions.goto {
            None => Onward::End,
            Some(table) if edits => Onward::Edited(table),
            Some(table) => Onward::Goto(table),
        };
        // An output to a controller that a later write replaces tells nothing, where no other table adds to the set.
        let set = match instructions.goto {
            None => ActionSet::of(&instructions.write).program().to_vec(),
            Some(_) => instructions.write.clone(),
        };
        let tells = instructions.apply.iter().chain(&set).map(tells).max().unwrap_or(Tells::Never);
        let linear = LinearProgram::of(&instructions);
        let forwards_to = match linear.as_ref().and_then(LinearProgram::bare_output) {
            Some(Output::Port(port)) => Some(port),
            _ => None,
        };
        // A meter may remark the DSCP.
        let metered = instructions.meter.map_or(Depth::Nothing, |_| Depth::Full);
        let depth = actions(&instructions).map(depth).fold(metered, Depth::max);
        let reshapes = actions(&instructions).any(reshapes);
        Self { instructions, onward, tells, forwards_to, linear, depth, reshapes }
    }
}

/// How far an action's packets must have been parsed. A group may do anything, and choose by any field.
fn depth(action: &Action) -> Depth {
    match action {
        Action::Output(Output::Normal) => Depth::Link,
        Action::Output(_) | Action::SetQueue(_) => Depth::Nothing,
        Action::SetField { field: Field::TunnelId | Field::TunDst, .. } => Depth::Nothing,
        Action::SetField {
            field: Field::EthDst | Field::EthSrc | Field::VlanVid | Field::VlanPcp,
            of: None,
            ..
        } => Depth::Link,
        Action::PushVlan(_) | Action::EnsureVlan | Action::PopVlan => Depth::Link,
        _ => Depth::Full,
    }
}

fn tells(action: &Action) -> Tells {
    match action {
        Action::Output(Output::Controller { .. }) | Action::Group(_) => Tells::Perhaps,
        Action::DecNwTtl | Action::DecMplsTtl | Action::CopyTtlIn | Action::CopyTtlOut => {
            Tells::IfTtlEnds
        }
        _ => Tells::Never,
    }
}

fn changes_key(action: &Action) -> bool {
    !matches!(action, Action::Output(_) | Action::Group(_) | Action::SetQueue(_))
}

/// Whether an action may leave a packet longer or shorter: others change bytes in their places. A group may do anything.
fn reshapes(action: &Action) -> bool {
    match action {
        Action::PushVlan(_) | Action::EnsureVlan | Action::PopVlan => true,
        Action::PushMpls(_) | Action::PopMpls(_) | Action::PushPbb(_) | Action::PopPbb => true,
        Action::Group(_) => true,
        Action::Output(_) | Action::SetQueue(_) | Action::SetField { .. } => false,
        Action::CopyTtlOut | Action::CopyTtlIn | Action::SetMplsTtl(_) => false,
        Action::DecMplsTtl | Action::SetNwTtl(_) | Action::DecNwTtl => false,
    }
}

/// Whether `a` and `b` name the same destination; how much of a packet a controller gets does not count.
pub(crate) fn same_destination(a: Output, b: Output) -> bool {
    matches!((a, b), (Output::Controller { .. }, Output::Controller { .. })) || a == b
}

/// Every action of the instructions.
pub(crate) fn actions(instructions: &Instructions) -> impl Iterator<Item = &Action> {
    instructions.apply.iter().chain(&instructions.write)
}

type Page = [Option<Arc<Program>>; PAGE];

/// Programs by number, as a snapshot sees them.
#[derive(Clone, Default)]
pub(crate) struct Programs(Arc<[Arc<Page>]>);

impl Programs {
    /// Program `number`, which a record names.
    pub fn get(&self, number: u32) -> &Arc<Program> {
        let at = number as usize;
        self.0[at / PAGE][at % PAGE].as_ref().expect("a record that can be seen keeps its program")
    }

    fn set(&mut self, number: u32, program: Option<Arc<Program>>) {
        let at = number as usize;
        if at / PAGE == self.0.len() {
            let new = Arc::new([const { None }; PAGE]);
            self.0 = self.0.iter().cloned().chain([new]).collect();
        }
        let page = Arc::make_mut(&mut Arc::make_mut(&mut self.0)[at / PAGE]);
        page[at % PAGE] = program;
    }
}

/// Programs as the control thread counts their uses.
#[derive(Default)]
pub(crate) struct Interner {
    view: Programs,
    by_content: HashMap<Arc<Instructions>, u32>,
    uses: Vec<u32>,
    free: Vec<u32>,
    /// Programs that need their packets parsed to [`Depth::Link`], and to [`Depth::Full`].
    deep: [u32; 2],
    /// Programs whose packets' headers may leave longer or shorter than they came.
    reshaping: u32,
    /// Actions of all entries: those of a program as often as it is used.
    actions: u64,
}

impl Interner {
    /// What snapshots take.
    pub fn view(&self) -> &Programs {
        &self.view
    }

    /// The program `number`.
    pub fn get(&self, number: u32) -> &Arc<Program> {
        self.view.get(number)
    }

    /// Actions of all entries.
    pub fn actions(&self) -> u64 {
        self.actions
    }

    /// The number of these instructions, used once more; `None` when all numbers are taken.
    pub fn take(&mut self, instructions: &Instructions) -> Option<u32> {
        let number = self.number(instructions)?;
        self.actions += actions(instructions).count() as u64;
        Some(number)
    }

    fn number(&mut self, instructions: &Instructions) -> Option<u32> {
        if let Some(&number) = self.by_content.get(instructions) {
            self.uses[number as usize] += 1;
            return Some(number);
        }
        let number = match self.free.pop() {
            Some(number) => number,
            None if self.uses.len() == MOST => return None,
            None => {
                self.uses.push(0);
                self.uses.len() as u32 - 1
            }
        };
        let shared = Arc::new(instructions.clone());
        let program = Program::new(shared.clone());
        if let Some(deep) = self.deep(program.depth) {
            *deep += 1;
        }
        self.reshaping += u32::from(program.reshapes);
        self.view.set(number, Some(Arc::new(program)));
        self.by_content.insert(shared, number);
        self.uses[number as usize] = 1;
        Some(number)
    }

    /// What the programs are made from, and their uses.
    pub fn in_use(&self) -> impl Iterator<Item = (&Instructions, u32)> {
        let uses = |number: u32| self.uses[number as usize];
        self.by_content.iter().map(move |(content, &number)| (&**content, uses(number)))
    }

    /// How far packets must have been parsed for these programs.
    pub fn depth(&self) -> Depth {
        match self.deep.into() {
            (_, 1..) => Depth::Full,
            (1.., _) => Depth::Link,
            (0, 0) => Depth::Nothing,
        }
    }

    /// Whether a packet's headers may leave longer or shorter than they came.
    pub fn reshape_frames(&self) -> bool {
        self.reshaping > 0
    }

    /// The number of programs that need this depth.
    fn deep(&mut self, depth: Depth) -> Option<&mut u32> {
        let [link, full] = &mut self.deep;
        match depth {
            Depth::Nothing => None,
            Depth::Link => Some(link),
            Depth::Full => Some(full),
        }
    }

    /// One use less. Snapshots that still run it keep it.
    pub fn release(&mut self, number: u32) {
        self.actions -= actions(&self.view.get(number).instructions).count() as u64;
        let uses = &mut self.uses[number as usize];
        *uses -= 1;
        if *uses == 0 {
            let program = self.view.get(number).clone();
            self.by_content.remove(&program.instructions);
            if let Some(deep) = self.deep(program.depth) {
                *deep -= 1;
            }
            self.reshaping -= u32::from(program.reshapes);
            self.view.set(number, None);
            self.free.push(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(port: u32) -> Instructions {
        Instructions { apply: vec![Action::Output(Output::Port(port))], ..Instructions::default() }
    }

    #[test]
    fn equal_instructions_share_a_number_and_snapshots_keep_theirs() {
        let mut interner = Interner::default();
        let one = interner.take(&output(1)).unwrap();
        assert_eq!(interner.take(&output(1)), Some(one));
        let view = interner.view().clone();
        assert_eq!(interner.actions(), 2, "each use counts");
        interner.release(one);
        interner.release(one);
        assert_eq!(interner.actions(), 0);
        let two = interner.take(&output(2)).unwrap();
        assert_eq!(one, two, "numbers are used again");
        assert_eq!(*view.get(one).instructions, output(1));
        assert_eq!(*interner.get(two).instructions, output(2));
    }

    #[test]
    fn the_deepest_program_in_use_says_how_far_to_parse() {
        let apply = |apply| Instructions { apply, ..Instructions::default() };
        let mut interner = Interner::default();
        assert_eq!(interner.depth(), Depth::Nothing);
        let plain = interner.take(&output(1));
        let tagged = interner.take(&apply(vec![Action::PopVlan])).unwrap();
        let routed = interner.take(&apply(vec![Action::DecNwTtl])).unwrap();
        assert_eq!(
            (interner.take(&apply(vec![Action::DecNwTtl])), interner.depth()),
            (Some(routed), Depth::Full)
        );
        interner.release(routed);
        assert_eq!(interner.depth(), Depth::Full);
        interner.release(routed);
        assert_eq!(interner.depth(), Depth::Link);
        interner.release(tagged);
        assert_eq!((interner.depth(), plain), (Depth::Nothing, Some(0)));
    }

    #[test]
    fn frames_keep_their_length_unless_something_is_pushed_or_popped() {
        let with = |meter, action: Option<Action>| {
            let apply = output(1).apply.into_iter().chain(action).collect();
            Instructions { meter, apply, ..Instructions::default() }
        };
        let mut interner = Interner::default();
        let others = [None, Some(Action::SetQueue(3)), Some(Action::DecNwTtl)];
        for same in others.map(|action| with(None, action)).into_iter().chain([with(Some(1), None)])
        {
            interner.take(&same);
            assert!(!interner.reshape_frames(), "{same:?}");
        }
        for other in [Action::Group(1), Action::PopVlan, Action::PushMpls(0x8847)] {
            let number = interner.take(&with(None, Some(other))).unwrap();
            assert!(interner.reshape_frames(), "{other:?}");
            interner.release(number);
            assert!(!interner.reshape_frames());
        }
    }

    #[test]
    fn only_edits_make_the_next_table_wait() {
        let onward = |apply: Vec<Action>| {
            Program::new(Arc::new(Instructions { apply, goto: Some(3), ..Instructions::default() }))
                .onward
        };
        assert_eq!(
            onward(vec![Action::Output(Output::Port(1)), Action::Group(4)]),
            Onward::Goto(3)
        );
        assert_eq!(onward(vec![Action::PopVlan]), Onward::Edited(3));
    }
}
