"""Agents, as their admin ports tell of them and as `__penstock_agent` does.

    asking.py      asks the admin ports that the console was given        answering.py   one such port, blocking
    positions.py   follows the topic on which exactly-once agents keep positions, wherever they run

May be seen by whoever may DESCRIBE the cluster: agents name files and machines, which no topic's rule covers.
"""
