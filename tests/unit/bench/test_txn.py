"""The load of the suite `txn` says what it means, reads what it is told, and its page judges by the ratios."""

from __future__ import annotations

import pytest

from bench.txn import commits, page
from bench.txn.idle import one_of_each_partition
from bench.txn.speech import (
    END_VERSION,
    PRODUCE_KEY,
    PRODUCE_VERSION,
    Batch,
    EndFrame,
    Identity,
    ProduceFrame,
    end_told,
    must_be_again,
)
from penstock.bench.series import Results
from penstock.client.errors import ClientError
from penstock.kernels import crc_holds, read_header
from penstock.model.errors import CONCURRENT_TRANSACTIONS, PRODUCER_FENCED
from penstock.protocol.batch import is_transactional
from penstock.protocol.codec import decode
from penstock.protocol.frame import encode_response_parts, read_request_header
from penstock.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from penstock.protocol.messages.produce import ProduceRequest, ProduceResponse

END_KEY = 26
WHO = Identity(4_000, 17)


def reply(message: object, key: int, version: int) -> bytes:
    """A reply as the load gets it, without its size."""
    return b"".join(map(bytes, encode_response_parts(0, message, key, version)))[4:]


def produced(errors: list[int]) -> bytes:
    answers = [
        ProduceResponse.PartitionProduceResponse(index=index, error_code=error, log_start_offset=0)
        for index, error in enumerate(errors)
    ]
    topics = [ProduceResponse.TopicProduceResponse(name="t", partition_responses=answers)]
    return reply(ProduceResponse(responses=topics), PRODUCE_KEY, PRODUCE_VERSION)


def test_every_partition_of_a_produce_has_the_batch_of_the_moment() -> None:
    batch = Batch(100, 2, transactional=True)
    frame = ProduceFrame("id", "t", [3, 5], batch)
    batch.become(WHO, 6)
    frame.patch()
    data = bytes(frame.bytes[4:])
    request, _ = decode(ProduceRequest, PRODUCE_VERSION, data, read_request_header(data).body)
    assert request.transactional_id == "id"
    (topic,) = request.topic_data
    assert [each.index for each in topic.partition_data] == [3, 5]
    for each in topic.partition_data:
        header = read_header(each.records)
        assert crc_holds(each.records, 0, header.size), "brokers refuse a batch with a wrong checksum"
        assert is_transactional(header.attributes)
        assert (header.producer_id, header.producer_epoch, header.base_sequence) == (4_000, 17, 6)


def test_errors_of_a_produce_are_seen_wherever_they_are() -> None:
    frame = ProduceFrame("id", "t", range(3), Batch(10, 1, transactional=True))
    assert frame.error_in(produced([0, 0, 0])) == 0
    assert frame.error_in(produced([0, 0, CONCURRENT_TRANSACTIONS.code])) == CONCURRENT_TRANSACTIONS.code
    # Words and hints make a reply longer than one without.
    told = ProduceResponse.PartitionProduceResponse(
        index=0, error_code=CONCURRENT_TRANSACTIONS.code, error_message="51"
    )
    topics = [ProduceResponse.TopicProduceResponse(name="t", partition_responses=[told])]
    longer = reply(ProduceResponse(responses=topics), PRODUCE_KEY, PRODUCE_VERSION)
    assert frame.error_in(longer) == CONCURRENT_TRANSACTIONS.code


def test_the_end_of_a_transaction_names_its_producer_and_hears_who_it_is_next() -> None:
    for commits_it in (True, False):
        data = bytes(EndFrame("some id").of(WHO, commits=commits_it)[4:])
        request, _ = decode(EndTxnRequest, END_VERSION, data, read_request_header(data).body)
        assert request == EndTxnRequest(
            transactional_id="some id", producer_id=4_000, producer_epoch=17, committed=commits_it
        )
    answer = reply(EndTxnResponse(producer_id=4_000, producer_epoch=18), END_KEY, END_VERSION)
    assert end_told(answer) == (0, Identity(4_000, 18))
    refusal = reply(EndTxnResponse(error_code=CONCURRENT_TRANSACTIONS.code), END_KEY, END_VERSION)
    assert end_told(refusal)[0] == CONCURRENT_TRANSACTIONS.code


def test_only_what_passes_is_said_again() -> None:
    must_be_again(CONCURRENT_TRANSACTIONS.code, "id")
    with pytest.raises(ClientError):
        must_be_again(PRODUCER_FENCED.code, "id")


def test_one_id_of_each_partition_is_asked_about() -> None:
    assert len(set(one_of_each_partition(50))) == 50


def test_cells_below_a_target_are_named() -> None:
    results = Results(ours="penstock", rival="apache")
    for producers, ours in ((1, 200.0), (8, 140.0)):
        group = commits.group("one node", commits.RATE)
        results.add(group, commits.cell(10, producers), "1/s", "penstock", ours)
        results.add(group, commits.cell(10, producers), "1/s", "apache", 100.0)
    (*_, line) = page.targets(results)
    assert "| 1 of 2 |" in line
    assert "10 partitions, 8 producers (1.40×)" in line
