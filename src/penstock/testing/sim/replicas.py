"""Looking into nodes from outside: what their drivers hold, and the bytes of their logs."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

from penstock.kernels import read_header, scan_batches
from penstock.protocol.batch import read_records

if TYPE_CHECKING:
    from penstock.coordinators.groups.shard import GroupShard
    from penstock.coordinators.transactions.shard import TransactionShard
    from penstock.kernels import Record
    from penstock.quorum.node import QuorumNode
    from penstock.server.node import Node
    from penstock.server.partitions.following.fetcher import FollowerFetcher
    from penstock.server.partitions.hosted import Hosted
    from penstock.server.partitions.partition_driver import PartitionDriver
    from penstock.server.quorum.driver import QuorumDriver
    from penstock.server.quorum.metadata_driver import MetadataDriver
    from penstock.storage.log import Log

READ_BYTES = 1 << 20
CONTROL_BIT = 0x20


def quorum_of(node: Node) -> QuorumDriver | None:
    """The quorum driver, once the node has built it."""
    return None if node._control is None else node._control.quorum


def metadata_of(node: Node) -> MetadataDriver | None:
    return None if node._control is None else node._control.metadata


def partitions_of(node: Node) -> PartitionDriver | None:
    """The partitions of a broker, once it has built them; a controller alone has none."""
    return None if node._broker is None else node._broker.partitions


def fetchers_of(node: Node) -> list[FollowerFetcher]:
    """Whoever fetches for the partitions that a broker follows."""
    return [] if node._broker is None else list(node._broker.followers._fetchers.values())


def voter_of(quorum: QuorumDriver) -> QuorumNode | None:
    """The pure machine under the driver, once it was started."""
    return quorum._node


def metadata_log(quorum: QuorumDriver) -> Log | None:
    return quorum._log._log


class Piece(NamedTuple):
    """One batch as it lies in a log: offsets [base, end), its leader's epoch, and what its bytes come to."""

    base: int
    end: int
    epoch: int
    digest: bytes


def pieces(log: Log, start: int, limit: int) -> Iterator[Piece]:
    return (piece for piece, _ in batches(log, start, limit))


def batches(log: Log, start: int, limit: int) -> Iterator[tuple[Piece, bytes]]:
    """The batches of a log from `start` up to `limit`, each with its bytes."""
    while start < limit:
        found = log.read(start, max_bytes=READ_BYTES, limit=limit, at_least_one=True)
        if not found.size:
            return
        data = b"".join(span.read() for span in found.spans)
        for position, header in scan_batches(data):
            end = header.base_offset + header.last_offset_delta + 1
            body = data[position : position + header.size]
            yield Piece(header.base_offset, end, header.leader_epoch, blake2b(body, digest_size=12).digest()), body
        start = found.end


def forgotten_producers(log: Log, *, may_expire: bool) -> list[str]:
    """Producers whose last batch in a log is another one than the log remembers of them."""
    last: dict[int, tuple[int, int, int]] = {}
    for _, batch in batches(log, log.log_start, log.written):
        header = read_header(batch)
        if header.producer_id >= 0 and header.base_sequence >= 0:
            sequence = header.base_sequence + header.last_offset_delta
            last[header.producer_id] = header.producer_epoch, sequence, header.last_offset
    found = []
    for producer_id, (epoch, sequence, offset) in last.items():
        state = log.producers.get(producer_id)
        if state is not None and state.epoch > epoch:
            continue  # the marker of its transaction has begun a new epoch, without any batch yet
        if state is None and not may_expire:
            found.append(f"{log.name} has forgotten producer {producer_id}, whose last batch ends at {offset}")
        elif state is not None and state.last_sequence != sequence:
            found.append(f"{log.name} remembers {state.last_sequence} of producer {producer_id}, and has {sequence}")
    return found


def records(log: Log, limit: int) -> Iterator[Record]:
    """The records of a log below `limit`, without control records."""
    start = log.log_start
    while start < limit:
        found = log.read(start, max_bytes=READ_BYTES, limit=limit, at_least_one=True)
        if not found.size:
            return
        data = b"".join(span.read() for span in found.spans)
        for position, header in scan_batches(data):
            if not header.attributes & CONTROL_BIT:
                yield from read_records(data[position : position + header.size])
        start = found.end


def records_of(batch: bytes) -> list[Record]:
    """The records of one batch; control records are none."""
    return [] if read_header(batch).attributes & CONTROL_BIT else read_records(batch)


def readable(hosted: Hosted) -> Log | None:
    """The log of a hosted partition, unless its directory is offline."""
    log = hosted.log
    return log if log is not None and log.failure is None else None


def transactions_of(node: Node) -> list[TransactionShard]:
    """The transactional ids that a broker coordinates, as far as they are loaded."""
    return [] if node._broker is None else [home.shard for home in node._broker.transactions if home.shard is not None]


def shards_of(node: Node) -> list[GroupShard]:
    """The groups that a broker coordinates, as far as they are loaded."""
    return [] if node._broker is None else [home.shard for home in node._broker.groups if home.shard is not None]
