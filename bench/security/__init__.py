"""The suite `security`: what TLS costs beside Apache Kafka with the same cipher, and what rights and limits cost.

Read `__main__.py` first; `load.py` is the client that all brokers are measured with.
"""
