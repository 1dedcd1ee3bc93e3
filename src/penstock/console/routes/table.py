"""All routes of the API, below `/api/v1`."""

from __future__ import annotations

from starlette.routing import Route

from penstock.console.routes import access, cluster, groups, session, streaming, topics


def api_routes() -> list[Route]:
    """Names of topics and groups may have anything in them but a slash, which topics never have."""
    return [
        Route("/session", session.get_session),
        Route("/overview", cluster.get_overview),
        Route("/map", cluster.get_map),
        Route("/brokers", cluster.get_brokers),
        Route("/brokers/{id}", cluster.get_broker),
        Route("/brokers/{id}/config", cluster.get_broker_config),
        Route("/log", cluster.get_log),
        Route("/topics", topics.get_topics),
        Route("/topics/{name}", topics.get_topic),
        Route("/topics/{name}/partitions", topics.get_partitions),
        Route("/topics/{name}/consumers", topics.get_consumers),
        Route("/topics/{name}/config", topics.get_topic_config),
        Route("/topics/{name}/access", topics.get_topic_access),
        Route("/topics/{name}/producers", topics.get_producers),
        Route("/groups", groups.get_groups),
        Route("/groups/{name:path}", groups.get_group),
        Route("/transactions", groups.get_transactions),
        Route("/transactions/{id:path}", groups.get_transaction),
        Route("/access", access.get_access),
        Route("/access/explain", access.explain_access),
        Route("/events", streaming.get_events),
    ]
