"""The soak: a node that works for half an hour at 70 % of what it can, beside everybody who would use it.

Duty: `python -m bench.soak --minutes 30` (make bench SUITE=soak MINUTES=30) starts one node, writers and groups of two
client libraries, a Spark query into a lake table and a probe of latency, finds the most that this mix carries, runs it
at 70 % of that and judges what it saw.

    who          mix.py the writers, groups and topics; writing.py, reading.py, query.py, probe.py their processes
    talk         lines.py a party's side of its pipes, party.py ours
    numbers      numbered.py what a record says of itself, and who may come after whom
    the run      stage.py node and parties; looking.py a look.py a second; ramp.py the most that is carried
    the judge    verdict.py (pure), page.py

Read first: `mix`, then `verdict`.
Invariants: every process started here is stopped, and every directory removed, also on failure; every record has a
number of its writer, and a reader that misses one, or sees one again at another offset, makes the run fail; an error
of anybody does too.
"""
