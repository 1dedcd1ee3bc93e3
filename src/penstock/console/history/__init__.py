"""The past of a cluster that outlives a console: the topic `__penstock_history`, a record a minute.

`minutes.py` says what a record's bytes mean (pure); `keeping.py` reads a day of them back when a console starts, and
writes them as long as it is the one of several consoles that does. Whatever goes wrong here costs charts their past,
and nothing else.
"""
