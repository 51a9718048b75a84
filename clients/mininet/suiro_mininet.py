"""Mininet's switches by suiro: `mn --custom suiro_mininet.py --switch suiro`.

A switch of Mininet becomes a switch of the node of this host, and its links become `af_packet` ports. If no node runs, the first
switch starts one, which the last switch ends. Environment: SUIRO names the command (default: suiro), SUIRO_API the node's socket.
"""

import json
import os

from mininet.node import Switch
from mininet.util import quietRun

SUIRO = os.environ.get('SUIRO', 'suiro')
SOCKET = os.environ.get('SUIRO_API', '/run/suiro/api.sock')


class SuiroSwitch(Switch):
    """A switch of the node. Parameters, as in `--switch suiro,failMode=standalone`:

    failMode: secure (default), or standalone: a learning switch where no controller is.
    portType: af_packet (default), or af_xdp.
    protocols: OpenFlow versions, such as 1.0 (default: 1.0 and 1.3, as the controller asks).
    """

    dpidLen = 16
    started = None  # The process of the node that we started.
    running = 0

    def __init__(self, name, failMode='secure', portType='af_packet', protocols=None, **params):
        self.failMode, self.portType, self.protocols = failMode, portType, protocols
        Switch.__init__(self, name, **params)

    @classmethod
    def setup(cls):
        """Mininet calls it before the first switch is made."""
        if quietRun([SUIRO, '--version']).strip() == '':
            raise SystemExit(f'*** {SUIRO}: no such command; install suiro, or name the command in SUIRO')

    @classmethod
    def ensureNode(cls, node):
        """Starts a node if none answers."""
        out, err, code = node.pexec([SUIRO, '--json', '--api', SOCKET, 'status'])
        if not code:
            return
        directory = os.path.dirname(SOCKET)
        where = ['--run-dir', directory]
        if directory != '/run/suiro':
            where += ['--state-dir', os.path.join(directory, 'state')]
        out, err, code = node.pexec([SUIRO, 'node', '--background', *where])
        if code:
            raise Exception(f'suiro node: {err or out}')
        cls.started = int(json.loads(node.pexec([SUIRO, '--json', '--api', SOCKET, 'status'])[0])['pid'])

    def suiro(self, *arguments):
        """Runs a command of suiro; what it printed."""
        out, err, code = self.pexec([SUIRO, '--api', SOCKET, *arguments])
        if code:
            raise Exception(f'suiro {" ".join(arguments)}: {err or out}')
        return out

    def start(self, controllers):
        """Makes the switch with its ports. Controllers come last: they see it whole."""
        cls = type(self)
        if not cls.running:
            cls.ensureNode(self)
        cls.running += 1
        made = ['--protocols', self.protocols] if self.protocols else []
        self.suiro('switch', 'add', self.name, '--dpid', self.dpid, '--fail-mode', self.failMode, *made)
        for number, interface in self.intfs.items():
            if interface.name != 'lo':
                self.attach(interface, number)
        called = [word for c in controllers for word in ('--controller', f'tcp:{c.IP()}:{c.port}')]
        if called:
            self.suiro('switch', 'mod', self.name, *called)

    def attach(self, interface, number=None):
        """Gives the switch an interface, as `attach` of Mininet's own switches."""
        name = getattr(interface, 'name', interface)
        numbered = ['--number', str(number)] if number else []
        self.suiro('port', 'add', self.name, name, '--type', self.portType, '--interface', name, *numbered)

    def detach(self, interface):
        """Takes an interface away again."""
        self.suiro('port', 'del', self.name, getattr(interface, 'name', interface))

    def connected(self):
        """Whether a controller has the switch, or none is to have it; `waitConnected` asks."""
        shown = json.loads(self.suiro('--json', 'switch', 'show', self.name))
        return not shown['controllers'] or any(one['state'] == 'connected' for one in shown['endpoints'])

    def dpctl(self, *arguments):
        """`dpctl` of Mininet: ovs-ofctl at the switch's management socket."""
        socket = f'unix:{os.path.dirname(SOCKET)}/{self.name}.mgmt'
        version = 'OpenFlow10' if self.protocols == '1.0' else 'OpenFlow13'
        return quietRun(['ovs-ofctl', '-O', version, arguments[0], socket, *arguments[1:]])

    def stop(self, deleteIntfs=True):
        """Removes the switch, and with the last one the node, if we started it."""
        self.suiro('switch', 'del', self.name)
        super().stop(deleteIntfs)
        cls = type(self)
        cls.running -= 1
        if not cls.running and cls.started:
            os.kill(cls.started, 15)
            cls.started = None


switches = {'suiro': SuiroSwitch}
