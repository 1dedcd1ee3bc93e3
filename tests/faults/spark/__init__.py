"""Exactly once into lake tables, whoever dies: drivers killed, commits that fail, tasks retried, disks full.

`strikes` is the lake sink that dies or fails at a chosen point, `driver` a Spark driver as a process of its own,
`tables` reads a table with libraries that are not ours and compares it with its topic, `standalone` is a Spark cluster
on the loopback. A few rounds run in `make test`, all of them in `make soak PART=spark`.
"""
