"""Flows of data declared in a TOML file: checked, run, watched, stopped, begun again.

    flow.py          what a file says, as values          retrying.py     how long to wait before trying again; pure
    positions.py     where in the file each key stands    session.py      the Spark session a flow asks for
    mistakes.py      what is wrong, with its place        starts.py       where a sink begins when it has no checkpoint
    fields.py        keys and their kinds                 building.py     flow → DataFrames and queries
    reading.py       text → flow, all mistakes at once    running.py      all queries of a flow, each on its own
    sql_names.py     tables that an SQL text reads        driver.py       the process that has the Spark session
    validation.py    names, circles, targets              supervising.py  the process that keeps the driver alive
    deep_check.py    what only Spark can tell             home.py         what is kept of pipelines on this machine
    resetting.py     forgetting checkpoints               backfilling.py  a part of the past, once
    starting_file.py a first file                         view.py         what people see of a running flow

May import the rooms below, `penstock.spark.progress` and, where they act, Spark. Reading and validating need neither
Spark nor Java.

Invariants: one sink is one Spark query with its own checkpoint, and its failure never stops another; a sink that is a
lake table never doubles or skips records, whatever happens to its checkpoint; one name runs once on a machine; nothing
but `reset` ever removes a checkpoint.

Read `flow.py` first, then `reading.py`, `building.py`, `running.py`.
"""
