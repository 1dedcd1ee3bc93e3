"""The suite `console`: what the web console costs beside a very large cluster, and what it costs a node.

`world.py` measures a console beside 200 brokers that answer as large ones do, `node.py` a real node that a console
looks at, `measured.py` is the console in a process of its own that counts how long its loop was held, `page.py` writes
what was found.
"""
