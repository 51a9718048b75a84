//! Questions that cases put to a switch by multipart requests, and the news that they wait for.

use crate::harness::Bench;
use openflow::{
    AggregateStats, FlowRemoved, FlowStats, FlowStatsRequest, GroupId, GroupStats, Message,
    MeterId, MeterStats, MultipartReply, MultipartRequest, PortDesc, PortNo, PortStats, TableStats,
};

/// The entry that the harness adds for its markers has this priority; cases use lower ones.
const MARKER_PRIORITY: u16 = u16::MAX;

/// Everything in lists of one kind of reply.
macro_rules! lists {
    ($bench:expr, $request:expr, $kind:ident) => {{
        let parts = $bench.session.ask_parts(&$request);
        let list = |part| match part {
            MultipartReply::$kind(list) => list,
            other => panic!("{other:?}"),
        };
        parts.into_iter().flat_map(list).collect::<Vec<_>>()
    }};
}

impl Bench {
    /// The entries that a request asks for, but the marker's, by table, priority from the highest and cookie.
    pub fn flows(&mut self, request: FlowStatsRequest) -> Vec<FlowStats> {
        let mut flows = lists!(self, MultipartRequest::Flow(request), Flow);
        flows.retain(|flow| flow.priority != MARKER_PRIORITY);
        flows.sort_by_key(|flow| (flow.table, u16::MAX - flow.priority, flow.cookie));
        flows
    }

    /// The one entry that has this cookie.
    #[track_caller]
    pub fn flow(&mut self, cookie: u64) -> FlowStats {
        let request = FlowStatsRequest { cookie, cookie_mask: u64::MAX, ..Default::default() };
        let [flow]: [FlowStats; 1] = self.flows(request).try_into().unwrap();
        flow
    }

    /// The cookies of all entries, in order.
    pub fn cookies(&mut self) -> Vec<u64> {
        let flows = self.flows(FlowStatsRequest::default());
        let mut cookies: Vec<u64> = flows.iter().map(|flow| flow.cookie).collect();
        cookies.sort_unstable();
        cookies
    }

    /// Sums over entries, the marker's among them unless the request leaves it out.
    pub fn aggregate(&mut self, request: FlowStatsRequest) -> AggregateStats {
        match &self.session.ask_parts(&MultipartRequest::Aggregate(request))[..] {
            [MultipartReply::Aggregate(sums)] => *sums,
            other => panic!("{other:?}"),
        }
    }

    /// A group's counters.
    #[track_caller]
    pub fn group(&mut self, id: u32) -> GroupStats {
        let groups = lists!(self, MultipartRequest::Group(GroupId(id)), Group);
        let [group]: [GroupStats; 1] = groups.try_into().unwrap();
        group
    }

    /// A meter's counters.
    #[track_caller]
    pub fn meter(&mut self, id: MeterId) -> MeterStats {
        let meters = lists!(self, MultipartRequest::Meter(id), Meter);
        let [meter]: [MeterStats; 1] = meters.try_into().unwrap();
        meter
    }

    /// Every table's counters.
    pub fn tables(&mut self) -> Vec<TableStats> {
        lists!(self, MultipartRequest::Table, Table)
    }

    /// Every port's description.
    pub fn ports(&mut self) -> Vec<PortDesc> {
        lists!(self, MultipartRequest::PortDesc, PortDesc)
    }

    /// A port's description.
    pub fn port(&mut self, number: u32) -> PortDesc {
        self.ports().into_iter().find(|port| port.number == PortNo(number)).unwrap()
    }

    /// Ports' counters.
    pub fn port_stats(&mut self, number: PortNo) -> Vec<PortStats> {
        lists!(self, MultipartRequest::PortStats(number), PortStats)
    }

    /// The next flow-removed, come already or still to come.
    pub fn flow_removed(&mut self) -> FlowRemoved {
        self.session.wait(|message| match message {
            Message::FlowRemoved(removed) => Some(removed.clone()),
            _ => None,
        })
    }

    /// The flow-removed messages that have come.
    pub fn flows_removed(&mut self) -> Vec<FlowRemoved> {
        self.session.barrier();
        self.session.take(|message| match message {
            Message::FlowRemoved(removed) => Some(removed.clone()),
            _ => None,
        })
    }

    /// The name of a guest's interface.
    pub fn interface(&self, port: u32) -> String {
        format!("s{}p{port}", self.switch.trim_start_matches("sw"))
    }
}
