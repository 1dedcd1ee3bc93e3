"""Who may do what: rules, users, limits, and why."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from penstock.client.errors import ClientError
from penstock.console.answers import answer
from penstock.console.failures import declined
from penstock.console.routes.declaring import declared
from penstock.console.routes.desk import desk_of
from penstock.console.routes.shapes import Permission
from penstock.console.views.access import acl_items, quota_items, user_items, verdict
from penstock.model.errors import SECURITY_DISABLED


async def get_access(request: Request) -> Response:
    """What one right is missing for does not hide the rest."""
    admin = (await desk_of(request)).acting.admin
    told: dict[str, Any] = {"enabled": True, "acls": [], "users": [], "quotas": [], "failed": {}}
    try:
        told["acls"] = acl_items(await admin.describe_acls())
    except ClientError as failure:
        if failure.error is SECURITY_DISABLED:
            told["enabled"] = False
        else:
            told["failed"]["acls"] = declined(failure).told()
    try:
        told["users"] = user_items((await admin.describe_scram_users()).done)
    except ClientError as failure:
        told["failed"]["users"] = declined(failure).told()
    try:
        told["quotas"] = quota_items(await admin.describe_quotas())
    except ClientError as failure:
        told["failed"]["quotas"] = declined(failure).told()
    return answer({**told, "command": "penstock acl list"})


@declared(query=Permission)
async def explain_access(request: Request) -> Response:
    query = request.query_params
    try:
        acls = await (await desk_of(request)).acting.admin.describe_acls()
    except ClientError as failure:
        if failure.error is not SECURITY_DISABLED:
            raise
        return answer(
            {"allowed": True, "by": None, "why": "the cluster has no authorizer: whoever reaches it may do it"}
        )
    return answer(
        verdict(
            acls,
            query.get("principal", ""),
            query.get("operation", ""),
            query.get("resource", ""),
            query.get("name") or "kafka-cluster",
            query.get("host") or "127.0.0.1",
        )
    )
