//! The few messages that the protocol crate does not answer, or not as front-ends send them.
//!
//! `SET_VRING_ENABLE` is one of them: QEMU sends it before `SET_FEATURES`, when the crate still refuses it. All have bodies of at most 8 bytes.

use super::device::Device;
use super::inbox::Header;
use super::trouble::Trouble;
use rustix::net::RecvFlags;
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use vhost_protocol::vhost_user::VhostUserProtocolFeatures as Protocol;
use vhost_protocol::vhost_user::message::FrontendReq;

/// Whether a request is ours to answer.
pub(super) fn is_ours(request: FrontendReq) -> bool {
    matches!(
        request,
        FrontendReq::SET_VRING_ENABLE
            | FrontendReq::SET_STATUS
            | FrontendReq::GET_STATUS
            | FrontendReq::NET_SET_MTU
            | FrontendReq::SEND_RARP
            | FrontendReq::SET_LOG_FD
    )
}

/// Reads the message, which the socket holds whole, does what it says and answers.
pub(super) fn serve(
    socket: &mut UnixStream,
    header: Header,
    device: &mut Device,
) -> Result<(), Trouble> {
    let body = read(socket, header)?;
    let done = obey(header.request, body, device);
    let reply = match &done {
        Ok(Answer::Value(value)) => Some(*value),
        Ok(Answer::Done) => Some(0),
        Ok(Answer::Refused) | Err(_) => Some(1),
    };
    let wanted = matches!(done, Ok(Answer::Value(_)))
        || header.needs_reply() && device.protocol.contains(Protocol::REPLY_ACK);
    if let Some(value) = reply.filter(|_| wanted) {
        let message = [&header.reply(8)[..], &value.to_ne_bytes()].concat();
        socket.write_all(&message).map_err(Trouble::system("answer"))?;
    }
    done.map(drop)
}

enum Answer {
    /// What was asked for.
    Value(u64),
    Done,
    /// Not possible, and no reason to part.
    Refused,
}

fn obey(request: FrontendReq, body: Body, device: &mut Device) -> Result<Answer, Trouble> {
    match request {
        FrontendReq::SET_VRING_ENABLE => {
            let (index, on) = body.pair(request)?;
            let why = "enable is neither 0 nor 1";
            let on = [false, true].get(on as usize).ok_or(Trouble::Message { request, why })?;
            device.set_enabled(index, *on)?;
        }
        FrontendReq::SET_STATUS => {
            device.require(request, Protocol::STATUS)?;
            device.set_status(body.number(request)? as u8)?;
        }
        FrontendReq::GET_STATUS => {
            device.require(request, Protocol::STATUS)?;
            return Ok(Answer::Value(device.status().into()));
        }
        FrontendReq::NET_SET_MTU => {
            device.require(request, Protocol::MTU)?;
            if !device.set_mtu(body.number(request)?) {
                return Ok(Answer::Refused);
            }
        }
        FrontendReq::SEND_RARP => {
            device.require(request, Protocol::RARP)?;
            // "The payload's first 6 bytes are the MAC address."
            let [mac @ .., _, _] = body.number(request)?.to_ne_bytes();
            device.announce(mac);
        }
        // A file descriptor to write when pages were logged. No front-end waits for it: the log is read at each round of a migration.
        FrontendReq::SET_LOG_FD => device.require(request, Protocol::LOG_SHMFD)?,
        _ => {}
    }
    Ok(Answer::Done)
}

/// Up to 8 bytes.
struct Body {
    bytes: [u8; 8],
    len: usize,
}

impl Body {
    fn number(&self, request: FrontendReq) -> Result<u64, Trouble> {
        let why = "its body is not a number of 8 bytes";
        if self.len == 8 {
            Ok(u64::from_ne_bytes(self.bytes))
        } else {
            Err(Trouble::Message { request, why })
        }
    }

    fn pair(&self, request: FrontendReq) -> Result<(u32, u32), Trouble> {
        self.number(request)?;
        let [a, b, c, d, e, f, g, h] = self.bytes;
        Ok((u32::from_ne_bytes([a, b, c, d]), u32::from_ne_bytes([e, f, g, h])))
    }
}

/// Takes the message out of the socket. File descriptors that came with it are not wanted: the kernel closes what is not asked for.
fn read(socket: &UnixStream, header: Header) -> Result<Body, Trouble> {
    let mut body = Body { bytes: [0; 8], len: header.size };
    let why = "its body is longer than 8 bytes";
    let room = body
        .bytes
        .get_mut(..header.size)
        .ok_or(Trouble::Message { request: header.request, why })?;
    fill(socket, &mut [0; Header::LEN])
        .and_then(|()| fill(socket, room))
        .map_err(Trouble::system("read a message"))?;
    Ok(body)
}

fn fill(socket: &UnixStream, mut room: &mut [u8]) -> io::Result<()> {
    while !room.is_empty() {
        let (got, _) = rustix::net::recv(socket, &mut *room, RecvFlags::DONTWAIT)?;
        if got == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        room = &mut room[got..];
    }
    Ok(())
}
