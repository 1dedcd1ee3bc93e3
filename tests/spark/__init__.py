"""Tests on a real Spark: one session and one broker for all of them. Wait for conditions, never sleep."""
