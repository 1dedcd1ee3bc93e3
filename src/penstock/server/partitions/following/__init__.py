"""Replicas that follow: one fetcher a leader, and what its answers do to the logs here."""
