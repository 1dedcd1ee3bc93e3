"""Small worlds of ACLs: few names, hosts and principals, so that random ACLs meet random questions often."""

from __future__ import annotations

from hypothesis import strategies as st

from penstock.metadata.image import ClusterImage
from penstock.model.ids import Epoch, Offset, Uuid
from penstock.model.security import Operation, PatternType, Permission, Principal, ResourceType
from penstock.protocol.disk.metadata_security import RemoveAccessControlEntryRecord
from penstock.security.acls import AclEntry, record_of

NAMES = ("a", "ab", "abc", "b", "*", "hardcode", "hard", "__penstock_x", "__penstock_", "__", "__cluster_metadata")
PRINCIPALS = ("User:alice", "User:bob", "User:*", "Group:*", "Group:alice", "User:a:b")
HOSTS = ("*", "10.0.0.1", "10.0.0.2")
TYPES = (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER, ResourceType.TRANSACTIONAL_ID)
OPERATIONS = tuple(Operation)[2:]


def uuid_of(number: int) -> Uuid:
    return Uuid((number + 1000).to_bytes(16, "big"))


def allow(operation: Operation, name: str, to: str = "User:alice", **said: object) -> AclEntry:
    return _entry(Permission.ALLOW, operation, name, to, **said)


def deny(operation: Operation, name: str, to: str = "User:alice", **said: object) -> AclEntry:
    return _entry(Permission.DENY, operation, name, to, **said)


def _entry(permission: Permission, operation: Operation, name: str, to: str, **said: object) -> AclEntry:
    entry = AclEntry(ResourceType.TOPIC, name, PatternType.LITERAL, to, "*", operation, permission)
    if "type" in said:
        said["resource_type"] = said.pop("type")
    return entry._replace(**said)  # type: ignore[arg-type]  # the tests say what the tuple has


def image_with(*entries: AclEntry) -> ClusterImage:
    image = ClusterImage()
    for number, entry in enumerate(entries):
        image.apply(record_of(uuid_of(number), entry), Offset(number), Epoch(1))
    return image


def add(image: ClusterImage, number: int, entry: AclEntry) -> None:
    image.apply(record_of(uuid_of(number), entry), Offset(image.offset + 1), Epoch(1))


def remove(image: ClusterImage, number: int) -> None:
    image.apply(RemoveAccessControlEntryRecord(id=uuid_of(number)), Offset(image.offset + 1), Epoch(1))


entries = st.builds(
    AclEntry,
    st.sampled_from(TYPES),
    st.sampled_from(NAMES),
    st.sampled_from((PatternType.LITERAL, PatternType.PREFIXED)),
    st.sampled_from(PRINCIPALS),
    st.sampled_from(HOSTS),
    st.sampled_from(OPERATIONS),
    st.sampled_from((Permission.DENY, Permission.ALLOW)),
)

questions = st.tuples(
    st.sampled_from((Principal("User", "alice"), Principal("User", "bob"), Principal("Group", "alice"))),
    st.sampled_from(HOSTS[1:]),
    st.sampled_from(OPERATIONS),
    st.sampled_from(TYPES),
    st.sampled_from(("a", "ab", "abcd", "b", "*", "*x", "__penstock_x", "__cluster_metadata", "zz")),
)
