"""Transactions of hostile clients, put to Apache Kafka and to us: what is asked, compared, and allowed to differ.

`scripts/` is the table: bad and odd inputs of every API, out of order, malformed and fenced, in every version.
`stage.py` asks both brokers, `looking.py` looks at what a script left behind, `deviations.py` says which differences
there may be and where the limits page says so.
"""
