"""Syslog over UDP, TCP and TLS: RFC 3164 as it is found in the wild, RFC 5424, and both framings of RFC 6587.

    datagrams ─▶ udp.py ──────────────┐
    streams ─▶ framing.py (pure) ─────┴▶ parsing.py (pure): fields ─▶ portion ─▶ channel

Invariants: no bytes make the parser raise; what it does not understand goes on as it is, marked and counted; a message
over the bound is cut, marked and counted; TCP senders wait when there is no room, UDP senders cannot, so what the
kernel had to drop is counted and told. Begin with `parsing.py`, then `input.py`.
"""
