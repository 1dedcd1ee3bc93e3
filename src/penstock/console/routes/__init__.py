"""What is asked for by address: a module a page's data. A route parses, asks the picture or the cluster, and answers.

`table.py` is all of them; `desk.py` is what every route has at hand.
"""
