//! Why a flow stays on the worker: one reason for every one that does.

use flow::Nanos;
use thiserror::Error;
use wire::Field;

/// Why a flow is not on a rung.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Error)]
pub enum Declined {
    /// What the tables do with it is for the worker only.
    #[error(transparent)]
    Flow(#[from] FlowReason),
    /// A port of its way has no such rung.
    #[error(transparent)]
    Port(#[from] PortReason),
    /// The rung refuses it.
    #[error(transparent)]
    Card(#[from] CardReason),
    /// Nobody wants it there, or others more.
    #[error(transparent)]
    Policy(#[from] PolicyReason),
    /// It cannot move now without a risk.
    #[error(transparent)]
    Move(#[from] MoveReason),
}

/// What the tables do with a flow that only the worker can.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Error)]
pub enum FlowReason {
    /// Not IPv4 or IPv6 with TCP, UDP, ICMP or ICMPv6 that a rung tells apart: ARP, neighbour discovery, fragments, MPLS.
    #[error("it is no flow of IPv4 or IPv6 that a rung tells apart")]
    NoSuchFlow,
    /// Rules drop it.
    #[error("rules drop it")]
    Dropped,
    /// A controller wants its frames.
    #[error("its frames go to a controller")]
    ToController,
    /// It leaves by several ports.
    #[error("it leaves by several ports")]
    SeveralExits,
    /// A rule looks at what differs from frame to frame.
    #[error("a rule looks at {}, which differs from frame to frame", .0.name())]
    DependsOn(Field),
    /// It is changed in a way that a rung cannot.
    #[error("a rung cannot {0}")]
    Edits(EditKind),
    /// A bridge has not learned where its source is.
    #[error("a bridge has still to learn where its source is")]
    LearnsMac,
    /// A meter changes its DSCP.
    #[error("a meter changes its DSCP")]
    MeterRemarks,
    /// It passes several meters, one with many bands, or one after it has left.
    #[error("it passes more meters or bands than a rung keeps")]
    Limits,
    /// Tables, groups or meters count it before and after its length changes.
    #[error("its tables count it at several lengths")]
    Lengths,
    /// Its queue has a guarantee.
    #[error("its queue has a guarantee (min_rate), which only the worker keeps")]
    Guaranteed,
    /// It leaves or comes by an encrypted tunnel.
    #[error("it is encrypted in its tunnel")]
    Encrypted,
    /// Someone captures it.
    #[error("it is being captured")]
    Captured,
}

/// What is done to a frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Error)]
pub enum EditKind {
    /// Writes a field.
    #[error("set {}", .0.name())]
    Set(Field),
    /// Writes a TTL that differs from frame to frame.
    #[error("set a TTL")]
    SetTtl,
    /// Copies a TTL.
    #[error("copy a TTL")]
    CopyTtl,
    /// Decrements a TTL twice.
    #[error("decrement a TTL twice")]
    DecTtlTwice,
    /// Pushes, pops or changes an MPLS shim.
    #[error("change MPLS shims")]
    Mpls,
    /// Pushes or pops an I-TAG.
    #[error("change I-TAGs")]
    Pbb,
    /// Leaves it with two tags, or takes off a second one.
    #[error("handle two tags")]
    TwoTags,
    /// Puts a tunnel's header around it, or takes it off, that is not VXLAN over IPv4 with one VNI and one other end; or on another rung than xdp.
    #[error("put on or take off a tunnel's headers: xdp alone does, and VXLAN over IPv4 alone")]
    Tunnel,
    /// Changes a tunnel's headers before they come off.
    #[error("change a tunnel's headers before it takes them off")]
    Outside,
    /// Takes it from one tunnel to another.
    #[error("take one tunnel's headers off and put another's on")]
    TwoTunnels,
}

/// A port without such a rung.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Error)]
pub enum PortReason {
    /// Ports of this kind have none.
    #[error("a port of kind {kind} has no rung past the worker")]
    NoHook {
        /// The kind, as a user writes it.
        kind: &'static str,
    },
    /// Its XDP program runs behind the driver, where nothing is won.
    #[error("its XDP program runs behind the driver (generic mode)")]
    GenericHook,
    /// The exit takes no redirected frames.
    #[error("the exit takes no redirected frames")]
    ExitTakesNoFrames,
    /// Frames of one flow may pass each other in several queues.
    #[error("it has {queues} queues, in which frames of one flow may pass each other")]
    SeveralQueues {
        /// How many.
        queues: u16,
    },
    /// The guest's end lies in no other network namespace.
    #[error("its other end is not in a network namespace of its own")]
    SameNamespace,
    /// Redirected frames have queues of their own there.
    #[error(
        "its driver sends redirected frames by queues of their own, in which they may pass the worker's"
    )]
    OwnQueues,
    /// The worker's frames take another way through its driver.
    #[error(
        "the worker cannot send XDP frames out of it, and what its socket sends may pass the rung's"
    )]
    SocketPasses,
    /// Entry and exit are of different kinds.
    #[error("a rung takes flows between two ports of kind af_packet, or two of kind af_xdp")]
    OtherKind,
    /// The rung would cut large segments.
    #[error("the rung would cut its large segments")]
    CutsSegments,
    /// Edits make frames too long.
    #[error("frames need an MTU of {needs} at the exit, and it has {has}")]
    Mtu {
        /// What they need.
        needs: u32,
        /// What there is.
        has: u32,
    },
    /// A tunnel's packets go through the host's network stack.
    #[error("its tunnel's packets go through the kernel")]
    ThroughKernel,
    /// A tunnel that goes past the kernel has no way there now.
    #[error("its tunnel has no way past the kernel now")]
    NoWay,
    /// It is down.
    #[error("the port is down")]
    Down,
    /// It is gone, or the provider was not told of it.
    #[error("the port is not there")]
    Gone,
}

/// What a rung itself refuses.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Error)]
pub enum CardReason {
    /// It does not match on a field.
    #[error("the rung does not match on {}", .0.name())]
    Key(Field),
    /// It does not do this.
    #[error("the rung cannot {0}")]
    Action(EditKind),
    /// No slot is free.
    #[error("all {slots} slots of the rung are taken")]
    Full {
        /// How many there are.
        slots: u32,
    },
    /// Kernel or card said no, in its own words.
    #[error("the kernel refused it: {words} (error {errno})")]
    Refused {
        /// Its words.
        words: String,
        /// Its number.
        errno: i32,
    },
    /// The rung is out of service.
    #[error("the rung is out of service")]
    Gone,
}

/// Nobody wants a flow there, or others more.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Error)]
pub enum PolicyReason {
    /// Offload is off.
    #[error("offload is off")]
    Off,
    /// A policy says never.
    #[error("a policy says never")]
    Never,
    /// It has not been seen among the heavy ones.
    #[error("too few of its frames have been seen")]
    NotSeen,
    /// What its policy asks for is not reached.
    #[error("{what} is {is}, and its policy asks for {needs}")]
    BelowThreshold {
        /// What is measured.
        what: &'static str,
        /// What it is.
        is: u64,
        /// What it must be.
        needs: u64,
    },
    /// The rung costs more than the worker.
    #[error("the rung would cost {by_ns} ns a second more than the worker")]
    CostsMore {
        /// By how much.
        by_ns: u64,
    },
    /// It has not yet cost as much as its move would.
    #[error("it has cost {spent_ns} ns more than on the rung, and its move costs {needs_ns}")]
    NotYetWorth {
        /// What was lost so far.
        spent_ns: u64,
        /// What the move costs.
        needs_ns: u64,
    },
    /// Flows of greater benefit have the slots.
    #[error("the slots are taken by flows of greater benefit")]
    BetterFlows,
    /// Its tenant has its share of slots.
    #[error("its tenant has its {has} slots, and none is free")]
    TenantsSlots {
        /// How many.
        has: u32,
    },
    /// It fell lately, and waits.
    #[error("it fell lately and waits")]
    Cooling {
        /// Until when.
        until: Nanos,
    },
}

/// A flow cannot move now without a risk.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Error)]
pub enum MoveReason {
    /// There was always a frame of it under way in the worker.
    #[error("a frame of it was always under way in the worker")]
    NeverQuiet,
    /// The provider cannot keep its frames in order.
    #[error("the provider cannot keep its frames in order")]
    OrderUnknown,
    /// Workers hand each other its frames.
    #[error("its switch is steered: no worker knows when the last frame of it is sent")]
    Steered,
    /// Rules change just now.
    #[error("rules change just now")]
    RulesChange,
    /// What a dead node left is being taken up.
    #[error("what an earlier node left is being taken up")]
    Adopting,
    /// What a frame costs on the rung is not known yet.
    #[error("what a frame costs on the rung is being measured")]
    Measuring,
    /// Moves have used up their budget for now.
    #[error("as many flows as may move at once are moving")]
    Busy,
}
