"""Partitions that move between brokers: `plan.py` says which (pure), `carrying_out.py` does it under a throttle."""
