//! A guest that sends and receives one frame at a time, for tests: it sleeps while it waits, and nothing about it is quick.

use super::frontend::{Device, HEADER, Shape, tell};
use super::ring::Direction;
use anyhow::{Result, ensure};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// A guest with one device.
pub struct PlainGuest {
    device: Device,
    shape: Shape,
}

/// A frame as it came.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Received {
    /// The virtio-net header of its first buffer.
    pub header: [u8; HEADER],
    /// The frame.
    pub bytes: Vec<u8>,
}

impl PlainGuest {
    /// Hands memory and rings to the switch at the other end of `socket`.
    ///
    /// # Errors
    /// As for [`Device::connect`].
    pub fn connect(socket: UnixStream, shape: Shape) -> Result<Self> {
        let mut device = Device::connect(socket, &shape)?;
        device.receive.ring.ask_for_calls(true);
        Ok(Self { device, shape })
    }

    /// Sends a frame without offload, as soon as a buffer is free.
    ///
    /// # Errors
    /// It is longer than the guest's buffers, or the switch gives none back in time.
    pub fn send(&mut self, frame: &[u8], patience: Duration) -> Result<()> {
        self.send_with([0; HEADER], frame, patience)
    }

    /// Sends a frame with a virtio-net header.
    ///
    /// # Errors
    /// As for [`PlainGuest::send`].
    pub fn send_with(
        &mut self,
        header: [u8; HEADER],
        frame: &[u8],
        patience: Duration,
    ) -> Result<()> {
        ensure!(frame.len() <= self.shape.frame, "a frame of {} bytes", frame.len());
        self.wait_for_a_buffer(patience)?;
        let queue = &mut self.device.transmit;
        let slot = queue.ring.next_to_offer();
        let at = queue.buffers.header(slot);
        self.device.memory.copy_in(at, &header);
        self.device.memory.copy_in(at + HEADER, frame);
        let len = (HEADER + frame.len()) as u32;
        queue.ring.describe(slot, at as u64, len, Direction::Transmit);
        queue.offer(1);
        tell([queue]);
        Ok(())
    }

    fn wait_for_a_buffer(&mut self, patience: Duration) -> Result<()> {
        let deadline = Instant::now() + patience;
        let queue = &mut self.device.transmit;
        queue.ring.ask_for_calls(true);
        loop {
            let returned = queue.ring.returned(u16::MAX);
            queue.ring.reclaim(returned);
            if queue.ring.free() > 0 {
                queue.ring.ask_for_calls(false);
                return Ok(());
            }
            let left = deadline.saturating_duration_since(Instant::now());
            ensure!(queue.wait(left)? || !left.is_zero(), "the switch gave no buffer back");
        }
    }

    /// The next frame, if one comes in time.
    ///
    /// # Errors
    /// The switch used buffers out of order, or names more of them than it used.
    pub fn receive(&mut self, patience: Duration) -> Result<Option<Received>> {
        let deadline = Instant::now() + patience;
        loop {
            if self.device.receive.ring.returned(1) > 0 {
                return self.take().map(Some);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if !self.device.receive.wait(left)? && left.is_zero() {
                return Ok(None);
            }
        }
    }

    /// A frame from as many buffers as its header says (VIRTIO 1.2 §5.1.6.4).
    fn take(&mut self) -> Result<Received> {
        let Self { device, shape } = self;
        let queue = &mut device.receive;
        let mut header = [0; HEADER];
        device.memory.copy_out(queue.buffers.header(queue.ring.next_to_return()), &mut header);
        let buffers = u16::from_le_bytes([header[10], header[11]]).max(1);
        let there = queue.ring.returned(buffers);
        ensure!(there == buffers, "a frame in {buffers} buffers, of which {there} came");
        let mut bytes = Vec::new();
        for n in 0..buffers {
            let slot = (queue.ring.next_to_return() + n) & (shape.slots - 1);
            let entry = queue.ring.entry(n);
            ensure!(entry.id == slot, "buffer {} came where {slot} was due", entry.id);
            let room = shape.buffer + HEADER;
            ensure!(entry.len as usize <= room, "{} bytes in a buffer of {room}", entry.len);
            let skip = if n == 0 { HEADER } else { 0 };
            let mut part = vec![0; (entry.len as usize).saturating_sub(skip)];
            device.memory.copy_out(queue.buffers.header(slot) + skip, &mut part);
            bytes.append(&mut part);
        }
        queue.ring.reclaim(buffers);
        queue.offer(buffers);
        tell([queue]);
        Ok(Received { header, bytes })
    }
}
