"""What requests change, as the audit stream tells it."""

from __future__ import annotations

import pytest

from penstock.model.config import AlterOp, ResourceKind
from penstock.model.errors import INVALID_CONFIG, REQUEST_TIMED_OUT
from penstock.protocol.messages.alter_client_quotas import AlterClientQuotasRequest, AlterClientQuotasResponse
from penstock.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
)
from penstock.protocol.messages.create_acls import CreateAclsRequest, CreateAclsResponse
from penstock.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from penstock.protocol.messages.delete_acls import DeleteAclsRequest, DeleteAclsResponse
from penstock.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from penstock.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from penstock.protocol.messages.metadata import MetadataRequest
from penstock.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse
from penstock.protocol.wire import Message
from penstock.security.audit import Resource
from penstock.server.auditing.changes import Change, changes_of

TOPIC = CreateTopicsRequest.CreatableTopic
CONFIG = CreateTopicsRequest.CreatableTopicConfig
ALTERED = IncrementalAlterConfigsRequest.AlterableConfig


def told(request: Message, reply: Message | None, error_code: int = 0) -> list[Change]:
    return list(changes_of(request, reply, error_code))


def test_topics_that_are_made_and_that_are_not() -> None:
    request = CreateTopicsRequest(
        topics=[
            TOPIC(name="a", num_partitions=3, replication_factor=2, configs=[CONFIG(name="retention.ms", value="1")]),
            TOPIC(name="b", num_partitions=1, replication_factor=1),
        ]
    )
    made = CreateTopicsResponse.CreatableTopicResult
    reply = CreateTopicsResponse(topics=[made(name="b", error_code=INVALID_CONFIG.code), made(name="a")])
    assert told(request, reply) == [
        Change(Resource("TOPIC", "a"), 0, ("partitions=3", "replication=2", "retention.ms")),
        Change(Resource("TOPIC", "b"), INVALID_CONFIG.code, ("partitions=1", "replication=1")),
    ]
    assert [each.error_code for each in told(request, None, REQUEST_TIMED_OUT.code)] == [REQUEST_TIMED_OUT.code] * 2


def test_what_is_only_checked_and_what_changes_nothing_is_not_told() -> None:
    assert told(CreateTopicsRequest(topics=[TOPIC(name="a")], validate_only=True), CreateTopicsResponse()) == []
    assert told(MetadataRequest(), None) == []


def test_topics_that_go() -> None:
    gone = DeleteTopicsResponse.DeletableTopicResult
    reply = DeleteTopicsResponse(responses=[gone(name="a")])
    assert told(DeleteTopicsRequest(topic_names=["a"]), reply) == [Change(Resource("TOPIC", "a"), 0, ("deleted",))]
    assert told(DeleteTopicsRequest(topic_names=["a"]), None, 7) == [Change(Resource("TOPIC", "a"), 7, ("deleted",))]


def test_configs_are_told_by_name_and_their_values_never() -> None:
    configs = [
        ALTERED(name="ssl.key.password", config_operation=AlterOp.SET, value="planted"),
        ALTERED(name="retention.ms", config_operation=AlterOp.DELETE, value=None),
        ALTERED(name="cleanup.policy", config_operation=AlterOp.APPEND, value="compact"),
    ]
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=ResourceKind.BROKER, resource_name="1", configs=configs
    )
    result = IncrementalAlterConfigsResponse.AlterConfigsResourceResponse(
        error_message=None, resource_type=ResourceKind.BROKER, resource_name="1"
    )
    (change,) = told(
        IncrementalAlterConfigsRequest(resources=[resource]), IncrementalAlterConfigsResponse(responses=[result])
    )
    assert change.details == ("ssl.key.password", "-retention.ms", "+=cleanup.policy")
    assert change.resource == Resource("BROKER_CONFIG", "1")


def test_users_are_told_by_name_and_mechanism() -> None:
    request = AlterUserScramCredentialsRequest(
        deletions=[AlterUserScramCredentialsRequest.ScramCredentialDeletion(name="bob", mechanism=2)],
        upsertions=[
            AlterUserScramCredentialsRequest.ScramCredentialUpsertion(
                name="alice", mechanism=1, iterations=4096, salt=b"s", salted_password=b"planted"
            )
        ],
    )
    result = AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult
    reply = AlterUserScramCredentialsResponse(results=[result(user="alice"), result(user="bob", error_code=91)])
    assert told(request, reply) == [
        Change(Resource("USER", "alice"), 0, ("set SCRAM-SHA-256",)),
        Change(Resource("USER", "bob"), 91, ("deleted SCRAM-SHA-512",)),
    ]


def test_acls_are_told_whole() -> None:
    words = "ALLOW READ on TOPIC LITERAL 'orders' to User:alice"
    acl = CreateAclsRequest.AclCreation(
        resource_type=2, resource_name="orders", resource_pattern_type=3,
        principal="User:alice", host="*", operation=3, permission_type=3,
    )  # fmt: skip
    reply = CreateAclsResponse(results=[CreateAclsResponse.AclCreationResult()])
    assert told(CreateAclsRequest(creations=[acl]), reply) == [Change(Resource("ACL", "orders"), 0, (words,))]
    gone = DeleteAclsResponse.DeleteAclsMatchingAcl(
        resource_type=2, resource_name="orders", pattern_type=3,
        principal="User:alice", host="*", operation=3, permission_type=3,
    )  # fmt: skip
    removed = DeleteAclsResponse(
        filter_results=[
            DeleteAclsResponse.DeleteAclsFilterResult(matching_acls=[gone]),
            DeleteAclsResponse.DeleteAclsFilterResult(),
        ]
    )
    (change,) = told(DeleteAclsRequest(), removed)
    assert change == Change(Resource("ACL", "orders"), 0, (f"deleted {words}",))


def test_limits_are_told_with_whose_they_are() -> None:
    request = AlterClientQuotasRequest(
        entries=[
            AlterClientQuotasRequest.EntryData(
                entity=[
                    AlterClientQuotasRequest.EntityData(entity_type="user", entity_name="alice"),
                    AlterClientQuotasRequest.EntityData(entity_type="client-id", entity_name=None),
                ],
                ops=[
                    AlterClientQuotasRequest.OpData(key="producer_byte_rate", value=1024.0),
                    AlterClientQuotasRequest.OpData(key="request_percentage", remove=True),
                ],
            )
        ]
    )
    reply = AlterClientQuotasResponse(entries=[AlterClientQuotasResponse.EntryData()])
    assert told(request, reply) == [
        Change(
            Resource("QUOTA", "user=alice,client-id=<default>"), 0, ("producer_byte_rate=1024", "-request_percentage")
        )
    ]


@pytest.mark.parametrize("code", [0, 62])
def test_a_token_is_not_in_what_is_told_of_it(code: int) -> None:
    reply = RenewDelegationTokenResponse(error_code=code)
    (change,) = told(RenewDelegationTokenRequest(hmac=b"planted"), reply)
    assert "planted" not in repr(change)
    assert change.error_code == code
