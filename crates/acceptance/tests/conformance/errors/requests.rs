//! `OFPET_HELLO_FAILED`, `OFPET_BAD_REQUEST`, and the small types of single messages.

use super::modifications::features;
use super::{PERMITTED, Row, elsewhere, encoded, never, patched, raw, refuse, refuse_bytes, sent};
use crate::harness::{Bench, Suite, entry, output, plain_frame};
use openflow::ErrorCode as Code;
use openflow::steering::{HostInfo, Message as SteerMessage};
use openflow::{
    Action, Experimenter, FlowMod, FlowStatsRequest, FragmentMode, HEADER_LEN, Match, Message,
    MultipartRequest, PacketOut, Part, PortConfig, PortFeatures, PortMod, PortNo, Role, RoleMsg,
    SUIRO, SwitchConfig, TableFeatures, TableId, TableMod,
};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

fn ask(body: MultipartRequest) -> Message {
    Message::MultipartRequest(Part::last(body))
}

fn out(in_port: PortNo, buffer_id: Option<u32>, data: Vec<u8>) -> Message {
    Message::PacketOut(PacketOut { buffer_id, in_port, actions: vec![output(2)], data })
}

fn port_mod(bench: &mut Bench, change: impl FnOnce(&mut PortMod)) -> Message {
    let hw_addr = bench.port(2).hw_addr;
    let (config, mask, advertise) =
        (PortConfig::empty(), PortConfig::empty(), PortFeatures::empty());
    let mut made = PortMod { number: PortNo(2), hw_addr, config, mask, advertise };
    change(&mut made);
    Message::PortMod(made)
}

fn role(role: Role, generation_id: u64) -> Message {
    Message::RoleRequest(RoleMsg { role, generation_id })
}

/// The rows.
pub fn rows() -> Vec<Row> {
    [hellos(), requests(), ports(), tables(), others()].into_iter().flatten().collect()
}

fn hellos() -> Vec<Row> {
    vec![
        elsewhere(
            Code::HelloFailedIncompatible,
            "the peer's hello offers no version that suiro speaks, or something else comes first; the connection ends",
            "errors::hello_failed_OFPHFC_INCOMPATIBLE",
        ),
        never(Code::HelloFailedEperm, "who may not connect is refused by TLS, before any hello"),
    ]
}

/// The one error that comes instead of a session.
pub fn hello(suite: &mut Suite) {
    suite.on_node("errors::hello_failed_OFPHFC_INCOMPATIBLE", |node| {
        let bench = node.take();
        let mut stream = UnixStream::connect(node.socket(&bench.switch)).unwrap();
        // OpenFlow 1.1 and nothing else, by bitmap (§7.5.1).
        stream.write_all(&[2, 0, 0, 16, 0, 0, 0, 1, 0, 1, 0, 8, 0, 0, 0, 4]).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let hello = usize::from(u16::from_be_bytes([answer[2], answer[3]]));
        let error = &answer[hello..];
        assert_eq!((error[1], &error[HEADER_LEN..HEADER_LEN + 4]), (1, &[0, 0, 0, 0][..]));
        node.give_back(bench);
    });
}

fn requests() -> Vec<Row> {
    vec![
        sent(
            Code::BadRequestBadVersion,
            "a message of another version than agreed on",
            |bench, code| {
                refuse_bytes(
                    bench,
                    code,
                    [2, 5, 0xff].map(|version| patched(&Message::FeaturesRequest, 0, &[version])),
                );
            },
        ),
        sent(
            Code::BadRequestBadType,
            "a message type that OpenFlow 1.3 does not define, or that only switches send",
            |bench, code| {
                refuse_bytes(bench, code, [30, 35, 255].map(|kind| raw(kind, &[])));
                refuse(bench, code, [Message::BarrierReply]);
            },
        ),
        sent(
            Code::BadRequestBadMultipart,
            "a multipart type that OpenFlow 1.3 does not define, or parts of several types",
            |bench, code| {
                refuse_bytes(
                    bench,
                    code,
                    [raw(18, &[0, 14, 0, 0, 0, 0, 0, 0]), raw(18, &[0xff, 0xfe, 0, 0, 0, 0, 0, 0])],
                );
            },
        ),
        sent(
            Code::BadRequestBadExperimenter,
            "another experimenter's message or multipart, or suiro's where the switch does not let its controllers use them",
            |bench, code| {
                let body =
                    || Experimenter { experimenter: 0x00ab_cdef, exp_type: 1, body: vec![1; 8] };
                refuse(
                    bench,
                    code,
                    [Message::Experimenter(body()), ask(MultipartRequest::Experimenter(body()))],
                );
            },
        ),
        sent(
            Code::BadRequestBadExpType,
            "a message or multipart of suiro's of an unknown type, or one that only a switch sends",
            |bench, code| {
                let of_type =
                    |exp_type| Experimenter { experimenter: SUIRO, exp_type, body: vec![0; 8] };
                let host = SteerMessage::HostInfo(HostInfo::default()).encode();
                refuse(
                    bench,
                    code,
                    [
                        Message::Experimenter(of_type(99)),
                        Message::Experimenter(host),
                        ask(MultipartRequest::Experimenter(of_type(99))),
                    ],
                );
            },
        ),
        never(Code::BadRequestEperm, PERMITTED),
        sent(
            Code::BadRequestBadLen,
            "a message longer or shorter than its type; below 8 bytes the connection ends",
            |bench, code| {
                let stats = encoded(&ask(MultipartRequest::PortStats(PortNo(1))));
                refuse_bytes(
                    bench,
                    code,
                    [raw(5, &[0]), raw(20, &[0; 8]), raw(18, &stats[8..20]), raw(24, &[0; 4])],
                );
            },
        ),
        sent(
            Code::BadRequestBufferEmpty,
            "a buffer that has been used, or whose frame has been dropped since",
            |bench, code| {
                let up = Action::Output { port: PortNo::CONTROLLER, max_len: 20 };
                bench.add(&entry(1, Match::default(), vec![up]));
                let packet = bench.send(1, &plain_frame("kept")).one_packet_in();
                let used = out(PortNo(1), packet.buffer_id, vec![]);
                bench.session.accept(&used);
                refuse(bench, code, [used]);
                assert_eq!(bench.send_all::<&[u8]>(1, &[]).frames, [(2, plain_frame("kept"))]);
            },
        ),
        sent(Code::BadRequestBufferUnknown, "a buffer that was never given", |bench, code| {
            let change = FlowMod { buffer_id: Some(0x1234), ..entry(1, Match::default(), vec![]) };
            refuse(bench, code, [out(PortNo(1), Some(0x1234), vec![]), Message::FlowMod(change)]);
        }),
        sent(
            Code::BadRequestBadTableId,
            "statistics of entries of a table that does not exist",
            |bench, code| {
                let request = FlowStatsRequest { table: TableId(254), ..Default::default() };
                refuse(
                    bench,
                    code,
                    [
                        ask(MultipartRequest::Flow(request.clone())),
                        ask(MultipartRequest::Aggregate(request)),
                    ],
                );
            },
        ),
        sent(Code::BadRequestIsSlave, "a slave asks for a change", |bench, code| {
            bench.session.accept(&role(Role::Slave, u64::MAX));
            refuse(
                bench,
                code,
                [Message::FlowMod(FlowMod::default()), out(PortNo(1), None, plain_frame("slave"))],
            );
            bench.session.accept(&role(Role::Equal, 0));
        }),
        sent(
            Code::BadRequestBadPort,
            "statistics of a port, or a packet-out from one, that is not there",
            |bench, code| {
                let frame = || plain_frame("nowhere");
                let absent =
                    [PortNo(77), PortNo(0), PortNo::TABLE].map(|port| out(port, None, frame()));
                refuse(bench, code, absent);
                refuse(bench, code, [ask(MultipartRequest::PortStats(PortNo(77)))]);
            },
        ),
        sent(
            Code::BadRequestBadPacket,
            "a packet-out whose frame is shorter than an Ethernet header",
            |bench, code| {
                refuse(
                    bench,
                    code,
                    [
                        out(PortNo::CONTROLLER, None, vec![0; 13]),
                        out(PortNo::CONTROLLER, None, vec![]),
                    ],
                );
            },
        ),
        sent(
            Code::BadRequestMultipartBufferOverflow,
            "more than 2 MiB or 16 multipart requests whose last parts have not come",
            |bench, code| {
                let part =
                    |more| Message::MultipartRequest(Part { more, body: MultipartRequest::Desc });
                let begun = 0x7000_0000..0x7000_0010;
                begun.clone().for_each(|xid| bench.session.send_as(xid, &part(true)));
                refuse(bench, code, [part(true)]);
                for xid in begun {
                    bench.session.send_as(xid, &part(false));
                    assert!(matches!(bench.session.answer(xid), Message::MultipartReply(_)));
                }
            },
        ),
    ]
}

fn ports() -> Vec<Row> {
    vec![
        sent(Code::PortModFailedBadPort, "a port that is not there", |bench, code| {
            for number in [PortNo(77), PortNo(0), PortNo::ALL] {
                let change = port_mod(bench, |change| change.number = number);
                refuse(bench, code, [change]);
            }
        }),
        sent(Code::PortModFailedBadHwAddr, "another MAC address than the port's", |bench, code| {
            let change = port_mod(bench, |change| change.hw_addr.0[5] ^= 1);
            refuse(bench, code, [change]);
        }),
        sent(
            Code::PortModFailedBadConfig,
            "a configuration bit that cannot be set",
            |bench, code| {
                let unknown = PortConfig::from_bits_retain(1 << 9);
                let change =
                    port_mod(bench, |change| (change.mask, change.config) = (unknown, unknown));
                refuse(bench, code, [change]);
            },
        ),
        sent(
            Code::PortModFailedBadAdvertise,
            "link features to advertise: virtual links negotiate none",
            |bench, code| {
                let change = port_mod(bench, |change| change.advertise = PortFeatures::FD_1GB);
                refuse(bench, code, [change]);
            },
        ),
        never(Code::PortModFailedEperm, PERMITTED),
        sent(Code::QueueOpFailedBadPort, "queues of a port that is not there", |bench, code| {
            let stats =
                ask(MultipartRequest::Queue { port: PortNo(77), queue: openflow::ALL_QUEUES });
            refuse(bench, code, [Message::QueueGetConfigRequest(PortNo(77)), stats]);
        }),
        sent(
            Code::QueueOpFailedBadQueue,
            "statistics of a queue that is not there",
            |bench, code| {
                refuse(
                    bench,
                    code,
                    [ask(MultipartRequest::Queue { port: PortNo(1), queue: 4242 })],
                );
            },
        ),
        never(Code::QueueOpFailedEperm, PERMITTED),
    ]
}

fn tables() -> Vec<Row> {
    vec![
        sent(Code::TableModFailedBadTable, "a table that does not exist", |bench, code| {
            refuse(bench, code, [Message::TableMod(TableMod { table: TableId(254), config: 0 })]);
        }),
        sent(
            Code::TableModFailedBadConfig,
            "a bit beyond the two that 1.3 has deprecated",
            |bench, code| {
                refuse(bench, code, [Message::TableMod(TableMod { table: TableId(0), config: 4 })]);
            },
        ),
        never(Code::TableModFailedEperm, PERMITTED),
        sent(
            Code::TableFeaturesFailedBadTable,
            "a table that does not exist, or one twice",
            |bench, code| {
                let mut table = features(bench, 0);
                refuse(
                    bench,
                    code,
                    [ask(MultipartRequest::TableFeatures(vec![table.clone(), table.clone()]))],
                );
                table.table = TableId(254);
                refuse(bench, code, [ask(MultipartRequest::TableFeatures(vec![table]))]);
            },
        ),
        never(Code::TableFeaturesFailedBadMetadata, "every table matches and writes all 64 bits"),
        sent(
            Code::TableFeaturesFailedBadType,
            "a property that is unknown, missing or there twice",
            |bench, code| {
                let mut table = features(bench, 0);
                table.properties.remove(0);
                refuse(bench, code, [ask(MultipartRequest::TableFeatures(vec![table]))]);
            },
        ),
        sent(
            Code::TableFeaturesFailedBadLen,
            "lengths that contradict each other",
            |bench, code| {
                let head = [0, 12, 0, 0, 0, 0, 0, 0];
                refuse_bytes(
                    bench,
                    code,
                    [
                        raw(18, &[&head[..], &[0, 63], &[0; 62]].concat()),
                        raw(18, &[&head[..], &[0, 65], &[0; 62]].concat()),
                    ],
                );
            },
        ),
        sent(
            Code::TableFeaturesFailedBadArgument,
            "more than the table can do, or a next table that the pipeline is not to have",
            |bench, code| {
                let table = features(bench, 0);
                let more = TableFeatures { max_entries: u32::MAX, ..table.clone() };
                for table in [more, table] {
                    refuse(bench, code, [ask(MultipartRequest::TableFeatures(vec![table]))]);
                }
            },
        ),
        sent(
            Code::TableFeaturesFailedEperm,
            "a pipeline without table 0, where every packet begins (§5.1)",
            |bench, code| {
                let table = features(bench, 1);
                refuse(bench, code, [ask(MultipartRequest::TableFeatures(vec![table]))]);
            },
        ),
    ]
}

fn others() -> Vec<Row> {
    vec![
        sent(
            Code::SwitchConfigFailedBadFlags,
            "reassembly of fragments, or an unknown flag",
            |bench, code| {
                let config =
                    |fragments| Message::SetConfig(SwitchConfig { fragments, miss_send_len: 128 });
                refuse(bench, code, [config(FragmentMode::Reassemble)]);
                refuse_bytes(bench, code, [patched(&config(FragmentMode::Normal), 8, &[0, 4])]);
            },
        ),
        sent(
            Code::SwitchConfigFailedBadLen,
            "a set-config longer or shorter than it must be",
            |bench, code| {
                refuse_bytes(bench, code, [raw(9, &[0; 2]), raw(9, &[0; 8])]);
            },
        ),
        never(Code::SwitchConfigFailedEperm, PERMITTED),
        sent(
            Code::RoleRequestFailedStale,
            "a master's or slave's generation before one seen already, in circular order",
            |bench, code| {
                // Half the circle on from whatever was seen is the newest that can be.
                for generation in [0, 1 << 62, 1 << 63, 3 << 62, u64::MAX] {
                    bench.session.try_out(&role(Role::Master, generation));
                }
                refuse(bench, code, [role(Role::Master, u64::MAX - 1), role(Role::Slave, 1 << 63)]);
                bench.session.accept(&role(Role::Equal, 0));
            },
        ),
        never(Code::RoleRequestFailedUnsup, "every role is supported"),
        sent(
            Code::RoleRequestFailedBadRole,
            "a role that OpenFlow 1.3 does not define",
            |bench, code| {
                refuse_bytes(bench, code, [patched(&role(Role::Equal, 0), 8, &[0, 0, 0, 4])]);
            },
        ),
    ]
}
