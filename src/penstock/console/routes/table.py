"""All routes of the API, below `/api/v1`."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from penstock.console.answers import answer
from penstock.console.guards import SAFE_METHODS
from penstock.console.routes import (
    access,
    agents,
    changing_access,
    changing_groups,
    changing_topics,
    cluster,
    follow,
    groups,
    pipelines,
    producing,
    records,
    session,
    streaming,
    tables,
    topics,
)
from penstock.console.routes.declaring import Endpoint, check_shape, declared, refuse_unplanned
from penstock.console.routes.desk import Desks
from penstock.console.routes.openapi import description
from penstock.console.routes.reference import reference_page
from penstock.console.routes.rights import RIGHTS
from penstock.console.routes.viewing import viewed
from penstock.console.shell import prefix_of


@declared()
async def get_openapi(request: Request) -> Response:
    """This description of the API."""
    desks: Desks = request.app.state.desks
    return answer(description(TABLE, f"{prefix_of(request.scope, desks.settings.base_path)}/api/v1"))


@declared(answers="text/html")
async def get_reference(request: Request) -> Response:
    """The same as a page to be read."""
    desks: Desks = request.app.state.desks
    prefix = prefix_of(request.scope, desks.settings.base_path)
    page = reference_page(description(TABLE, f"{prefix}/api/v1"), prefix, request.app.state.styles)
    return Response(page, media_type="text/html", headers={"cache-control": "no-cache", "vary": "X-Forwarded-Prefix"})


TABLE: Final[tuple[tuple[str, str, Endpoint], ...]] = (
    ("GET", "/", get_reference),
    ("GET", "/openapi.json", get_openapi),
    ("GET", "/session", session.get_session),
    ("POST", "/login", session.login),
    ("POST", "/logout", session.logout),
    ("GET", "/login/oidc", session.begin_oidc),
    ("GET", "/login/oidc/back", session.finish_oidc),
    ("GET", "/overview", cluster.get_overview),
    ("GET", "/map", cluster.get_map),
    ("GET", "/brokers", cluster.get_brokers),
    ("GET", "/brokers/{id}", cluster.get_broker),
    ("GET", "/brokers/{id}/config", cluster.get_broker_config),
    ("PATCH", "/brokers/{id}/config", changing_topics.change_broker_config),
    ("GET", "/log", cluster.get_log),
    ("GET", "/topics", topics.get_topics),
    ("POST", "/topics", changing_topics.create_topic),
    ("GET", "/topics/{name}", topics.get_topic),
    ("DELETE", "/topics/{name}", changing_topics.delete_topic),
    ("GET", "/topics/{name}/partitions", topics.get_partitions),
    ("GET", "/topics/{name}/consumers", topics.get_consumers),
    ("GET", "/topics/{name}/config", topics.get_topic_config),
    ("PATCH", "/topics/{name}/config", changing_topics.change_topic_config),
    ("GET", "/topics/{name}/access", topics.get_topic_access),
    ("GET", "/topics/{name}/producers", topics.get_producers),
    ("POST", "/topics/{name}/grow", changing_topics.grow_topic),
    ("POST", "/topics/{name}/trim", changing_topics.trim_topic),
    ("POST", "/topics/{name}/elect", changing_topics.elect_leaders),
    ("GET", "/topics/{name}/records", records.get_records),
    ("POST", "/topics/{name}/records", producing.post_records),
    ("POST", "/topics/{name}/read", records.read_records),
    ("GET", "/topics/{name}/records/{partition}/{offset}", records.get_record),
    ("POST", "/topics/{name}/records/{partition}/{offset}/send", producing.send_again),
    ("GET", "/v3/clusters", producing.get_clusters_v3),
    ("POST", "/v3/clusters/{cluster_id}/topics/{name}/records", producing.post_records_v3),
    ("GET", "/groups", groups.get_groups),
    # Names of groups may have slashes: what stands behind a name is looked for first.
    ("POST", "/groups/{name:path}/reset", changing_groups.reset_group),
    ("POST", "/groups/{name:path}/undo", changing_groups.undo_reset),
    ("DELETE", "/groups/{name:path}/offsets", changing_groups.forget_offsets),
    ("GET", "/groups/{name:path}/explain", groups.explain_group),
    ("GET", "/groups/{name:path}", groups.get_group),
    ("DELETE", "/groups/{name:path}", changing_groups.delete_group),
    ("GET", "/transactions", groups.get_transactions),
    ("POST", "/transactions/abort", changing_access.abort_transaction),
    ("GET", "/transactions/{id:path}", groups.get_transaction),
    ("GET", "/pipelines", pipelines.get_pipelines),
    ("POST", "/pipelines/{name:path}/stop", pipelines.stop_pipeline),
    ("POST", "/pipelines/{name:path}/start", pipelines.start_pipeline),
    ("POST", "/pipelines/{name:path}/redrive", pipelines.redrive_pipeline),
    ("GET", "/pipelines/{name:path}", pipelines.get_pipeline),
    ("GET", "/agents", agents.get_agents),
    ("GET", "/follow", follow.follow),
    ("GET", "/tables", tables.get_tables),
    ("POST", "/tables/{name:path}/audit", tables.audit_table),
    ("GET", "/tables/{name:path}", tables.get_table),
    ("POST", "/sql", tables.ask_sql),
    ("GET", "/access", access.get_access),
    ("GET", "/access/explain", access.explain_access),
    ("POST", "/access/acls", changing_access.add_acl),
    ("DELETE", "/access/acls", changing_access.remove_acl),
    ("GET", "/events", streaming.get_events),
    ("POST", "/tabs/{tab}/subscriptions", streaming.subscribe),
    ("DELETE", "/tabs/{tab}/subscriptions/{id}", streaming.unsubscribe),
    ("POST", "/conditions/check", streaming.check_condition),
)


def api_routes() -> list[Route]:
    """One route an address, which knows all its methods: an address that is there is told from one that is not."""
    by_path: dict[str, dict[str, Endpoint]] = {}
    for method, path, endpoint in TABLE:
        by_path.setdefault(path, {})[method] = endpoint
    return [Route(path, _chosen(path, found), methods=list(found)) for path, found in by_path.items()]


def _chosen(path: str, endpoints: dict[str, Endpoint]) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        method = "GET" if request.method == "HEAD" else request.method
        chosen, needs = endpoints[method], RIGHTS.get((method, path))
        if needs is not None and needs.login:
            # Whoever is nobody learns nothing of how to ask.
            desks: Desks = request.app.state.desks
            await desks.owner_of(request)
        if request.method not in SAFE_METHODS:
            await refuse_unplanned(request, chosen)
            await check_shape(request, chosen)
        if needs is not None and needs.views:
            return await viewed(request, chosen)
        return await chosen(request)

    return endpoint
