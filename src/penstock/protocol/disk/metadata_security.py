"""Metadata-log records about access rules, SCRAM credentials and delegation tokens."""

from __future__ import annotations

from penstock.model.ids import Uuid
from penstock.protocol.wire import array, bytes_, int8, int32, int64, message, string, uuid


@message(key=18, kind="metadata", versions="0", flexible="0+")
class AccessControlEntryRecord:
    id: Uuid = uuid()
    resource_type: int = int8()
    resource_name: str = string()
    pattern_type: int = int8()
    principal: str = string()
    host: str = string()
    operation: int = int8()
    permission_type: int = int8()


@message(key=19, kind="metadata", versions="0", flexible="0+")
class RemoveAccessControlEntryRecord:
    id: Uuid = uuid()


@message(key=11, kind="metadata", versions="0", flexible="0+")
class UserScramCredentialRecord:
    name: str = string()
    mechanism: int = int8()
    salt: bytes = bytes_(secret=True)
    stored_key: bytes = bytes_(secret=True)
    server_key: bytes = bytes_(secret=True)
    iterations: int = int32()


@message(key=22, kind="metadata", versions="0", flexible="0+")
class RemoveUserScramCredentialRecord:
    name: str = string()
    mechanism: int = int8()


@message(key=10, kind="metadata", versions="0", flexible="0+")
class DelegationTokenRecord:
    owner: str = string()
    requester: str = string()
    renewers: list[str] = array(string)
    issue_timestamp: int = int64()
    max_timestamp: int = int64()
    expiration_timestamp: int = int64()
    token_id: str = string()


@message(key=26, kind="metadata", versions="0", flexible="0+")
class RemoveDelegationTokenRecord:
    token_id: str = string()
