"""Flows of data declared in a TOML file: checked, run, watched, stopped, begun again.

    the file   flow.py what it says, as values; reading.py text → flow, all mistakes at once; fields.py keys and kinds;
               positions.py, mistakes.py where what is wrong; sql_names.py tables that SQL reads; validation.py names,
               circles, targets; table_pattern.py, sharing.py many tables, shared queries; store_settings.py [storage]
               and [catalog]; option_check.py options, by those who serve them; sql_check.py SQL and columns, by Spark's
               analyzer alone; deep_check.py what only Spark can tell of it all; starting_file.py a first file
    tables     table_sources.py a table as a source, as the file says it; following.py at work; references.py
               tables that steps join
    rules      expectations.py as the file says them; rule_check.py whether they are SQL; expecting.py at work;
               rule_letters.py rows that break them
    planning   wiring.py flow → options; retrying.py how long to wait (`penstock.spark.reasons`: why it failed)
    at work    session.py the Spark it asks for; mirroring.py checkpoints that outlive this machine; starts.py where a
               sink begins without one; holding.py whether a topic stands where a table does; releasing.py what it
               leaves open; building.py flow → DataFrames and queries; functions.py the user's; records.py
               rows for topics; running.py all queries, each on its own; backfilling.py a part of the past, once
    batches    batches.py what a sink does with one that it is handed; handing.py into a table; together.py many sinks
               of one query; fanning.py many tables of one sink
    processes  driver.py has the session; preflight.py what brokers tell before; telling.py what the cluster is told;
               supervising.py keeps the driver alive; home.py what is kept on this machine; places.py checkpoint files
    made anew  renewing.py a table beside the old one, by the file of now; swapping.py into its place;
               cures.py what there is to do about a sink that failed
    for people view.py how it is doing; lag.py how far it is behind, now; freshness.py how old what waits is, and
               watching.py who looks; objectives.py what is promised, checking.py whether it is kept; admin_port.py and
               metrics.py for machines; listing.py here and elsewhere; resetting.py forgetting checkpoints; auditing.py
               the proof of exactly-once topics; redriving.py dead letters back to their topic

May import the rooms below, `penstock.spark.progress` and, where they act, Spark. Reading and validating need neither
Spark nor Java.

Invariants: one sink, or the sinks that say they stand together, is one Spark query with its own checkpoint, and its
failure never stops another; a sink that is a lake table never doubles or skips records, whatever happens to its
checkpoint; one name runs once on a machine; nothing but `reset` ever removes a checkpoint.

Read `flow.py` first, then `reading.py`, `building.py`, `running.py`.
"""
