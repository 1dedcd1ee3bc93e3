"""Who may see a pipeline. Pure.

Its progress names topics and offsets, and its errors may quote records. So it is shown to whom all topics are shown
that it reads; one that reads none, or has not said so yet, to those who may describe the cluster.
"""

from __future__ import annotations

from collections.abc import Iterable

from penstock.console.people.vision import Vision
from penstock.spark.naming import group_of
from penstock.spark.progress.status import PipelineStatus

TABLE: str = "table:"
"""Before the name of a table where that of a topic would be."""


def topics_of(pipeline: PipelineStatus) -> set[str]:
    """What it reads; tables with their mark."""
    return {partition.topic for query in pipeline.queries for partition in query.partitions}


def may_see(vision: Vision, pipeline: PipelineStatus) -> bool:
    if vision.topics is None:
        return True
    topics = topics_of(pipeline)
    if not topics:
        return vision.cluster
    return all(not topic.startswith(TABLE) and vision.topic(topic) for topic in topics)


def groups_of(pipeline: PipelineStatus) -> list[str]:
    """The groups whose offsets its queries move."""
    return [group_of(query.query) for query in pipeline.queries]


def visible(vision: Vision, pipelines: Iterable[PipelineStatus]) -> list[PipelineStatus]:
    return [pipeline for pipeline in pipelines if may_see(vision, pipeline)]
