//! Large frames in GRE or IP in IP into a TAP, whole: a program at its way in finds the tunnels ([`xdp::outer`]).
//!
//! The kernel takes some 50 ms to put a program there, and most TAPs never see such a frame. So it comes with the first one; until it is there they are
//! cut. A worker may not put it: one thread does it for all TAPs of a node, and holds none of them meanwhile.

use crate::netns::Netns;
use crate::past::chain;
use crate::sys::ioctl;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock, Weak};
use std::thread;
use xdp::outer::{Outer, Way};

/// The programs of a node's TAPs.
#[derive(Default)]
pub(crate) struct Finders(OnceLock<Sender<Weak<Finder>>>);

/// The program of one TAP, which goes with the port.
pub(super) struct Finder {
    tap: Arc<OwnedFd>,
    is_asked: AtomicBool,
    program: Arc<OnceLock<Put>>,
    /// To the thread, which ends with the last of these.
    ask: Sender<Weak<Self>>,
}

/// The program, or why there is none.
type Put = Result<Outer, String>;

impl Finders {
    /// # Errors
    /// There can be no more threads.
    pub(super) fn finder(&self, tap: Arc<OwnedFd>) -> io::Result<Arc<Finder>> {
        let ask = match self.0.get() {
            Some(ask) => ask.clone(),
            None => {
                let (ask, asked) = channel();
                let thread = thread::Builder::new().name("suiro-outer".into());
                thread.spawn(move || put_all(&asked))?;
                self.0.get_or_init(|| ask).clone()
            }
        };
        let (is_asked, program) = (AtomicBool::new(false), Arc::default());
        Ok(Arc::new(Finder { tap, is_asked, program, ask }))
    }
}

/// Puts each program that is asked for.
fn put_all(asked: &Receiver<Weak<Finder>>) {
    for finder in asked {
        let Some(finder) = finder.upgrade() else { continue };
        let (place, program) = (finder.place(), Arc::clone(&finder.program));
        drop(finder);
        let put = place.and_then(|(netns, name)| netns.run(|| Outer::new(&name, Way::In)));
        let put = match put {
            Ok(Ok(outer)) => Ok(outer),
            Ok(Err(error)) => Err(chain(&error)),
            Err(error) => Err(chain(&error)),
        };
        let _ = program.set(put);
    }
}

impl Finder {
    /// Whether the program is there. If nobody asked yet, it is put there.
    pub(super) fn is_there(self: &Arc<Self>) -> bool {
        if !self.is_asked.load(Relaxed) && !self.is_asked.swap(true, Relaxed) {
            // Refused only if the thread is gone, and then there is none.
            let _ = self.ask.send(Arc::downgrade(self));
        }
        matches!(self.program.get(), Some(Ok(_)))
    }

    /// Where the TAP is now, and by what name.
    fn place(&self) -> io::Result<(Netns, String)> {
        let netns = Netns::from(ioctl::tun_netns(&self.tap)?);
        Ok((netns, ioctl::tun_name(&self.tap)?))
    }

    /// What its lack costs.
    pub(super) fn note(&self) -> Option<String> {
        let why = self.program.get()?.as_ref().err()?;
        Some(format!("large segments in GRE are cut: {why}"))
    }
}
