"""The stream of audit events: what is told (`changes.py`, `stream.py`), and where it goes.

Each way out has a bounded queue (`outlet.py`): the file (`file.py`), and the topic (`topic.py`), which is written as
`topic_plan.py` says.
"""
