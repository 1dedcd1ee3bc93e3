"""Apache Kafka's answers and ours, request by request: what is drawn, asked, compared, and allowed to differ.

`drawing.py` draws requests from the declarations, with values that `world.py` knows to be of interest; `duo.py` asks
both brokers; `comparing.py` finds what differs; `deviations.py` says which differences there may be, and where the
limits page says so.
"""
