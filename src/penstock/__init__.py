"""Penstock: a Kafka-compatible event-streaming platform that installs with pip."""

__version__ = "0.1.0"
