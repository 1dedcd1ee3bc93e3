"""From what was seen to what a page shows. Pure: a picture, its past, what somebody may see, and the time come in.

Numbers of 64 bits leave as text, None stands for what is not known. One module a page.
"""
