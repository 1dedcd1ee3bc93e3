"""Who asks: with whose rights the cluster is asked, and what of the common picture they may see.

    vision.py    what somebody may see (pure)      seeing.py    asks brokers for it, as that very person
    acting.py    the clients that act as one       sessions.py  who is logged in, and until when
    logins.py    a password or a token of an identity provider becomes a delegation token of that person
    oidc.py      the way to an identity provider and back   proxies.py   who a reverse proxy says it is
    undoing.py   positions before they were moved

No password and no access token is kept: what is kept is a delegation token (KIP-48), which ends with the session. What
somebody may do is decided by brokers and nobody else. Read `sessions.py` first.
"""
