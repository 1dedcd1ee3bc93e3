"""How much a client may use: whose limit holds, what was used, and how long to wait.

`entities.py` says what a limit can be set on and what a valid one is, `limits.py` which one holds for a request,
`rate.py` and `tokens.py` measure as Kafka does, `buckets.py` keeps a bounded number of measures, `clients.py` charges
connections, `describing.py` answers DescribeClientQuotas. A charge is a few float operations on a bucket that its
connection holds; limits and names are looked at when a bucket is fetched.
"""
