"""The controller's side of a node, and a broker's side of the controller: decisions run, changes forwarded, a life led.

Read `driver.py` first, then `lifecycle.py` (a broker registers, reports, leaves), `channel.py` and `forwarding.py`.
"""
