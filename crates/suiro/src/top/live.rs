//! Pages that are looked at anew again and again: one below the other in a pipe, with keys on a terminal.

use super::view::{Screen, View};
use crate::args::TopArgs;
use crate::commands::{Context, out};
use crate::failure::Failure;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{self, LocalModes, OptionalActions, SpecialCodeIndex, Termios};
use serde::Serialize;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// Homes the cursor and clears to the end: no flicker, and the last page stays when the program ends.
const HOME: &str = "\x1b[H\x1b[J";

/// What is watched: looks, what happened between two of them, and the page that says so.
pub trait Watched {
    /// Everything at one moment.
    type Look;
    /// What happened between two looks.
    type Rates: Serialize;
    /// Orders of the rows; the first is the usual one.
    const ORDERS: &'static [&'static str];
    /// Looks now.
    fn look(context: &Context) -> Result<Self::Look, Failure>;
    /// What happened between two looks.
    fn between(before: &Self::Look, now: &Self::Look) -> Self::Rates;
    /// Tables with an empty line between them, their rows in this order.
    fn page(rates: &Self::Rates, order: &str) -> String;
}

/// Looks until interrupted, or once.
pub fn watch<W: Watched>(context: &Context, args: &TopArgs) -> Result<(), Failure> {
    let interval = Duration::from_secs(args.interval.into());
    let terminal = std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
    if terminal && !context.json && !args.once {
        return with_keys::<W>(context, interval);
    }
    let mut before = W::look(context)?;
    loop {
        std::thread::sleep(interval);
        let now = W::look(context)?;
        let rates = W::between(&before, &now);
        if context.json {
            out(&(serde_json::to_string(&rates).expect("rates are plain data") + "\n"))?;
        } else {
            let gap = if args.once { "" } else { "\n" };
            out(&(W::page(&rates, W::ORDERS[0]) + gap))?;
        }
        if args.once {
            return Ok(());
        }
        before = now;
    }
}

fn with_keys<W: Watched>(context: &Context, interval: Duration) -> Result<(), Failure> {
    let keys = Keys::new()?;
    let mut view = View::new(W::ORDERS);
    let mut before = W::look(context)?;
    let mut rates = None;
    let mut due = Instant::now() + interval;
    while !view.over {
        if Instant::now() >= due {
            let now = W::look(context)?;
            rates = Some(W::between(&before, &now));
            (before, due) = (now, Instant::now() + interval);
        }
        let page = rates.as_ref().map_or("looking …\n".into(), |all| W::page(all, view.order()));
        out(&(HOME.to_owned() + &view.shown(&page, screen())))?;
        view.typed(&keys.until(due)?);
    }
    out("\n")
}

fn screen() -> Screen {
    let size = termios::tcgetwinsize(std::io::stdout()).ok();
    let paint = std::env::var_os("NO_COLOR").is_none_or(|set| set.is_empty());
    Screen::of(size.map(|size| (size.ws_row.into(), size.ws_col.into())), paint)
}

/// The terminal's keys as they are pressed; it is as it was when this is dropped.
struct Keys {
    before: Termios,
}

impl Keys {
    fn new() -> Result<Self, Failure> {
        let input = std::io::stdin();
        let before = termios::tcgetattr(&input).map_err(std::io::Error::from)?;
        let mut each = before.clone();
        // Ctrl-C comes as a key, too: it ends the page by the way that puts the terminal back.
        each.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG;
        each.special_codes[SpecialCodeIndex::VMIN] = 0;
        each.special_codes[SpecialCodeIndex::VTIME] = 0;
        termios::tcsetattr(&input, OptionalActions::Now, &each).map_err(std::io::Error::from)?;
        Ok(Self { before })
    }

    /// What is typed until then, as soon as anything is.
    fn until(&self, due: Instant) -> Result<Vec<u8>, Failure> {
        let wait = due.saturating_duration_since(Instant::now());
        let wait = Timespec::try_from(wait).expect("an interval is short");
        let input = std::io::stdin();
        match poll(&mut [PollFd::new(&input, PollFlags::IN)], Some(&wait)) {
            // Its size changed, or the time is over.
            Err(rustix::io::Errno::INTR) | Ok(0) => return Ok(Vec::new()),
            ready => ready.map_err(std::io::Error::from)?,
        };
        let mut typed = [0; 64];
        match rustix::io::read(&input, &mut typed).map_err(std::io::Error::from)? {
            0 => Ok(b"q".to_vec()), // the terminal is gone
            length => Ok(typed[..length].to_vec()),
        }
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        let _ = termios::tcsetattr(std::io::stdin(), OptionalActions::Now, &self.before);
    }
}
