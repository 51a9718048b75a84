//! One AF_XDP socket: a UMEM and its rings, as two halves that share no frame.
//!
//! The UMEM's first frames belong to the receiving half, the others to the sending half. A frame is at any time either with the kernel (its number
//! went into the fill or tx ring) or with its half (it came out of the rx or completion ring, or never left): each half keeps
//! that book itself and gives out bytes only of frames that it has.
//!
//! Each half has a socket of its own on the same queue and UMEM (`XDP_SHARED_UMEM`). A worker's epoll watches the receiving one; were it
//! the sending one too, freeing a sent frame would look for that epoll's waiters (`sock_wfree`, 9 % of one profile). Chosen for that; the gain is not measured.

use super::memory::Mapping;
use super::ring::{Consumer, Producer};
use rustix::io::Errno;
use rustix::net::xdp::{
    SocketAddrXdp, SocketAddrXdpFlags, SocketAddrXdpWithSharedUmem, XDP_PGOFF_RX_RING,
    XDP_PGOFF_TX_RING, XDP_UMEM_PGOFF_COMPLETION_RING, XDP_UMEM_PGOFF_FILL_RING, XdpDesc,
    XdpDescOptions, XdpUmemReg, XdpUmemRegFlags,
};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, sockopt};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use wire::PartialChecksum;

/// Bytes before a sent frame: the metadata, and alignment to a cache line.
pub(crate) const TX_HEADROOM: u32 = 64;
/// Bytes that the kernel keeps free before a received frame (`XDP_PACKET_HEADROOM`).
pub(crate) const RX_HEADROOM: u32 = 256;
/// `struct xsk_tx_metadata`: `flags` u64, `csum_start` u16, `csum_offset` u16, …, `launch_time` u64.
const METADATA: u32 = 24;
/// `XDP_UMEM_TX_METADATA_LEN`, `XDP_TXMD_FLAGS_CHECKSUM`, `XDP_TX_METADATA`: newer than rustix's names.
const UMEM_TX_METADATA_LEN: u32 = 1 << 2;
const TXMD_CHECKSUM: u64 = 1 << 1;
const TX_METADATA: u32 = 1 << 1;

/// What a socket shall be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// The interface's index in the calling thread's namespace.
    pub(crate) index: u32,
    /// The rx and tx queue.
    pub(crate) queue: u32,
    /// The driver's buffers instead of a copy.
    pub(crate) zero_copy: bool,
    /// Bytes of a frame with its headroom: 2048 or 4096.
    pub(crate) chunk: u32,
    /// Frames of each half, a power of two.
    pub(crate) frames: u32,
    /// Ask for checksums to be completed by the kernel (Linux 6.11).
    pub(crate) checksum: bool,
}

/// The memory of both halves.
struct Umem {
    mapping: Mapping,
    chunk: u32,
}

impl Umem {
    fn new(shape: &Shape) -> io::Result<Self> {
        let len = 2 * shape.frames as usize * shape.chunk as usize;
        Ok(Self { mapping: Mapping::anonymous(len)?, chunk: shape.chunk })
    }

    fn frame_of(&self, at: u64) -> u64 {
        at / u64::from(self.chunk)
    }

    /// Whether `at..at + len` lies in one frame.
    fn in_one_frame(&self, at: u64, len: u32) -> bool {
        at % u64::from(self.chunk) + u64::from(len) <= u64::from(self.chunk)
    }
}

/// Opens and binds a socket in the calling thread's namespace.
pub(crate) fn open(shape: &Shape) -> io::Result<(XskRx, XskTx)> {
    let fd = socket()?;
    let umem = Umem::new(shape)?;
    register(fd.as_fd(), &umem, shape)?;
    sockopt::set_xdp_umem_fill_ring_size(&fd, shape.frames)?;
    sockopt::set_xdp_umem_completion_ring_size(&fd, shape.frames)?;
    sockopt::set_xdp_rx_ring_size(&fd, shape.frames)?;
    let (at, size) = (sockopt::xdp_mmap_offsets(&fd)?, shape.frames);
    let rx = Consumer::map(fd.as_fd(), XDP_PGOFF_RX_RING, &at.rx, size)?;
    let fill = Producer::map(fd.as_fd(), XDP_UMEM_PGOFF_FILL_RING, &at.fr, size)?;
    let completion = Consumer::map(fd.as_fd(), XDP_UMEM_PGOFF_COMPLETION_RING, &at.cr, size)?;
    let mode = if shape.zero_copy {
        SocketAddrXdpFlags::XDP_ZEROCOPY
    } else {
        SocketAddrXdpFlags::XDP_COPY
    };
    let address = SocketAddrXdp::new(
        mode | SocketAddrXdpFlags::XDP_USE_NEED_WAKEUP,
        shape.index,
        shape.queue,
    );
    rustix::net::bind(&fd, &address)?;
    let sender = socket()?;
    sockopt::set_xdp_tx_ring_size(&sender, size)?;
    let tx = Producer::map(
        sender.as_fd(),
        XDP_PGOFF_TX_RING,
        &sockopt::xdp_mmap_offsets(&sender)?.tx,
        size,
    )?;
    let shared = SocketAddrXdp::new(SocketAddrXdpFlags::XDP_SHARED_UMEM, shape.index, shape.queue);
    rustix::net::bind(
        &sender,
        &SocketAddrXdpWithSharedUmem { addr: shared, shared_umem_fd: fd.as_fd() },
    )?;
    let (fd, umem) = (Arc::new(fd), Arc::new(umem));
    let held = vec![true; size as usize].into_boxed_slice();
    let mut receiving = XskRx {
        fd: Arc::clone(&fd),
        umem: Arc::clone(&umem),
        rx,
        fill,
        held,
        back: (0..u64::from(size)).collect(),
    };
    receiving.release();
    let free = (u64::from(size)..2 * u64::from(size)).collect();
    let sending =
        XskTx { fd: sender, umem, tx, completion, free, first: size.into(), shape: *shape };
    Ok((receiving, sending))
}

fn socket() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(rustix::net::socket_with(AddressFamily::XDP, SocketType::RAW, flags, None)?)
}

fn register(fd: BorrowedFd<'_>, umem: &Umem, shape: &Shape) -> io::Result<()> {
    let flags = if shape.checksum { UMEM_TX_METADATA_LEN } else { 0 };
    let registration = XdpUmemReg {
        addr: umem.mapping.address(),
        len: umem.mapping.len() as u64,
        chunk_size: shape.chunk,
        headroom: 0,
        flags: XdpUmemRegFlags::from_bits_retain(flags),
        tx_metadata_len: if shape.checksum { METADATA } else { 0 },
    };
    Ok(sockopt::set_xdp_umem_reg(fd, registration)?)
}

/// A frame received.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RxFrame {
    /// Its first byte's address in the UMEM.
    pub(crate) at: u64,
    /// Bytes.
    pub(crate) len: u32,
}

/// The receiving half.
pub(crate) struct XskRx {
    fd: Arc<OwnedFd>,
    umem: Arc<Umem>,
    rx: Consumer<XdpDesc>,
    fill: Producer<u64>,
    /// Which frames are ours now, by number.
    held: Box<[bool]>,
    /// Their numbers.
    back: Vec<u64>,
}

impl XskRx {
    /// Takes up to `most` frames; they stay ours until [`XskRx::release`]. A descriptor that makes no sense is skipped.
    pub(crate) fn receive(&mut self, most: usize, mut take: impl FnMut(&Self, RxFrame)) {
        for _ in 0..self.rx.waiting(most as u32) {
            let XdpDesc { addr: at, len, .. } = self.rx.pop();
            let number = self.umem.frame_of(at);
            let known = self.held.get_mut(number as usize).filter(|held| !**held);
            let Some(held) = known else { continue };
            *held = true;
            self.back.push(number);
            if self.umem.in_one_frame(at, len) {
                take(self, RxFrame { at, len });
            }
        }
        self.rx.release();
    }

    /// The bytes of a frame that is ours; nothing when it is not.
    pub(crate) fn bytes(&self, at: u64, len: u32) -> &[u8] {
        let ours = self.held.get(self.umem.frame_of(at) as usize) == Some(&true)
            && self.umem.in_one_frame(at, len);
        let Some(start) = self.umem.mapping.at::<u8>(at as usize, len as usize).filter(|_| ours)
        else {
            return &[];
        };
        // SAFETY: the bytes lie in the mapping, inside one frame that `held` says is ours: the kernel writes it only after
        // `release` put it into the fill ring, which needs `&mut self`, and the sending half has other frames.
        unsafe { std::slice::from_raw_parts(start.as_ptr(), len as usize) }
    }

    /// Gives every frame that is ours back to the kernel.
    pub(crate) fn release(&mut self) {
        if self.back.is_empty() {
            return;
        }
        for number in self.back.drain(..) {
            self.held[number as usize] = false;
            let pushed = self.fill.push(number * u64::from(self.umem.chunk));
            debug_assert!(pushed, "the fill ring has an entry for each frame");
        }
        self.fill.publish();
    }

    /// Wakes a driver that waits for buffers (zero-copy only).
    pub(crate) fn wake(&self) {
        if self.fill.needs_wakeup() {
            let _ = rustix::net::recv(&self.fd, &mut [0_u8; 0][..], RecvFlags::DONTWAIT);
        }
    }

    /// The socket.
    pub(crate) fn fd(&self) -> &Arc<OwnedFd> {
        &self.fd
    }
}

/// How a flush ended.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Flushed {
    /// Frames that the kernel took and dropped.
    pub(crate) refused: u32,
    /// Frames that it did not take yet, and why. They stay in the ring: another thread's poll may make the kernel take them at any time.
    pub(crate) left: Option<(u32, Errno)>,
}

/// The sending half.
pub(crate) struct XskTx {
    fd: OwnedFd,
    umem: Arc<Umem>,
    tx: Producer<XdpDesc>,
    completion: Consumer<u64>,
    /// Numbers of the frames that are ours; the last one used is the first one used again, while it is in the cache.
    free: Vec<u64>,
    /// Number of this half's first frame.
    first: u64,
    shape: Shape,
}

impl XskTx {
    /// Longest frame.
    pub(crate) fn max_len(&self) -> usize {
        (self.shape.chunk - TX_HEADROOM) as usize
    }

    /// Whether the kernel completes checksums.
    pub(crate) fn completes_checksums(&self) -> bool {
        self.shape.checksum
    }

    /// Frames that are free now.
    pub(crate) fn room(&self) -> usize {
        self.free.len()
    }

    /// Takes back the frames that the kernel has sent.
    pub(crate) fn reclaim(&mut self) {
        let count = self.completion.waiting(self.shape.frames);
        if count == 0 {
            return;
        }
        for _ in 0..count {
            let number = self.umem.frame_of(self.completion.pop());
            let ours = self.first..self.first + u64::from(self.shape.frames);
            if ours.contains(&number) && self.free.len() < self.free.capacity() {
                self.free.push(number);
            }
        }
        self.completion.release();
    }

    /// Queues a frame of `len` bytes that `fill` writes; not sent before [`XskTx::flush`]. `None` without room, or when `fill` gives up.
    pub(crate) fn put(
        &mut self,
        len: usize,
        checksum: Option<PartialChecksum>,
        fill: impl FnOnce(&mut [u8]) -> Option<()>,
    ) -> Option<()> {
        let number = *self.free.last().filter(|_| len <= self.max_len())?;
        let start = number * u64::from(self.umem.chunk);
        let frame = self.umem.mapping.at::<u8>(start as usize, self.umem.chunk as usize)?;
        // SAFETY: the frame lies in the mapping and is ours (it is on the free list, whose numbers are this half's), so neither the
        // kernel nor the receiving half touches it; `&mut self` makes us its only user.
        let frame =
            unsafe { std::slice::from_raw_parts_mut(frame.as_ptr(), self.umem.chunk as usize) };
        let (headroom, room) = frame.split_at_mut(TX_HEADROOM as usize);
        fill(&mut room[..len])?;
        let marked = checksum.filter(|_| self.shape.checksum);
        if let Some(checksum) = marked {
            write_metadata(headroom, checksum);
        }
        let options = if marked.is_some() { TX_METADATA } else { 0 };
        self.free.pop();
        let pushed = self.tx.push(XdpDesc {
            addr: start + u64::from(TX_HEADROOM),
            len: len as u32,
            options: XdpDescOptions::from_bits_retain(options),
        });
        debug_assert!(pushed, "the tx ring has an entry for each frame");
        Some(())
    }

    /// Makes the kernel send what was put.
    pub(crate) fn flush(&mut self) -> Flushed {
        self.tx.publish();
        if self.shape.zero_copy {
            if self.tx.needs_wakeup() {
                // The driver sends by itself; if it cannot now, the next flush asks again.
                let _ = self.kick();
            }
            return Flushed::default();
        }
        self.send_copies()
    }

    /// In copy mode the kernel sends inside our system call: 32 frames at a time on older kernels.
    fn send_copies(&mut self) -> Flushed {
        let mut flushed = Flushed::default();
        let mut before = self.tx.pending();
        while before > 0 {
            let result = self.kick();
            let pending = self.tx.pending();
            match result {
                Ok(()) if pending == 0 => break,
                // One frame was taken and dropped by the driver (net/xdp/xsk.c).
                Err(Errno::BUSY) if pending < before => flushed.refused += 1,
                Ok(()) | Err(Errno::AGAIN | Errno::INTR) if pending < before => {}
                stuck => {
                    flushed.left = Some((pending, stuck.err().unwrap_or(Errno::AGAIN)));
                    break;
                }
            }
            before = pending;
        }
        flushed
    }

    /// Tries again to send what an earlier flush left; why it cannot, if so.
    pub(crate) fn retry(&mut self) -> Option<Errno> {
        if self.shape.zero_copy || self.tx.pending() == 0 {
            return None;
        }
        self.send_copies().left.map(|(_, error)| error)
    }

    fn kick(&self) -> Result<(), Errno> {
        rustix::net::send(&self.fd, &[], SendFlags::DONTWAIT).map(drop)
    }
}

fn write_metadata(headroom: &mut [u8], checksum: PartialChecksum) {
    let metadata = &mut headroom[(TX_HEADROOM - METADATA) as usize..];
    metadata[..8].copy_from_slice(&TXMD_CHECKSUM.to_ne_bytes());
    metadata[8..10].copy_from_slice(&checksum.start.to_ne_bytes());
    metadata[10..12].copy_from_slice(&checksum.offset.to_ne_bytes());
}
