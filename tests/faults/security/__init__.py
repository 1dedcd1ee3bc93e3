"""Clusters of real processes that let nobody in unasked, hurt under load, and judged: nothing lost, nobody let in.

Duty: three nodes whose listeners are all SASL_SSL, those between nodes with certificates on both sides; the faults of
`tests.faults.cluster` (processes and links) beside those of security: certificates renewed, authorities rotated, rights
and passwords changed while nodes crash; strangers who knock all the time; and the way of an open cluster to a secured
one, as the guide has it.
May import: what `tests.faults.cluster` may, and that.
Read `entry` (a judge's own way in), `cluster`, `intruders`, `rights`, `faults` and `test_faults`.
"""
