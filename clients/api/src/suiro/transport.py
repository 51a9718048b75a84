"""HTTP over the unix socket of a node."""

import http.client
import json
import os
import socket

from .errors import NoNode, Refused

SOCKET = "/run/suiro/api.sock"
# Beside it, for those who may only look.
READERS = "read.sock"


class _Connection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("suiro", timeout=timeout)
        self._path = path

    def connect(self):
        try:
            self.sock = _connected(self._path, self.timeout)
        except PermissionError:
            try:
                self.sock = _connected(os.path.join(os.path.dirname(self._path), READERS), self.timeout)
            except OSError:
                raise NoNode(f"connect to {self._path}: permission denied (run as root, as a member of its group, or of [node] read_group)") from None
        except OSError as error:
            raise NoNode(f"connect to {self._path}: {error.strerror} (start a node: suiro node --background, or name its socket by SUIRO_API)") from None


def _connected(path, timeout):
    there = socket.socket(socket.AF_UNIX)
    there.settimeout(timeout)
    try:
        there.connect(path)
    except OSError:
        there.close()
        raise
    return there


class Transport:
    """One request, one answer."""

    def __init__(self, path, timeout):
        self.path = path or os.environ.get("SUIRO_API") or SOCKET
        self._timeout = timeout

    def ask(self, method, target, body=None):
        """The answer's JSON, its text where it is none, None where there is nothing to say."""
        with self.open(method, target, body) as answer:
            data = answer.read()
            if not data:
                return None
            is_json = answer.headers.get_content_type() == "application/json"
            return json.loads(data) if is_json else data.decode()

    def open(self, method, target, body=None, timeout=None):
        """The answer, to be read as it comes."""
        connection = _Connection(self.path, timeout or self._timeout)
        data = None if body is None else json.dumps(body).encode()
        headers = {} if data is None else {"content-type": "application/json"}
        connection.request(method, target, data, {"connection": "close", **headers})
        answer = connection.getresponse()
        if answer.status < 400:
            return answer
        with answer:
            text = answer.read()
        try:
            told = json.loads(text)
        except ValueError:
            told = {"error": {"thing": "node", "step": f"{method} {target}", "cause": f"HTTP status {answer.status}", "remedy": "is this the socket of a suiro node?"}}
        raise Refused(answer.status, told)
