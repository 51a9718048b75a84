"""Structures with fixed heads, and lists of elements that begin with their length."""

import struct


class Truncated(ValueError):
    """Bytes end before what they should hold does."""

    def __init__(self, what):
        super().__init__(f"{what} ends too early: the switch and this package disagree about the extension's version")


def head(layout, data, what):
    """The values at the beginning of `data`, laid out as `layout` says."""
    if len(data) < layout.size:
        raise Truncated(what)
    return layout.unpack_from(data)


def element(data, what):
    """The element that `data` begins with, and what follows it."""
    (length,) = head(_LENGTH, data, what)
    if not _LENGTH.size <= length <= len(data):
        raise Truncated(what)
    return data[:length], data[length:]


def elements(data, what):
    """Every element of `data`."""
    found = []
    while data:
        one, data = element(data, what)
        found.append(one)
    return found


def sized(body):
    """An element of `body`, whose first two bytes are for the length: padded to 8 bytes."""
    body += bytes(-len(body) % 8)
    return _LENGTH.pack(len(body)) + body[_LENGTH.size:]


def numbers(data, count, what):
    """`count` numbers of 16 bits."""
    return list(head(struct.Struct(f"!{count}H"), data, what))


def text(data):
    """The text in a place that zeros fill."""
    return data.split(b"\0", 1)[0].decode("utf-8", "replace")


_LENGTH = struct.Struct("!H")
