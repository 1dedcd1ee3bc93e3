"""Dead letters back to their topic, after a mend: each letter once, whoever is killed.

    records.py      a letter as the record that it was (pure)      marks.py    which letters were sent (pure)
    marks_topic.py  where that is kept                              topic.py    letters of a topic
    table.py        letters of a table                              driving.py  sends them

A letter and the mark that it was sent are in one transaction: the mark is a record of the compacted topic
`__penstock_redrive`. Whoever begins fences whoever was at the same letters before, then reads all marks, waiting for
what the other one left behind. So a letter whose mark is there was sent, one whose mark is not there was not, and
nothing in between can be seen.

Of a topic's letters the mark is how far they were read, by the topic they came from; a letter that a batch brought
twice lies near its twin, and the second one is passed over. Of a table's letters, which has each once and in no order,
each has a mark.

Imports `client` and `values`; pyspark nowhere. Read `driving.py` first.
"""
