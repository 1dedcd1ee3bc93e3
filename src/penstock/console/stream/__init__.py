"""One stream of events for each tab of a browser, which carries everything that tab waits for.

`tab.py` is what waits to be sent to one tab, in bounded memory; `hub.py` has all tabs and hears the samplers.
"""
