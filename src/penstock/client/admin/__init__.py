"""Administration, typed: topics and what hangs on them. Read `topics.py` first."""

from penstock.client.admin.topics import PartitionInfo, TopicAdmin, TopicInfo

__all__ = ["PartitionInfo", "TopicAdmin", "TopicInfo"]
