"""What a running agent tells others: metrics, health and status over HTTP, and one picture of it for views.

`snapshot.py` is that picture, plain data that JSON carries; pages, terminal views and `penstock agent status` are drawn
from it alone. `verdicts.py` says in sentences what is wrong with it, `metrics.py` prints it for Prometheus, `port.py`
serves all of them. Imports the agent's own types and its HTTP server; nobody in `inputs`, `outlet` or `settings`
imports this. Begin with `snapshot.py`.
"""
