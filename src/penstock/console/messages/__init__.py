"""Records: pages of them, the newest as they come, a search through them, and new ones.

    places.py    where to begin: an offset, a time ...    cursors.py   where a page ended, as text (pure)
    merging.py   many partitions as one page (pure)       showing.py   bytes as what they are (pure)
    arriving.py, arriving_v3.py   records that come over HTTP (pure)
    reading.py   exact ranges through a consumer          pages.py     one page
    searching.py, tailing.py   what a tab waits for       thread.py    a loop of its own for pages and tails
    searchers.py, searcher.py  processes that search      turns.py     how much is read at once

Everything is read with the rights of the person who looks. Nothing is joined, nothing is committed. Read `pages.py`.
"""
