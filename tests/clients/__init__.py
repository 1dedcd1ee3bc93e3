"""Foreign clients, unchanged, against a running node.

Duty: each claim of `test_*` is made once and holds for confluent-kafka, kafka-python and aiokafka, with their default
settings and again with idempotence. Read `interface` first: it is what a claim may ask of a client.
May import: the clients, and the judge's own words of the protocol in `tests.compat.wire`; nothing of penstock.
PENSTOCK_TEST_BOOTSTRAP points the suite at any other broker, Apache Kafka for one, which judges the suite itself.
"""
