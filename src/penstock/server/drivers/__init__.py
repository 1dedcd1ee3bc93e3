"""Where decisions meet the world: drivers own logs, waits, timers and tasks; they decide nothing.

Every driver asks a pure room, does what it says on the log, and tells the pure room what became true, with no `await`
in between. Read `hosted.py` and `partition_driver.py` first, then `produce_driver.py`, `fetch_driver.py` and
`controller_driver.py`.
"""
