"""What is not in the examples: later versions, bytes that end too early, foreign messages."""

import pytest
from os_ken.ofproto import ofproto_protocol, ofproto_v1_3

import suiro_openflow as suiro
from suiro_openflow import bytes as bytes_, values
from test_examples import CORE, HOST, PLACEMENT, VM

EVERY = [HOST, VM, CORE, PLACEMENT, values.VmStatus(values.DELETED, VM), values.PlaceMod(fields={"ip_frag": (1, 1)})]


@pytest.mark.parametrize("value", EVERY, ids=lambda value: type(value).__name__)
def test_bytes_that_end_too_early_are_refused_in_words(value):
    packed = value.pack()
    for end in range(len(packed) - 8):
        with pytest.raises(bytes_.Truncated, match="disagree about the extension's version"):
            type(value).unpack(packed[:end])


def test_what_a_later_version_appends_to_an_element_is_skipped():
    longer = values.HostCore(0, numa=0, vms=[1]).pack() + bytes(8)
    longer = len(longer).to_bytes(2, "big") + longer[2:]
    one, rest = bytes_.element(longer + b"rest", "a core")
    assert (values.HostCore.unpack(one), rest) == (values.HostCore(0, numa=0, vms=[1]), b"rest")


def test_a_later_head_of_a_host_is_skipped():
    packed = bytearray(HOST.pack())
    packed[2:4] = (40).to_bytes(2, "big")
    assert values.HostInfo.unpack(bytes(packed[:32]) + bytes(8) + bytes(packed[32:])) == HOST


def test_numbers_that_are_not_known_stay_numbers():
    assert values.name(values.REASONS, 4) == "priority"
    assert values.name(values.REASONS, 77) == "77"


def test_messages_of_others_are_none_of_ours():
    datapath = ofproto_protocol.ProtocolDesc(version=ofproto_v1_3.OFP_VERSION)
    parser = datapath.ofproto_parser
    assert suiro.read(parser.OFPExperimenter(datapath, 0x2320, 0, b"")) is None
    assert suiro.read(parser.OFPHello(datapath)) is None


def test_texts_for_people():
    assert str(values.Place()) == "place(core=auto)"
    assert str(values.Place(3)) == "place(core=3)"
    assert str(values.Place(values.AUTO, True, True)) == "place(core=auto,priority,own)"
    assert str(VM.addresses[0]) == "10.0.0.1"
    assert str(values.VmAddress(6, 64, bytes.fromhex("fd") + bytes(15))) == "fd00::/64"
    assert str(values.VmAddress(1, 48, bytes([2, 0, 0, 0, 0, 1]) + bytes(10))) == "02:00:00:00:00:01"
