"""The examples of docs/reference/openflow-extension.md, encoded and decoded byte by byte, through os-ken's own parsers."""

import pathlib
import re

import pytest
from os_ken.ofproto import ofproto_parser, ofproto_protocol, ofproto_v1_0, ofproto_v1_3

import suiro_openflow as suiro
from suiro_openflow import envelope, steering, values

PAGE = pathlib.Path(__file__).parents[3] / "docs" / "reference" / "openflow-extension.md"
VERSIONS = {"1.0": ofproto_v1_0.OFP_VERSION, "1.3": ofproto_v1_3.OFP_VERSION}


def examples():
    for name, version, block in re.findall(r"```hex (\w+) ([\d.]+)\n(.*?)```", PAGE.read_text(), re.S):
        digits = "".join(line.split("#")[0] for line in block.splitlines())
        yield name, version, bytes.fromhex(digits)


EXAMPLES = {(name, version): data for name, version, data in examples()}


class Datapath(ofproto_protocol.ProtocolDesc):
    """A datapath that keeps what is sent."""

    def __init__(self, version, xid=0):
        super().__init__(version=VERSIONS[version])
        self.xid = xid
        self.sent = []

    def set_xid(self, msg):
        msg.set_xid(self.xid)

    def send_msg(self, msg):
        msg.serialize()
        self.sent.append(bytes(msg.buf))


VM = values.Vm(
    vm_id=1, tenant=7, port=3, found=True, cores=[0],
    addresses=[values.VmAddress(4, 32, bytes([10, 0, 0, 1]) + bytes(12))], name="vm1")
HOST = values.HostInfo(
    version=1, threshold=500, abilities=values.MEASURES | values.PROGRAM, policy="vse",
    cores=[values.HostCore(0, numa=0, vms=[1]), values.HostCore(1, numa=0)],
    interfaces=[values.HostInterface("eth0", 2, 1, 1, values.XDP_NATIVE, "veth")])
FIELDS = {"eth_type": 0x0800, "ipv4_src": "10.0.0.1", "vm_id": 1}
CORE = values.CoreStats(
    core=1, load=[10, 500, 0, 0], other=20, units=3, frames=1_000_000,
    busy_ns=[10_000_000, 1_000_000_000, 0, 0])
PLACEMENT = values.PlacementStats(
    kind=0, reason=4, core=1, wanted=1, place=values.Place(priority=True), priority=100, vm_id=1, unit=9, moves=2,
    cookie=0x11, packets=1_000_000, bytes=1_000_000_000, age_ns=1_000_000_000, interface="eth0", fields=FIELDS)

# What the switch sends, and what it says.
SAID = {
    "host_info": HOST, "vm_status": values.VmStatus(values.ADDED, VM), "vm_info_reply": [VM], "core_stats_reply": [CORE],
    "placement_stats_reply": [PLACEMENT],
}
# What a controller sends, and how.
ASKED = {
    "host_info_request": lambda s: s.request_host_info(),
    "subscribe": lambda s: s.subscribe(),
    "place_mod_add": lambda s: s.add(FIELDS, values.Place(priority=True), priority=100, cookie=0x11),
    "place_mod_delete": lambda s: s.delete(cookie=0x11, cookie_mask=2**64 - 1, interface="eth0"),
    "vm_info_request": lambda s: s.request_vm_info(),
    "core_stats_request": lambda s: s.request_core_stats(),
    "placement_stats_request": lambda s: s.request_placement_stats(steering.ENTRIES, 0x11, 2**64 - 1),
}


def decoded(version, data):
    kind, length, xid = data[1], int.from_bytes(data[2:4], "big"), int.from_bytes(data[4:8], "big")
    return ofproto_parser.msg(Datapath(version), VERSIONS[version], kind, length, xid, data)


def cases(names):
    return [pytest.param(*key, id=" ".join(key)) for key in EXAMPLES if key[0] in names]


@pytest.mark.parametrize("name, version", cases(SAID))
def test_what_a_switch_says_is_read(name, version):
    data = EXAMPLES[name, version]
    exp_type, value = suiro.read(decoded(version, data))
    assert value == SAID[name]
    packed = b"".join(one.pack() for one in value) if isinstance(value, list) else value.pack()
    assert data.endswith(packed)
    kinds = envelope.MULTIPARTS if isinstance(value, list) else envelope.MESSAGES
    assert exp_type in kinds


@pytest.mark.parametrize("name, version", cases(ASKED))
def test_what_a_controller_says_is_written(name, version):
    data = EXAMPLES[name, version]
    datapath = Datapath(version, int.from_bytes(data[4:8], "big"))
    ASKED[name](suiro.Steering(datapath))
    assert datapath.sent == [data]


def flow(version, xid, match, actions):
    datapath = Datapath(version, xid)
    ofp, parser = datapath.ofproto, datapath.ofproto_parser
    if version == "1.0":
        message = parser.OFPFlowMod(
            datapath, parser.OFPMatch(**match), 0, ofp.OFPFC_ADD, priority=0x8000, actions=actions(datapath))
    else:
        apply = [parser.OFPInstructionActions(ofp.OFPIT_APPLY_ACTIONS, actions(datapath))]
        message = parser.OFPFlowMod(
            datapath, match=parser.OFPMatch(**match), priority=0x8000, out_port=ofp.OFPP_ANY, out_group=ofp.OFPG_ANY,
            instructions=apply)
    message.set_xid(xid)
    message.serialize()
    return bytes(message.buf)


def output(datapath):
    return datapath.ofproto_parser.OFPActionOutput(2, 0)


FLOWS = {
    ("set_fcf", "1.3"): (8, {"eth_type": 0x0800}, lambda dp: [dp.ofproto_parser.OFPActionSetField(fcf=3), output(dp)]),
    ("set_fcf", "1.0"): (8, {"dl_type": 0x0800}, lambda dp: [suiro.set_fcf(dp, 3), output(dp)]),
    ("set_priority_bit", "1.3"): (9, {"eth_type": 0x0800}, lambda dp: [suiro.set_fcf(dp, 1, 1), output(dp)]),
    ("match_priority_bit", "1.3"): (10, {"eth_type": 0x0800, "fcf": (1, 1)}, lambda dp: [output(dp)]),
    ("place_action", "1.3"): (11, {"eth_type": 0x0800}, lambda dp: [suiro.Place(own=True).action(dp)]),
}


@pytest.mark.parametrize("name, version", FLOWS)
def test_fields_and_actions_are_written_in_flow_mods(name, version):
    written, wanted = flow(version, *FLOWS[name, version]), EXAMPLES[name, version]
    if version == "1.0":
        # Of a word of wildcards, os-ken sets bits that suiro leaves alone: both mean the same match.
        written, wanted = written[:8] + written[12:], wanted[:8] + wanted[12:]
    if name == "match_priority_bit":
        # os-ken puts experimenters' fields first; the order says nothing.
        wanted = wanted[:52] + wanted[58:68] + wanted[52:58] + wanted[68:]
    assert written == wanted


def test_actions_are_read():
    actions = {
        "place_action": suiro.Place(own=True),
        "set_priority_bit": ("fcf", 1, 1),
    }
    for name, wanted in actions.items():
        message = decoded("1.3", EXAMPLES[name, "1.3"])
        assert suiro.read_action(message.instructions[0].actions[0]) == wanted
    message = decoded("1.0", EXAMPLES["set_fcf", "1.0"])
    assert suiro.read_action(message.actions[0]) == ("fcf", 3, 0xFF)
    assert suiro.read_action(message.actions[1]) is None
    assert decoded("1.3", EXAMPLES["match_priority_bit", "1.3"]).match["fcf"] == (1, 1)


def test_an_error_is_read_in_words():
    exp_type, error = suiro.read(decoded("1.3", EXAMPLES["error_unknown_interface", "1.3"]))
    assert (exp_type, error.code) == ("error", 2)
    assert "suiro steer attach" in error.what


def test_every_example_is_tested():
    tested = {*SAID, *ASKED, "error_unknown_interface"}
    assert {key for key in EXAMPLES if key[0] not in tested} == set(FLOWS)
    assert len(EXAMPLES) >= 18
