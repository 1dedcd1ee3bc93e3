"""What is done to a cluster and said about it, for command line and console alike: no click, no HTTP, no screen.

`health.py` says why a cluster is not healthy, `diagnosis/` what else is wrong with it, `held_back.py` which
transactions hold readers back, `explaining/` why a group is behind; `group_plans.py` and `moving/` make plans that can
be looked at before they are carried out; `records/` is how records are written as text and read again. Judgements are
pure functions of what an Admin was told; `look`, `examine` and `carry_out` do the asking. Read `health.py` first.
"""
