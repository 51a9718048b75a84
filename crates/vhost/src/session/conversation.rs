//! One connection, from the first message to its end.

use super::attachment::Attachment;
use super::device::Device;
use super::inbox::{Arrival, Header, Inbox};
use super::own;
use super::trouble::Trouble;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use vhost_protocol::vhost_user::BackendReqHandler;

/// How a conversation ended when nobody did anything wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum End {
    /// The front-end closed it, having said something or nothing.
    Closed {
        /// Whether it said anything.
        heard: bool,
    },
    /// We are told to stop.
    Stopped,
}

/// A connection in use.
pub(super) struct Conversation {
    socket: UnixStream,
    inbox: Inbox,
    /// The crate wants to share its handler; only this thread ever locks it.
    device: Arc<Mutex<Device>>,
    handler: BackendReqHandler<Mutex<Device>>,
    attachment: Arc<Attachment>,
}

impl Conversation {
    /// Begins one; a message may take `patience` to come whole.
    pub(super) fn new(
        socket: UnixStream,
        attachment: Arc<Attachment>,
        patience: Duration,
    ) -> Result<Self, Trouble> {
        let copy = || socket.try_clone().map_err(Trouble::system("copy a file descriptor"));
        let inbox = Inbox::new(copy()?, attachment.bell(), patience)
            .map_err(Trouble::system("watch the connection"))?;
        let device = Arc::new(Mutex::new(Device::new(attachment.clone())));
        let handler = BackendReqHandler::from_stream(copy()?, device.clone());
        attachment.hold(Some(copy()?));
        Ok(Self { socket, inbox, device, handler, attachment })
    }

    /// Serves until the end; every ring is stopped and everything the guest gave is let go of when `self` is dropped.
    pub(super) fn run(mut self) -> Result<End, Trouble> {
        let mut heard = false;
        self.attachment.connected(heard);
        loop {
            match self.inbox.next()? {
                Arrival::Closed => return Ok(End::Closed { heard }),
                Arrival::Bell if self.attachment.answer_bell() => return Ok(End::Stopped),
                Arrival::Bell => self.device().notice_faults(),
                Arrival::Message(header) => {
                    if !heard {
                        heard = true;
                        self.attachment.connected(heard);
                    }
                    if let Some(end) = self.serve(header)? {
                        return Ok(end);
                    }
                }
            }
        }
    }

    fn serve(&mut self, header: Header) -> Result<Option<End>, Trouble> {
        if own::is_ours(header.request) {
            let mut device = self.device.lock().unwrap_or_else(PoisonError::into_inner);
            return own::serve(&mut self.socket, header, &mut device).map(|()| None);
        }
        match self.handler.handle_request() {
            Ok(()) => Ok(None),
            Err(error) => Trouble::of(header.request, error)
                .map_or(Ok(Some(End::Closed { heard: true })), Err),
        }
    }

    fn device(&self) -> MutexGuard<'_, Device> {
        self.device.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        self.attachment.hold(None);
    }
}
