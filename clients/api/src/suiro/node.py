"""A node, whose methods are the operations that it describes."""

import inspect
import json
from urllib.parse import quote, urlencode

from .transport import Transport

_METHODS = ("get", "put", "post", "patch", "delete")
# A node that has nothing to tell says so every 15 seconds.
_EVENTS_TIMEOUT = 60


class Node:
    """A suiro node at a unix socket.

    socket: its path; else what SUIRO_API names, else /run/suiro/api.sock.
    timeout: seconds that the node may be silent.

    Each operation of the node's OpenAPI document is a method. Its arguments are what stands in the path, then `body` if it takes one;
    what stands in the query is given by name. It returns the answer's JSON, and raises `Refused` or `NoNode`.
    """

    def __init__(self, socket=None, timeout=15):
        self._transport = Transport(socket, timeout)
        self._operations = None

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            operation = self._described()[name]
        except KeyError:
            raise AttributeError(f"the node at {self._transport.path} has no operation {name}") from None
        setattr(self, name, operation)
        return operation

    def __dir__(self):
        return sorted({*super().__dir__(), *self._described()})

    def events(self, since="now", follow=True):
        """What happens on the node, as it happens: the events that come after number `since`.

        since: a number (the last one that was seen), "now", or "oldest" for all that the node has kept.
        follow: go on with what comes; else end with what is there.
        Yields dictionaries with `revision`, `kind`, `change`, `text` and more; {"gone": …} if some of them are no longer kept.
        """
        target = "/v1/events?" + urlencode({"since": since, "follow": str(bool(follow)).lower()})
        with self._transport.open("GET", target, timeout=_EVENTS_TIMEOUT) as answer:
            kind = None
            for line in answer:
                name, _, value = line.decode().rstrip("\r\n").partition(": ")
                if name == "event":
                    kind = value
                elif name == "data" and kind == "change":
                    yield json.loads(value)
                elif name == "data" and kind == "gone":
                    yield {"gone": json.loads(value)}

    def _described(self):
        if self._operations is None:
            document = self._transport.ask("GET", "/v1/openapi.json")
            self._operations = {
                described["operationId"]: _operation(self._transport, method, path, described)
                for path, methods in document["paths"].items()
                for method, described in methods.items()
                if method in _METHODS
            }
        return self._operations


def _operation(transport, method, path, described):
    """A function that asks for one operation."""
    parameters = described.get("parameters", [])
    in_path = [one["name"] for one in parameters if one["in"] == "path"]
    in_query = [one["name"] for one in parameters if one["in"] == "query"]
    signature = inspect.Signature(
        [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in in_path]
        + ([inspect.Parameter("body", inspect.Parameter.POSITIONAL_OR_KEYWORD)] if "requestBody" in described else [])
        + [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None) for name in in_query]
    )

    def ask(*args, **kwargs):
        given = signature.bind(*args, **kwargs).arguments
        target = path.format(**{name: quote(str(given[name]), safe="") for name in in_path})
        query = {name: _word(given[name]) for name in in_query if given.get(name) is not None}
        return transport.ask(method.upper(), target + ("?" + urlencode(query) if query else ""), given.get("body"))

    ask.__name__ = ask.__qualname__ = described["operationId"]
    ask.__signature__ = signature
    ask.__doc__ = _doc(method, path, described, parameters)
    return ask


def _word(value):
    return str(value).lower() if isinstance(value, bool) else value


def _doc(method, path, described, parameters):
    lines = [described.get("summary", ""), "", f"{method.upper()} {path}"]
    lines += [f"{one['name']}: {one.get('description', '')}".rstrip(": ") for one in parameters]
    content = described.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    if "$ref" in content:
        lines.append(f"body: a {content['$ref'].rsplit('/', 1)[-1]}, as a dictionary (docs/reference/openapi.json)")
    return "\n".join(lines)
