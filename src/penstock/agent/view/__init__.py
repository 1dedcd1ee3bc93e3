"""What people see of a running agent: a live table on a terminal, lines elsewhere, JSON for programs.

Everything is drawn from snapshots (`penstock.agent.admin.snapshot`), so an agent in another process looks the same.
rich is imported only when a terminal is drawn on. Begin with `views.py`.
"""
