"""What every input that reads files needs: lines from bytes, inflating, positions that are safe, troubles told once.

`lines.py` makes lines of bytes and says where each begins; `inflating.py` reads gzip and zstd in bounded memory;
`ledger.py` knows up to where all is acknowledged; `troubles.py` tells what is wrong once, not every second. Knows no
channel and no kind of input. Begin with `lines.py`.
"""
