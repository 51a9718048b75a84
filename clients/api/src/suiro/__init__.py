"""The API of a suiro node, from Python.

    import suiro

    node = suiro.Node()                       # /run/suiro/api.sock, or what SUIRO_API names
    node.add_switch({"name": "sw0"})
    node.add_port("sw0", {"name": "red", "type": "tap", "netns": "red"})
    node.add_flows("sw0", {"flows": ["priority=10,arp,actions=NORMAL"]})
    for port in node.list_ports("sw0"):
        print(port["name"], port["counters"]["rx_frames"])

A node describes its API itself, as an OpenAPI document, and this client is made from that description when it is first asked: its methods
are the node's operations, whatever its version. `dir(node)` lists them, `help(node.add_port)` says what one takes.
"""

from .errors import NoNode, Refused, SuiroError
from .node import Node

__all__ = ["Node", "NoNode", "Refused", "SuiroError"]
