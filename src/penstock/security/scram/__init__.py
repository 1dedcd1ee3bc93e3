"""SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802 and 7677, Kafka's KIP-84): logins without sending a password.

Neither side says more than the other can check: the client proves that it has the password, the server that it has the
keys made of it. Nonces and salts are given by the caller, PBKDF2 is handed out (`exchange.Derive`).

Read `keys.py` (mechanisms, what is stored of a password), `messages.py` (the four texts), `server.py`, `client.py`.
"""
