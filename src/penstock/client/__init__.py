"""The asking side of Penstock: what reaches a broker, ours or anybody's, over the Kafka protocol.

Floor 5, asyncio; imports transport and below, never server. Read `cluster_view.py` first (who is there and how to
reach them), then `admin/`.
"""
