"""How far an input came: `progress.py` keeps positions of the log and of tables, and writes them down."""
