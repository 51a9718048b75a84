//! Why a frame went no further.

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)*) => {
        /// One variant and one counter per cause. A dropped packet is a verdict, not an error.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        #[repr(u8)]
        pub enum DropReason { $($(#[$doc])* $name,)* }

        impl DropReason {
            /// Every reason, in declaration order: index = counter.
            pub const ALL: &'static [DropReason] = &[$(DropReason::$name,)*];

            /// Stable name, as the API, `suiro top` and the metrics print it.
            pub const fn name(self) -> &'static str {
                match self { $(DropReason::$name => $text,)* }
            }
        }
    };
}

reasons! {
    /// No table entry matched and there is no table-miss entry (OpenFlow 1.3.5 §5.4).
    NoMatch = "no_match";
    /// The program ended without an output: the rule says drop.
    ByRule = "by_rule";
    /// Shorter than an Ethernet header.
    Runt = "runt";
    /// Longer than the destination's MTU and not divisible into segments.
    TooBig = "too_big";
    /// TTL or hop limit ran out.
    TtlExpired = "ttl_expired";
    /// A push or an edit had no room in the head or met a malformed header.
    BadEdit = "bad_edit";
    /// The offload state contradicts the frame (checksum start past the end, segment size 0).
    BadOffload = "bad_offload";
    /// The switch has no port of that number.
    NoPort = "no_port";
    /// The destination port is down.
    PortDown = "port_down";
    /// `OFPPC_NO_RECV` at ingress.
    PortNoReceive = "port_no_receive";
    /// `OFPPC_NO_FWD` at egress.
    PortNoForward = "port_no_forward";
    /// The destination's queue was full.
    TxFull = "tx_full";
    /// The kernel or the peer refused the frame.
    TxError = "tx_error";
    /// A meter's band dropped it.
    Meter = "meter";
    /// The group does not exist, has no live bucket, or groups are nested too deep.
    NoBucket = "no_bucket";
    /// More vlink hops than allowed in one pass: a loop of switches.
    VlinkLoop = "vlink_loop";
    /// The packet-in ring or its per-switch quota was full.
    PacketInFull = "packet_in_full";
    /// A fragment, and the switch drops fragments (`OFPC_FRAG_DROP`).
    Fragment = "fragment";
    /// A destination address that 802.1D reserves for the link (`01:80:c2:00:00:0x`).
    ReservedAddress = "reserved_address";
    /// The action would send the frame back where it came from, or nowhere else.
    NoDestination = "no_destination";
    /// More table jumps or output copies than the program bound allows.
    TooManyCopies = "too_many_copies";
    /// The source handed over a frame that its own rules forbid (descriptor chain, length, header).
    BadSource = "bad_source";
    /// The worker failed while it held the frame, and was restarted.
    WorkerFault = "worker_fault";
    /// The source's queue was full in the kernel: the worker polled it too seldom.
    RxFull = "rx_full";
    /// The port's queue (`set_queue`) was full: it gets more than its rate.
    QueueFull = "queue_full";
    /// The ring to the worker that its flow is placed on was full: that worker gets more than it can do.
    HandoverFull = "handover_full";
    /// Its flow was about to move to another worker, and more frames than may wait for that came before the old worker was done.
    HoldFull = "hold_full";
    /// Congestion was marked on the tunnel's packet, and the frame inside cannot say so (RFC 6040 §4.2).
    Ecn = "ecn";
    /// The tunnel id that a rule chose is longer than the tunnel's key (VXLAN: 24 bits).
    TunnelId = "tunnel_id";
    /// No rule said where the tunnel leads, or the port has no address of that family.
    TunnelEnd = "tunnel_end";
    /// An ESP packet of no SA.
    EspSpi = "esp_spi";
    /// An ESP packet that was there before.
    EspReplay = "esp_replay";
    /// An ESP packet of which is no more known whether it was there before.
    EspOld = "esp_old";
    /// An ESP packet that was changed on the way, or made by someone else.
    EspIcv = "esp_icv";
    /// No ESP packet, or one that holds something else than the tunnel's.
    EspMalformed = "esp_malformed";
    /// The tunnel's SA has no sequence number left, or cannot note on disk which ones it uses.
    EspExhausted = "esp_exhausted";
    /// It came unencrypted to a tunnel that is encrypted.
    Plaintext = "plaintext";
    /// The thread that seals the tunnel's packets (`seal_core`) gets more than it can do.
    SealFull = "seal_full";
    /// A bridge would have flooded it, and the port where it came in has caused more copies than it may (storm control).
    Storm = "storm";
}
