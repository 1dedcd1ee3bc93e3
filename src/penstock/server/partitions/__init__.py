"""The partitions that this node hosts: logs and replication state, and everything that moves them.

Read `hosted.py` (ask, do, tell) and `partition_driver.py` first, then `producing/`, `fetching/`, `following/`; what
time does to logs is in `upkeep/`.
"""
