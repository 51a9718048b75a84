"""Why there is no answer."""


class SuiroError(Exception):
    """Any error of this package."""


class NoNode(SuiroError):
    """Nobody answers at the socket."""


class Refused(SuiroError):
    """The node refused, and says everything that it found wrong."""

    def __init__(self, status, body):
        self.status = status
        """The HTTP status."""
        self.error = body.get("error", {})
        """What is told first: `thing`, `step`, `cause`, `remedy`."""
        self.others = body.get("others", [])
        """What was found wrong beside it."""
        super().__init__("; ".join(map(_line, [self.error, *self.others])))


def _line(fault):
    """A fault as the suiro command prints it."""
    return "{thing}: {step}: {cause} ({remedy})".format_map({"thing": "?", "step": "?", "cause": "?", "remedy": "?", **fault})
