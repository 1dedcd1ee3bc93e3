"""The suite `durability`: what disks cost, on Penstock and on Apache Kafka.

Read `__main__.py` first: it says which parts there are. `syncs.py` is the price of a sync before every acknowledgement;
`hanging.py` freezes the disk of one node of three for seconds, with `steady.py` as the clients that go on meanwhile and
`story.py` as what the metadata log says afterwards.
"""
