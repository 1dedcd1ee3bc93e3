"""Lines over TCP: `nc`, log shippers, programs that write to a socket.

An event is a line that is not empty; the last one may lack its line break when the connection ends. A line over
`line_bytes_max` is cut, marked and counted. Without room nobody's bytes are read, so senders wait. TCP tells a sender
only that its bytes reached this machine: what is under way when the agent ends is lost, which is why HTTP is the better
way in.

`kind.py` reads the settings and is the input; framing is `inputs/lines.py`, connections `inputs/streams.py`.
"""
