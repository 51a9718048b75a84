//! The receiving side without a socket.

use super::origin::Sender;
use super::rx::Frames;
use super::vni::Received;
use crate::batch::{BodyAt, RxBatch};
use crate::drops::Drops;
use crate::sys::datagram::Arrived;
use crate::testing::Frame;
use crate::vxlan::tunnel::Tunnel;
use std::net::Ipv4Addr;

/// Makes frames of runs of datagrams, as a tunnel's receiving queue does: for fuzzing.
pub struct Decapsulator {
    frames: Frames,
    batch: RxBatch,
}

impl Decapsulator {
    /// The far end of a usual tunnel of that VNI on whose path frames are `mtu` and an Ethernet header long at most.
    pub fn new(vni: u32, mtu: u16) -> Self {
        let usual = Tunnel::new(Ipv4Addr::UNSPECIFIED.into(), vni);
        let frames = Frames::new(Received::One(vni), usual.dscp, mtu);
        Self { frames, batch: RxBatch::default() }
    }

    /// The frames of a run, at most 64 KiB, of datagrams of `segment` bytes each but the last (0: it is one), which came under the DS field
    /// `ds`; and what was lost.
    pub fn frames_of(&mut self, run: &[u8], segment: usize, ds: u8) -> (Vec<Frame>, Drops) {
        let (mut frames, mut drops) = (Vec::new(), Drops::default());
        self.frames.next_buffer().expect("all are free")[..run.len()].copy_from_slice(run);
        let mut left =
            Some(self.frames.run(Arrived { len: run.len(), segment, ds }, Sender::default()));
        while let Some(run) = left {
            self.batch.clear();
            left = self.frames.take(run, &mut self.batch, &mut drops);
            frames.extend(self.batch.frames().iter().map(|slot| {
                let mut bytes = slot.head.bytes().to_vec();
                if let BodyAt::Port { at, len } = slot.body {
                    self.frames.body(at, len).append_to(&mut bytes);
                }
                Frame { bytes, offload: slot.offload }
            }));
        }
        self.frames.release();
        (frames, drops)
    }
}
