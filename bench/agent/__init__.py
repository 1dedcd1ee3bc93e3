"""The suite `agent`: files, syslog and HTTP into a node, beside rsyslog; many quiet files; and a burst into the lake.

Read first: `__main__` (what is measured), then `contenders` (who is measured) and `course` (how one run is watched).
`lines` makes what is written, `writer` and `senders` are processes that write and send at a rate, `tailing`, `quiet`,
`network` and `burst` are the parts, `charts` draws courses over time, `profile` tells where the agent's time goes,
`page` writes it down.
Nothing of penstock is imported: the agent, the node and the pipeline are run by their commands, and what arrived is
counted by the broker's own offsets and the table's own log.
"""
