"""The ACLs of an image, arranged so that a decision looks at those of one principal and one resource only.

The index is a pure function of the image's ACLs. Following deltas must end where building anew ends, whatever the
order: ACLs were once lost in Kafka while another was removed (CVE-2024-27309), because what was kept about a resource
went with one of its entries.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from penstock.model.security import PatternType, ResourceType
from penstock.security.acls import ANY_NAME, AclEntry, entry_of

if TYPE_CHECKING:
    from penstock.metadata.delta import Delta
    from penstock.metadata.image import ClusterImage
    from penstock.model.ids import Uuid
    from penstock.protocol.disk.metadata_security import AccessControlEntryRecord

ByPrincipal = dict[str, list[AclEntry]]
"""Entries by principal. The lists are sorted, and hold an entry as often as there are ids for it."""

_NONE: Mapping[str, list[AclEntry]] = {}


class AclIndex:
    """ACLs by resource and principal. `entries` may be read freely; `see`, `forget` and `follow` alone change it."""

    __slots__ = ("_by_type", "_lengths", "_literal", "_prefixed", "entries")

    def __init__(self) -> None:
        self.entries: dict[Uuid, AclEntry] = {}
        self._literal: dict[tuple[int, str], ByPrincipal] = {}
        self._prefixed: dict[tuple[int, str], ByPrincipal] = {}
        self._by_type: dict[int, ByPrincipal] = {}
        # How many names each length has among the prefixes of a type: a look-up tries only lengths that exist.
        self._lengths: dict[int, dict[int, int]] = {}

    @classmethod
    def of(cls, acls: Mapping[Uuid, AccessControlEntryRecord]) -> AclIndex:
        """The index of an image's ACLs, built anew."""
        index = cls()
        for acl_id, record in acls.items():
            index.see(acl_id, entry_of(record))
        return index

    def follow(self, image: ClusterImage, delta: Delta) -> None:
        """Takes over what changed in the image's ACLs."""
        for acl_id in delta.acls:
            record = image.acls.get(acl_id)
            if record is None:
                self.forget(acl_id)
            else:
                self.see(acl_id, entry_of(record))

    def see(self, acl_id: Uuid, entry: AclEntry) -> None:
        """There is this ACL under this id, whatever was there before."""
        before = self.entries.get(acl_id)
        if before == entry:
            return
        if before is not None:
            self.forget(acl_id)
        self.entries[acl_id] = entry
        by_resource = self._of_pattern(entry.pattern)
        if by_resource is not None:
            key = (entry.resource_type, entry.name)
            if key not in by_resource and entry.pattern == PatternType.PREFIXED:
                self._count_length(entry, 1)
            _put(by_resource.setdefault(key, {}), entry)
        _put(self._by_type.setdefault(entry.resource_type, {}), entry)

    def forget(self, acl_id: Uuid) -> None:
        """There is no ACL under this id."""
        entry = self.entries.pop(acl_id, None)
        if entry is None:
            return
        by_resource = self._of_pattern(entry.pattern)
        if by_resource is not None:
            key = (entry.resource_type, entry.name)
            if _take(by_resource[key], entry):
                del by_resource[key]
                if entry.pattern == PatternType.PREFIXED:
                    self._count_length(entry, -1)
        if _take(self._by_type[entry.resource_type], entry):
            del self._by_type[entry.resource_type]

    # Asking

    def candidates(self, resource_type: ResourceType, name: str) -> Iterator[ByPrincipal]:
        """The entries of every pattern that covers a resource: its own name, prefixes of it, the long ones first, `*`.

        An empty answer means that no ACL of anybody is about the resource.
        """
        found = self._literal.get((resource_type, name))
        if found is not None:
            yield found
        for length in self._lengths.get(resource_type, ()):
            if length <= len(name):
                found = self._prefixed.get((resource_type, name[:length]))
                if found is not None:
                    yield found
        if name != ANY_NAME:
            found = self._literal.get((resource_type, ANY_NAME))
            if found is not None:
                yield found

    def of_type(self, resource_type: ResourceType) -> Mapping[str, list[AclEntry]]:
        """Every entry about resources of a type, by principal."""
        return self._by_type.get(resource_type, _NONE)

    def __contains__(self, entry: AclEntry) -> bool:
        entries = self.of_type(entry.resource_type).get(entry.principal, [])
        at = bisect_left(entries, entry)
        return at < len(entries) and entries[at] == entry

    def __len__(self) -> int:
        return len(self.entries)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AclIndex):
            return NotImplemented
        return all(getattr(self, part) == getattr(other, part) for part in AclIndex.__slots__)

    __hash__ = None  # type: ignore[assignment]  # an index changes

    # Arranging

    def _of_pattern(self, pattern: PatternType) -> dict[tuple[int, str], ByPrincipal] | None:
        match pattern:
            case PatternType.LITERAL:
                return self._literal
            case PatternType.PREFIXED:
                return self._prefixed
            case _:
                # A pattern of a later release: kept and told, but it covers nothing.
                return None

    def _count_length(self, entry: AclEntry, names: int) -> None:
        counts = self._lengths.get(entry.resource_type, {})
        counts[len(entry.name)] = counts.get(len(entry.name), 0) + names
        left = {length: counts[length] for length in sorted(counts, reverse=True) if counts[length]}
        if left:
            self._lengths[entry.resource_type] = left
        else:
            self._lengths.pop(entry.resource_type, None)


def _put(by_principal: ByPrincipal, entry: AclEntry) -> None:
    insort(by_principal.setdefault(entry.principal, []), entry)


def _take(by_principal: ByPrincipal, entry: AclEntry) -> bool:
    """Takes out one such entry; whether nothing is left."""
    entries = by_principal[entry.principal]
    del entries[bisect_left(entries, entry)]
    if not entries:
        del by_principal[entry.principal]
    return not by_principal
