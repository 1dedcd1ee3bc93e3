"""The stream of audit events: what is told (`changes.py`, `stream.py`), and the file it is told to (`file.py`)."""
