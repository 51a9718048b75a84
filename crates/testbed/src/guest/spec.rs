//! What machine is wanted, and how is QEMU told?

use std::path::{Path, PathBuf};

/// A machine.
#[derive(Clone, Debug)]
pub struct GuestSpec {
    /// What errors call it.
    pub name: String,
    /// Processors.
    pub cpus: u8,
    /// They take turns in one thread of the emulator. Slower; but where each has a thread, a processor that halts has been seen to miss its interrupt for ever (QEMU 7.2).
    pub in_turn: bool,
    /// Memory, a file in memory that a switch can map.
    pub memory_mib: u32,
    /// Interfaces: `eth0`, `eth1`, … in this order.
    pub nics: Vec<Nic>,
    /// Cores of the host that it may run on; empty means all.
    pub cores: Vec<usize>,
    /// Programs of the host that it has in `/bin` beside the usual ones, with their libraries.
    pub programs: Vec<PathBuf>,
    /// Modules that it loads behind the usual ones, in this order.
    pub modules: Vec<&'static str>,
    /// A second port to the host, [`LOG`](super::LOG) inside, on which a command can talk while it runs.
    pub log: bool,
}

impl GuestSpec {
    /// A machine without interfaces.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            cpus: 1,
            in_turn: false,
            memory_mib: 192,
            nics: Vec::new(),
            cores: Vec::new(),
            programs: Vec::new(),
            modules: Vec::new(),
            log: false,
        }
    }

    /// The same with so many processors.
    pub fn cpus(self, cpus: u8) -> Self {
        Self { cpus, ..self }
    }

    /// The same with processors that take turns.
    pub fn in_turn(self) -> Self {
        Self { in_turn: true, ..self }
    }

    /// The same with so much memory.
    pub fn memory_mib(self, memory_mib: u32) -> Self {
        Self { memory_mib, ..self }
    }

    /// The same with this program of the host.
    pub fn program(mut self, path: PathBuf) -> Self {
        self.programs.push(path);
        self
    }

    /// The same with these modules.
    pub fn modules(self, modules: &[&'static str]) -> Self {
        Self { modules: modules.to_vec(), ..self }
    }

    /// The same with a log.
    pub fn log(self) -> Self {
        Self { log: true, ..self }
    }

    /// The same with one interface more.
    pub fn nic(mut self, nic: Nic) -> Self {
        self.nics.push(nic);
        self
    }

    /// The same on these cores of the host only.
    pub fn on_cores(self, cores: &[usize]) -> Self {
        Self { cores: cores.to_vec(), ..self }
    }
}

/// What an interface is connected to.
#[derive(Clone, Debug)]
pub enum Backend {
    /// A switch that speaks vhost-user.
    VhostUser {
        /// The socket.
        socket: PathBuf,
        /// Who makes the socket and waits on it.
        listener: Listener,
    },
    /// The other end of a pair of datagram sockets, by QEMU itself: no switch, no offloads.
    Cable {
        /// This end, made by this machine.
        here: PathBuf,
        /// The other machine's.
        there: PathBuf,
    },
}

/// Who makes a vhost-user socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listener {
    /// The guest: its start goes on when the switch has connected.
    Guest,
    /// The switch, before the guest starts; the guest connects again, every second, when the switch has gone.
    Switch,
}

/// One interface: a virtio network device on PCI.
#[derive(Clone, Debug)]
pub struct Nic {
    /// Its other end.
    pub backend: Backend,
    /// MAC address.
    pub mac: String,
    /// Queue pairs; with more than one the device has a control queue that sets how many are used.
    pub queues: u16,
    /// Packed virtqueues instead of split ones.
    pub packed: bool,
    /// Largest MTU, told to the driver, which takes it as its own.
    pub mtu: Option<u16>,
    /// Entries of each receive and transmit queue.
    pub entries: u16,
    /// Features that the device does not offer, by QEMU's names: `csum`, `guest_csum`, `host_tso4`, `guest_tso4`, `mrg_rxbuf`,
    /// `indirect_desc`, `event_idx`, …
    pub without: Vec<String>,
}

impl Nic {
    /// One split queue pair of 256 entries, all features.
    pub fn new(backend: Backend, mac: &str) -> Self {
        let (mac, without) = (mac.into(), Vec::new());
        Self { backend, mac, queues: 1, packed: false, mtu: None, entries: 256, without }
    }

    /// By vhost-user, the guest making the socket.
    pub fn vhost_user(socket: &Path, mac: &str) -> Self {
        let (socket, listener) = (socket.to_owned(), Listener::Guest);
        Self::new(Backend::VhostUser { socket, listener }, mac)
    }

    /// The same with so many queue pairs.
    pub fn queues(self, queues: u16) -> Self {
        Self { queues, ..self }
    }

    /// The same with packed virtqueues.
    pub fn packed(self) -> Self {
        Self { packed: true, ..self }
    }

    /// The same with so many entries in each queue.
    pub fn entries(self, entries: u16) -> Self {
        Self { entries, ..self }
    }

    /// The same with this largest MTU.
    pub fn mtu(self, mtu: u16) -> Self {
        Self { mtu: Some(mtu), ..self }
    }

    /// The same without these features.
    pub fn without(self, features: &[&str]) -> Self {
        Self { without: features.iter().map(|&name| name.into()).collect(), ..self }
    }

    fn arguments(&self, number: usize) -> Vec<String> {
        let device = self.device(number);
        let mut words = match &self.backend {
            Backend::VhostUser { socket, listener } => {
                let path = escaped(socket);
                let who = match listener {
                    Listener::Guest => "server=on",
                    Listener::Switch => "server=off,reconnect=1",
                };
                let queues = self.queues;
                vec![
                    "-chardev".into(),
                    format!("socket,id=c{number},path={path},{who}"),
                    "-netdev".into(),
                    format!("vhost-user,id=n{number},chardev=c{number},queues={queues}"),
                ]
            }
            Backend::Cable { here, there } => {
                let (here, there) = (escaped(here), escaped(there));
                let ends = format!(
                    "local.type=unix,local.path={here},remote.type=unix,remote.path={there}"
                );
                vec!["-netdev".into(), format!("dgram,id=n{number},{ends}")]
            }
        };
        words.extend(["-device".into(), device]);
        words
    }

    fn device(&self, number: usize) -> String {
        let Self { mac, queues, packed, mtu, entries, without, .. } = self;
        // romfile: nothing boots from this card. vectors: in software emulation QEMU 7.2 crashes when a driver starts a vhost-user device
        // that has an interrupt for each queue, whatever the back-end (DPDK's as well); with one for all it does not.
        let mut text = format!(
            "virtio-net-pci,netdev=n{number},mac={mac},romfile=,vectors=0,disable-legacy=on,packed={},rx_queue_size={entries},\
             tx_queue_size={entries}",
            if *packed { "on" } else { "off" }
        );
        if *queues > 1 {
            text += ",mq=on";
        }
        if let Some(mtu) = mtu {
            text += &format!(",host_mtu={mtu}");
        }
        text + &without.iter().map(|feature| format!(",{feature}=off")).collect::<String>()
    }
}

/// A path as the value of an option: QEMU reads a doubled comma as one.
fn escaped(path: &Path) -> String {
    path.display().to_string().replace(',', ",,")
}

/// Files that a machine is started with.
pub struct Files<'f> {
    /// Kernel image.
    pub kernel: &'f Path,
    /// Initial file system.
    pub initramfs: &'f Path,
    /// Where the guest's console is written to.
    pub console: &'f Path,
    /// The host's end of the channel.
    pub channel: &'f Path,
    /// The host's end of the log.
    pub log: &'f Path,
    /// QEMU's process number, while it runs.
    pub pid: &'f Path,
}

/// QEMU's arguments for a machine.
pub fn arguments(spec: &GuestSpec, files: &Files<'_>) -> Vec<String> {
    let memory = spec.memory_mib;
    // Problems reach the console, nothing else does: every character is an exit from emulation. After a panic the machine ends.
    let append = "console=ttyS0 loglevel=4 panic=-1 nokaslr mitigations=off tsc=reliable no_timer_check audit=0";
    let pairs = [
        // First of all: whoever waits there learns at once when QEMU has ended.
        ("-chardev", format!("socket,id=channel,path={}", escaped(files.channel))),
        ("-machine", "q35,memory-backend=memory,hpet=off,sata=off,smbus=off,vmport=off".into()),
        ("-accel", format!("tcg,thread={}", if spec.in_turn { "single" } else { "multi" })),
        ("-cpu", "max".into()),
        ("-smp", spec.cpus.to_string()),
        ("-m", format!("{memory}M")),
        ("-object", format!("memory-backend-memfd,id=memory,size={memory}M,share=on")),
        ("-kernel", escaped(files.kernel)),
        ("-initrd", escaped(files.initramfs)),
        ("-append", append.into()),
        ("-pidfile", files.pid.display().to_string()),
        ("-serial", format!("file:{}", files.console.display())),
        ("-device", "virtio-serial-pci,disable-legacy=on,max_ports=3".into()),
        ("-device", "virtserialport,chardev=channel,nr=1,name=suiro".into()),
    ];
    let log = [
        ("-chardev", format!("socket,id=log,path={}", escaped(files.log))),
        ("-device", "virtserialport,chardev=log,nr=2,name=log".into()),
    ];
    let log = log.into_iter().filter(|_| spec.log);
    let switches = ["-nodefaults", "-no-user-config", "-no-reboot"].map(str::to_owned);
    let display = ["-display", "none", "-monitor", "none", "-parallel", "none"].map(str::to_owned);
    let mut words: Vec<_> = switches.into_iter().chain(display).collect();
    words.extend(
        pairs.into_iter().chain(log).flat_map(|(option, value)| [option.to_owned(), value]),
    );
    words.extend(spec.nics.iter().enumerate().flat_map(|(number, nic)| nic.arguments(number)));
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(nic: Nic) -> String {
        let files = Files {
            kernel: Path::new("vmlinuz"),
            initramfs: Path::new("initramfs"),
            console: Path::new("console"),
            channel: Path::new("channel"),
            log: Path::new("log"),
            pid: Path::new("pid"),
        };
        arguments(&GuestSpec::new("a").nic(nic), &files).join(" ")
    }

    #[test]
    fn queues_layout_and_mtu_are_told() {
        let text = words(
            Nic::vhost_user(Path::new("/x"), "02:00:00:00:00:01").queues(4).packed().mtu(9000),
        );
        assert!(text.contains("socket,id=c0,path=/x,server=on"), "{text}");
        assert!(text.contains("vhost-user,id=n0,chardev=c0,queues=4"), "{text}");
        assert!(text.contains("packed=on") && text.contains("mq=on,host_mtu=9000"), "{text}");
    }

    #[test]
    fn features_are_left_out_by_name_and_commas_in_paths_survive() {
        let (socket, listener) = (PathBuf::from("/a,b"), Listener::Switch);
        let nic = Nic::new(Backend::VhostUser { socket, listener }, "02:00:00:00:00:01");
        let text = words(nic.without(&["guest_tso4", "csum"]));
        assert!(text.contains("path=/a,,b,server=off,reconnect=1"), "{text}");
        assert!(text.ends_with(",guest_tso4=off,csum=off"), "{text}");
    }
}
