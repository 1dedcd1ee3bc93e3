"""The `penstock` command: parses, calls, prints. One module per command group, imported when it is chosen.

Data goes to standard output, words to standard error. Exit codes: 0 ok, 1 failed, 2 usage, 3 not found, 4 not
allowed, 5 unreachable, 10 unhealthy. Read `main.py` first, then `output.py`.
"""
