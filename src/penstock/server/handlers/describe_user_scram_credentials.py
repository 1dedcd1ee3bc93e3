"""DescribeUserScramCredentials (50), version 0. Who can log in by SCRAM: mechanisms and iterations, never keys.

Behaviour: answered from this node's own image; no list of users, or an empty one, means all of them. A user without
credentials is RESOURCE_NOT_FOUND, one that is asked for twice DUPLICATE_RESOURCE.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from penstock.model.errors import CLUSTER_AUTHORIZATION_FAILED, DUPLICATE_RESOURCE, RESOURCE_NOT_FOUND
from penstock.protocol.messages.describe_user_scram_credentials import DescribeUserScramCredentialsResponse
from penstock.server.doors import Operation, ResourceType

if TYPE_CHECKING:
    from penstock.protocol.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest
    from penstock.server.doors import Context

Result = DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult
Info = DescribeUserScramCredentialsResponse.CredentialInfo


def handle(ctx: Context, request: DescribeUserScramCredentialsRequest) -> DescribeUserScramCredentialsResponse:
    asked = Counter(user.name for user in request.users or ())
    if not ctx.allow(Operation.DESCRIBE, ResourceType.CLUSTER):
        error, why = CLUSTER_AUTHORIZATION_FAILED.code, "Cluster authorization failed."
        return DescribeUserScramCredentialsResponse(
            error_code=error,
            error_message=why,
            results=[Result(error_code=error, error_message=why) for _ in request.users or ()],
        )
    known: dict[str, list[Info]] = {}
    for (mechanism, name), credential in sorted(ctx.node.metadata.image.scram.items()):
        known.setdefault(name, []).append(Info(mechanism=mechanism, iterations=credential.iterations))
    wanted = asked or dict.fromkeys(sorted(known), 1)
    return DescribeUserScramCredentialsResponse(
        error_message=None, results=[_result(name, times, known.get(name)) for name, times in wanted.items()]
    )


def _result(name: str, times: int, infos: list[Info] | None) -> Result:
    if times > 1:
        why = f"Cannot describe SCRAM credentials for the same user twice in a single request: {name}"
        return Result(user=name, error_code=DUPLICATE_RESOURCE.code, error_message=why)
    if infos is None:
        why = f"Attempt to describe a user credential that does not exist: {name}"
        return Result(user=name, error_code=RESOURCE_NOT_FOUND.code, error_message=why)
    return Result(user=name, error_message=None, credential_infos=infos)
