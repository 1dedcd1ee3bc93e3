"""The world with transactions: who writes in them and who reads them, and what must hold of all that.

Read `plan.py` (what the seed decides), `ledger.py` (what clients tried and were told), `books.py` (what the logs say:
records, markers, and the states of transactional ids), `readings.py` (what readers were shown, held against both),
`clients.py` (writers that die, are paused and are replaced; copiers; readers), `asking.py` (who asks for stable offsets
all the time), `moments.py` (what goes wrong just when something is being decided), `whims.py` (messages that come late,
each for itself), `oracles.py` (what is held against nodes after every event and at rest) and `transacting.py` (all of
it together).

The numbers of the oracles (T1 to T14) are those of the facts that the coordinator was built from: one outcome (1),
states in their order (2), batches only where the coordinator knows of them (3, 4), the last stable offset (5), what
readers see (6) and aborted lists (7), what was promised (8), fenced producers (9), committed offsets (10), copies (11),
ids and epochs (12), equal producers on all replicas (13), everything ends (14).
"""
