"""The other end of tests/scapy.rs: scapy's ESP. Each line of input is a request, each line of output its answer.

seal KEY SPI SEQUENCE ESN TUNNEL PAYLOAD   an ESP packet, without its UDP header, with an IPv4 packet's payload in it
open KEY SPI SEQUENCE ESN TUNNEL PACKET    what scapy finds inside, from the inner UDP header on

Keys and packets are hexadecimal, the salt behind the key; ESN and TUNNEL are 0 or 1; SEQUENCE has 64 bits.
"""

import sys

from scapy.layers.inet import IP, UDP
from scapy.layers.ipsec import ESP, SecurityAssociation

ENDS = {"src": "192.0.2.1", "dst": "192.0.2.2"}


def association(key, spi, esn, tunnel):
    return SecurityAssociation(
        ESP, spi=int(spi), crypt_algo="AES-GCM", crypt_key=bytes.fromhex(key), esn_en=esn == "1",
        tunnel_header=IP(**ENDS) if tunnel == "1" else None, nat_t_header=UDP(sport=4500, dport=4500))


def seal(key, spi, sequence, esn, tunnel, payload):
    low, high = int(sequence) & 0xFFFFFFFF, int(sequence) >> 32
    packet = IP(**ENDS) / UDP(bytes.fromhex(payload))
    sealed = association(key, spi, esn, tunnel).encrypt(packet, seq_num=low, esn=high)
    return bytes(sealed[ESP])


def opened(key, spi, sequence, esn, tunnel, packet):
    outer = IP(**ENDS, proto=17) / UDP(sport=4500, dport=4500) / ESP(bytes.fromhex(packet))
    return bytes(association(key, spi, esn, tunnel).decrypt(outer, esn=int(sequence) >> 32)[UDP])


for line in sys.stdin:
    verb, *words = line.split()
    print({"seal": seal, "open": opened}[verb](*words).hex(), flush=True)
