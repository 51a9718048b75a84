"""Events of `suiro_openflow.app`, for os-ken applications to handle with `set_ev_cls`."""

from os_ken.controller import event


class _Event(event.EventBase):
    def __init__(self, datapath, xid):
        super().__init__()
        self.datapath = datapath
        self.xid = xid


class HostInfo(_Event):
    """`host`: what the host is, an answer or news."""

    def __init__(self, datapath, xid, host):
        super().__init__(datapath, xid)
        self.host = host


class VmStatus(_Event):
    """`reason` and `vm`: news of a machine."""

    def __init__(self, datapath, xid, status):
        super().__init__(datapath, xid)
        self.reason = status.reason
        self.vm = status.vm


class VmInfo(_Event):
    """`vms`: all that were asked for."""

    def __init__(self, datapath, xid, vms):
        super().__init__(datapath, xid)
        self.vms = vms


class CoreStats(_Event):
    """`cores`: all that were asked for."""

    def __init__(self, datapath, xid, cores):
        super().__init__(datapath, xid)
        self.cores = cores


class PlacementStats(_Event):
    """`placements`: all that were asked for."""

    def __init__(self, datapath, xid, placements):
        super().__init__(datapath, xid)
        self.placements = placements


class Refused(_Event):
    """`error`: why a request of the extension was refused. Standard errors come as os-ken's EventOFPErrorMsg."""

    def __init__(self, datapath, xid, error):
        super().__init__(datapath, xid)
        self.error = error
