"""Records as text, both ways: where to read (`-o`), how to print and how to parse (`-f`), JSON lines.

Pure: no clock, no terminal, no network; streams and the time come in as arguments. The grammar of offsets and of
formats is rpk's, which people know; where it leaves something open, the module says what holds here.

Read `offsets.py` first, then `layout.py` (what `-f` means), `writing.py` and `reading.py` (its two sides),
`json_lines.py`.
"""
