"""OAUTHBEARER (RFC 7628, Kafka's KIP-255 and 768): logins by a JSON Web Token that an identity provider signed.

Fails closed: without keys nothing is accepted, `none` and shared-secret algorithms never, and an algorithm only with a
key of its kind. No library is imported here: signatures are checked by a `Signatures` that is passed in
(`signatures.py` has the one that uses `cryptography`).

Read `messages.py` (the SASL texts and both sides of the exchange), `jws.py` (a token taken apart, algorithm and key),
`claims.py` (who it is for, from when to when), `jwks.py` (when keys are fetched again), `validation.py` (all of it).
"""
