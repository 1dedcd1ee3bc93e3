"""The demo that `make demo` runs. `__main__.py` tells the story, `checks.py` says what makes it a success."""
