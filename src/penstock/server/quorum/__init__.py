"""The metadata log among the nodes: who leads it, its copies, its snapshots, and the image that is published from it.

Read `core.py` first (effects of the pure `penstock.quorum` in order), then `driver.py`, `log.py` and
`metadata_driver.py`.
"""
