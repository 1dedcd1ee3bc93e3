"""Lines that belong together become one event: stack traces, panics, whatever a pattern says.

Pure: lines with their positions and the time go in, events with their positions come out. Nothing is dropped: an event
that grows too large goes on as it is and the rest begins another. `rules.py` says which line belongs to the one before,
`gathering.py` keeps the event that is not complete yet, `reading.py` reads the settings. Begin with `rules.py`.
"""

from penstock.agent.multiline.gathering import Event, Gatherer
from penstock.agent.multiline.reading import Multiline, read_multiline

__all__ = ["Event", "Gatherer", "Multiline", "read_multiline"]
