"""Where clients come in: listeners, TLS and logins, connections, the way from a frame to its handler and back, and what
is counted, charged and allowed.

Read `connection.py` first, with `gate.py` (what may start in which state) and `exchange.py` (one request), then
`dispatch.py`; `entrance.py` leads to TLS (`tls_door.py`) and logins (`login.py`, `logins.py`); `authorize.py` and
`quotas.py` say who may do what, and how much. `server/doors.py` says what a handler is given.
"""
