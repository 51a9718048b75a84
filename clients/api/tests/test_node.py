"""Against a real node: SUIRO_API names its socket."""

import inspect
import os

import pytest

import suiro


@pytest.fixture
def node():
    assert os.environ.get("SUIRO_API"), "run a node, and let SUIRO_API name its socket"
    node = suiro.Node()
    yield node
    for switch in node.list_switches():
        node.remove_switch(switch["name"])


def test_what_is_made_is_there_changes_and_goes(node):
    assert node.add_switch({"name": "sw0", "fail_mode": "secure"})["name"] == "sw0"
    port = node.add_port("sw0", {"name": "red", "type": "tap"})
    assert (port["number"], port["type"]) == (1, "tap")
    assert node.add_flows("sw0", {"flows": ["priority=7,arp,actions=output:red"]}) == {"applied": 1}
    (flow,) = node.list_flows("sw0", filter="arp")["flows"]
    assert (flow["priority"], flow["actions"]) == (7, "output:1")
    assert node.list_flows("sw0", filter="udp")["flows"] == []
    assert node.change_port("sw0", "red", {"mtu": 1400})["mtu"] == 1400
    assert node.put_queue("sw0", "red", 5, {"max_rate": "10M"})["id"] == 5
    assert node.remove_port("sw0", "red") is None
    assert node.list_ports("sw0") == []
    assert 'name = "sw0"' in node.export()["text"]


def test_a_refusal_says_what_is_wrong_and_what_to_do(node):
    with pytest.raises(suiro.Refused) as refused:
        node.show_switch("absent")
    assert refused.value.status == 404
    assert {"thing", "step", "cause", "remedy"} <= refused.value.error.keys()
    assert "absent" in str(refused.value)
    node.remove_switch("absent", if_exists=True)


def test_names_that_are_no_path_stay_names(node):
    with pytest.raises(suiro.Refused) as refused:
        node.show_switch("../node?x=1")
    assert refused.value.status == 404


def test_the_node_describes_its_operations(node):
    assert {"add_port", "list_steer_flows", "why_steer", "put_part"} <= set(dir(node))
    assert str(inspect.signature(node.add_port)) == "(switch, body, *, may_exist=None)"
    assert "POST /v1/switches/{switch}/ports" in node.add_port.__doc__
    with pytest.raises(TypeError):
        node.add_port("sw0")
    with pytest.raises(AttributeError, match="no operation fly"):
        node.fly


def test_events_come_once_and_in_order(node):
    since = max([event["revision"] for event in node.events(since="oldest", follow=False)], default="oldest")
    node.add_switch({"name": "sw1"})
    events = node.events(since=since)
    first = next(event for event in events if event["kind"] == "switch")
    assert (first["switch"], first["change"]) == ("sw1", "added")
    node.remove_switch("sw1")
    last = next(event for event in events if event["kind"] == "switch" and event["change"] == "removed")
    assert last["revision"] > first["revision"]


def test_where_no_node_is_the_error_says_how_to_start_one(tmp_path):
    with pytest.raises(suiro.NoNode, match="suiro node --background"):
        suiro.Node(str(tmp_path / "api.sock")).list_switches()
