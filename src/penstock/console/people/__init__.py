"""Who asks: with whose rights the cluster is asked, and what of the common picture they may see.

`vision.py` is what somebody may see, `acting.py` the clients that act as one person.
"""
