//! TAP: an interface of ours that a guest uses.
//!
//! The interface is made inside the guest's namespace, if one is named, and stays when suiro ends in whatever way (it is
//! persistent), so a restart finds it with its addresses and takes it over. Large frames and unfinished checksums pass as they
//! are, both ways (`IFF_VNET_HDR`, linux/if_tun.h).

mod finder;
mod queue;

use crate::bypass::{Door, DoorKeeper, Doors, Sorter};
use crate::common::Common;
use crate::control::{Keep, PortControl};
use crate::error::{ControlError, OpenError};
use crate::facts::PortFacts;
use crate::interface::{Interface, cannot_enter, open_netns, raw_name};
use crate::netns::Netns;
use crate::opened::OpenPort;
use crate::queue::{RxQueue, TxQueue};
use crate::sys::ioctl::{self, Name};
use crate::vnet;
use finder::Finder;
pub(crate) use finder::Finders;
use netlink::Link;
use queue::{Takes, TapRx, TapTx};
use rustix::fs::{Mode, OFlags};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// The kernel's bound (`MAX_TAP_QUEUES`).
const QUEUES_MAX: u16 = 256;
const IFF_TAP: i32 = 0x0002;
const IFF_MULTI_QUEUE: i32 = 0x0100;
const IFF_NO_PI: i32 = 0x1000;
const IFF_VNET_HDR: i32 = 0x4000;

/// Checksum, TSO for IPv4 and IPv6, TSO with ECN.
const TCP_OFFLOADS: u32 = 0x01 | 0x02 | 0x04 | 0x08;
/// USO for IPv4 and IPv6, since Linux 6.2; the kernel takes both or none.
const UDP_OFFLOADS: u32 = 0x20 | 0x40;
/// Large frames in UDP tunnels, without and with outer checksums, since Linux 6.17.
const TUNNEL_OFFLOADS: u32 = 0x80 | 0x100;

/// Opens or takes over a TAP.
pub(crate) fn open(
    spec: &Common,
    workers: usize,
    doors: &Doors,
    finders: &Finders,
) -> Result<OpenPort, OpenError> {
    let netns = open_netns(spec)?;
    let interface = Interface::new(spec, &netns)?;
    let queues = spec.queues.max(1);
    if queues > QUEUES_MAX {
        let interface = spec.interface.clone();
        return Err(OpenError::Queues { interface, asked: queues, available: QUEUES_MAX });
    }
    let before = interface.look()?;
    if let Some(link) = &before {
        takeable(link)?;
    }
    let mut notes = Vec::new();
    let files = open_queues(spec, &netns, queues, before.as_ref(), &mut notes)?;
    let files: Vec<_> = files.into_iter().map(Arc::new).collect();
    let opened = finish(spec, &interface, &files, finders, &mut notes)
        .and_then(|link| assemble((spec, &netns, doors), interface, link, &files, workers, notes));
    if opened.is_err() && before.is_none() {
        // Made by us just now: it goes with its last file.
        let _ = ioctl::tun_set_persistent(&files[0], false);
    }
    opened
}

/// An interface that exists must be a TAP that no one holds: the driver shows a carrier exactly while a file is attached.
fn takeable(link: &Link) -> Result<(), OpenError> {
    let interface = link.name.clone();
    if link.kind != "tun" {
        return Err(OpenError::WrongInterface {
            interface,
            why: "the interface exists and is not a TAP".into(),
        });
    }
    if link.carrier {
        return Err(busy(interface));
    }
    Ok(())
}

fn busy(interface: String) -> OpenError {
    let remedy = format!(
        "stop the program that has it open (`fuser -v /dev/net/tun`), or choose another name than {interface}"
    );
    OpenError::Busy { interface, holder: "its TAP queue is open".into(), remedy }
}

/// The queues' files, the first try as wanted; an interface left by an earlier start may be single-queue or multi-queue for good.
fn open_queues(
    spec: &Common,
    netns: &Netns,
    queues: u16,
    before: Option<&Link>,
    notes: &mut Vec<String>,
) -> Result<Vec<OwnedFd>, OpenError> {
    let name = raw_name(spec)?;
    let attach = |queues: u16, multi: bool| {
        let entered = netns
            .run(|| (0..queues).map(|_| open_queue(name, multi)).collect::<io::Result<Vec<_>>>());
        entered.map_err(|source| cannot_enter(spec, source))
    };
    let multi = queues > 1;
    let opened = match attach(queues, multi)? {
        Err(error) if before.is_some() && error.raw_os_error() == Some(libc::EINVAL) => {
            if multi {
                notes.push(format!(
                    "1 queue: {0} was made as a single-queue TAP (`ip link del {0}` lets suiro make it anew)",
                    spec.interface
                ));
            }
            attach(1, !multi)?
        }
        opened => opened,
    };
    opened.map_err(|source| match source.raw_os_error() {
        Some(libc::EBUSY) => busy(spec.interface.clone()),
        Some(libc::EINVAL) if before.is_some() => {
            let why = "the interface exists and is a TUN, not a TAP";
            OpenError::WrongInterface { interface: spec.interface.clone(), why: why.into() }
        }
        _ => OpenError::io(&spec.interface, "open /dev/net/tun", source),
    })
}

fn open_queue(name: Name, multi: bool) -> io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = rustix::fs::open("/dev/net/tun", flags, Mode::empty())?;
    let multi = if multi { IFF_MULTI_QUEUE } else { 0 };
    ioctl::tun_set_interface(&file, name, IFF_TAP | IFF_NO_PI | IFF_VNET_HDR | multi)?;
    ioctl::tun_set_header_len(&file, vnet::TUNNEL_LEN as i32)?;
    Ok(file)
}

/// Persistence, offloads, MAC, MTU, up; and which large frames in tunnels are taken.
fn finish(
    spec: &Common,
    interface: &Interface,
    files: &[Arc<OwnedFd>],
    finders: &Finders,
    notes: &mut Vec<String>,
) -> Result<(Link, Takes), OpenError> {
    let failed = |step| move |source| OpenError::io(&spec.interface, step, source);
    let first = &files[0];
    ioctl::tun_set_persistent(first, true).map_err(failed("make the TAP persistent"))?;
    let udp = set_offloads(first, notes).map_err(failed("set the TAP's offloads"))?;
    let link = interface.find(spec)?;
    let others =
        finders.finder(Arc::clone(first)).map_err(failed("start a thread for its program"))?;
    Ok((interface.configure(spec, &link)?, Takes { udp, others }))
}

/// Whether the kernel takes large frames in UDP tunnels. What an older one lacks costs speed only; that of UDP is said.
fn set_offloads(file: &OwnedFd, notes: &mut Vec<String>) -> io::Result<bool> {
    let with = |offloads| ioctl::tun_set_offload(file, TCP_OFFLOADS | offloads);
    if with(UDP_OFFLOADS | TUNNEL_OFFLOADS).is_ok() {
        return Ok(true);
    }
    if with(UDP_OFFLOADS).is_err() {
        with(0)?;
        notes.push("UDP segmentation offload is missing (needs Linux 6.2)".into());
    }
    Ok(false)
}

fn assemble(
    (spec, netns, doors): (&Common, &Netns, &Doors),
    interface: Interface,
    (link, takes): (Link, Takes),
    files: &[Arc<OwnedFd>],
    workers: usize,
    notes: Vec<String>,
) -> Result<OpenPort, OpenError> {
    let failed = |step| move |source| OpenError::io(&spec.interface, step, source);
    let place = doors.place(netns).map_err(failed("look at the network namespace"))?;
    let door =
        Door::new(files.len(), link.mac, doors.bells()).map_err(failed("make event counters"))?;
    let plural = if files.len() == 1 { "" } else { "s" };
    let mode = format!("tap, {} queue{plural}", files.len());
    let queue = |(queue, file): (usize, &Arc<OwnedFd>)| {
        let rx = TapRx::new(Arc::clone(file), door.clone(), queue);
        rx.map(|rx| Box::new(rx) as Box<dyn RxQueue>)
    };
    let rx = files.iter().enumerate().map(queue).collect::<io::Result<Vec<_>>>();
    let rx = rx.map_err(failed("watch two files as one"))?;
    let tx = files.iter().cycle().take(workers);
    let sorter = || Sorter::new(place.clone(), door.clone());
    let queue = |file| TapTx::new(Arc::clone(file), sorter(), takes.clone());
    let tx = tx.map(|file| Box::new(queue(file)) as Box<dyn TxQueue>);
    let tx = tx.collect();
    let facts = interface.facts(link, &mode, &notes);
    let keeper = DoorKeeper::new(place, facts.index, door);
    let file = Arc::clone(&files[0]);
    let (index, finder) = (facts.index, takes.others);
    let control = TapControl { index, interface, file, keeper, finder, mode, notes };
    Ok(OpenPort { facts, rx, tx, control: Box::new(control) })
}

struct TapControl {
    interface: Interface,
    index: u32,
    file: Arc<OwnedFd>,
    /// The side entrance, open as long as the port is.
    keeper: DoorKeeper,
    finder: Arc<Finder>,
    mode: String,
    notes: Vec<String>,
}

impl PortControl for TapControl {
    fn facts(&self) -> Result<PortFacts, ControlError> {
        let link = self.interface.link(self.index)?;
        self.keeper.door.set_mac(link.mac);
        let notes: Vec<_> = self.notes.iter().cloned().chain(self.finder.note()).collect();
        Ok(self.interface.facts(link, &self.mode, &notes))
    }

    fn door(&self) -> Option<Arc<Door>> {
        Some(self.keeper.door.clone())
    }

    fn set_admin(&self, up: bool) -> Result<(), ControlError> {
        self.interface.set_admin(self.index, up)
    }

    fn set_mtu(&self, mtu: u32) -> Result<(), ControlError> {
        self.interface.set_mtu(self.index, mtu)
    }

    fn close(self: Box<Self>, keep: Keep) -> Result<(), ControlError> {
        if keep == Keep::Interface {
            return Ok(());
        }
        let gone = ioctl::tun_set_persistent(&self.file, false);
        match gone {
            // Someone removed the interface already.
            Err(error) if error.raw_os_error() == Some(libc::EBADFD) => Ok(()),
            gone => gone.map_err(|source| {
                ControlError::io(self.interface.name(), "remove the TAP", source)
            }),
        }
    }
}
