"""The order of a partition's batches and their sequence numbers."""

from __future__ import annotations

from penstock.client.producer.lane import REMEMBERED_BATCHES, SEQUENCE_MASK, Batch, Lane
from penstock.kernels import RecordsBuilder, read_header

FIRST, SECOND = (7, 0), (7, 1)


def known_lane() -> Lane:
    """One of whose producer the brokers have something already, so that several batches may be out."""
    lane = Lane("t", 0)
    lane.producer, lane.known = FIRST, True
    return lane


def batch(lane: Lane, records: int = 2) -> Batch:
    builder = RecordsBuilder(10_000)
    for _ in range(records):
        builder.append(1, b"k", b"v", ())
    made = Batch(lane, builder, 0, 1e9)
    lane.queue.append(made)
    return made


def send(lane: Lane, producer: tuple[int, int] = FIRST) -> Batch | None:
    """What the lane would send now, sent."""
    picked = lane.next_batch(producer)
    if picked is not None:
        lane.launch(picked, producer, lambda one, sequence: one.seal(0, None, lane.producer, sequence))
    return picked


def through(lane: Lane) -> Batch | None:
    """The same, and accepted."""
    sent = send(lane)
    if sent is not None:
        lane.land(sent)
        lane.accepted(sent)
    return sent


def header(one: Batch) -> tuple[int, int, int]:
    assert one.sealed is not None
    found = read_header(one.sealed)
    return found.producer_id, found.producer_epoch, found.base_sequence


def test_sequences_count_records_from_the_first_sending_on() -> None:
    lane = known_lane()
    first, second = batch(lane, 3), batch(lane, 2)
    assert (send(lane), send(lane)) == (first, second)
    assert (header(first), header(second)) == ((7, 0, 0), (7, 0, 3))


def test_sequences_go_round() -> None:
    lane = known_lane()
    lane._next_sequence = lane.expected = SEQUENCE_MASK
    first, second = batch(lane, 3), batch(lane)
    send(lane)
    send(lane)
    assert (first.sequence, second.sequence) == (SEQUENCE_MASK, 2)


def test_no_more_is_out_than_a_broker_knows_again() -> None:
    lane = known_lane()
    batches = [batch(lane) for _ in range(REMEMBERED_BATCHES + 1)]
    assert [send(lane) for _ in batches] == [*batches[:-1], None]
    # The old leader is gone and the new one has them all: each must still be known when it is repeated.
    for each in batches[:-1]:
        lane.land(each)
        lane.again(each)
    assert [through(lane) for _ in batches] == batches
    without_sequences = Lane("t", 1)
    many = [batch(without_sequences) for _ in range(REMEMBERED_BATCHES + 1)]
    for each in many:
        assert without_sequences.next_batch(None) is each
        without_sequences.launch(each, None, lambda one, sequence: one.seal(0, None, None, sequence))


def test_a_batch_that_was_answered_out_of_turn_still_counts_for_the_broker() -> None:
    lane = known_lane()
    batches = [batch(lane) for _ in range(REMEMBERED_BATCHES + 2)]
    first, second = send(lane), send(lane)
    assert first is not None
    assert second is not None
    lane.land(second)
    lane.accepted(second)
    assert [send(lane) for _ in range(4)] == [*batches[2:REMEMBERED_BATCHES], None]
    lane.land(first)
    lane.accepted(first)
    assert send(lane) is batches[REMEMBERED_BATCHES]


def test_the_first_batch_of_an_epoch_goes_alone() -> None:
    """From a producer that it does not know a broker takes any number, also that of the second batch."""
    lane = Lane("t", 0)
    first, second, third = batch(lane), batch(lane), batch(lane)
    assert [send(lane), send(lane)] == [first, None]
    lane.land(first)
    lane.again(first)  # it was lost on its way
    assert [send(lane), send(lane)] == [first, None]
    lane.land(first)
    lane.accepted(first)
    assert [send(lane), send(lane)] == [second, third]


def test_with_one_request_in_flight_a_batch_waits_for_the_one_before_it_whoever_leads() -> None:
    """The first is out at a leader that fell silent; sent to the next leader now, the second would come before it."""
    lane = Lane("t", 0, one_at_a_time=True)
    first, second = batch(lane), batch(lane)
    lane.launch(first, None, lambda one, sequence: one.seal(0, None, None, sequence))
    lane.leader = 2
    assert lane.next_batch(None) is None
    lane.land(first)
    lane.again(first)
    assert lane.next_batch(None) is first
    lane.launch(first, None, lambda one, sequence: one.seal(0, None, None, sequence))
    lane.land(first)
    lane.accepted(first)
    assert lane.next_batch(None) is second


def test_what_the_broker_has_never_becomes_less() -> None:
    lane = known_lane()
    first, second, third = batch(lane), batch(lane), batch(lane)
    for one in (first, second, third):
        assert send(lane) is one
    for one in (second, first):  # answered out of turn
        lane.land(one)
        lane.accepted(one)
    assert lane.expected == third.sequence
    assert lane.came_too_late(third), "nothing before it is missing"
    assert lane.came_too_late(first)
    assert not lane.came_too_late(batch_numbered(lane, third.sequence + 2))


def batch_numbered(lane: Lane, sequence: int) -> Batch:
    made = batch(lane)
    made.sequence = sequence
    return made


def test_a_repetition_keeps_its_sequence_and_goes_first() -> None:
    lane = known_lane()
    first, second, third = batch(lane), batch(lane), batch(lane)
    send(lane)
    send(lane)
    lane.land(first)
    lane.again(first)
    assert send(lane) is first
    assert (first.sequence, first.attempts) == (0, 2)
    assert lane.flying == [first, second]
    assert send(lane) is third


def test_a_repetition_waits_while_an_earlier_batch_is_out() -> None:
    lane = known_lane()
    first, second = batch(lane), batch(lane)
    send(lane)
    send(lane)
    lane.land(second)
    lane.again(second)
    assert send(lane) is None
    lane.land(first)
    lane.accepted(first)
    assert send(lane) is second


def test_repetitions_are_sent_in_their_first_order() -> None:
    lane = known_lane()
    batches = [batch(lane) for _ in range(3)]
    for _ in batches:
        send(lane)
    for one in (batches[2], batches[0], batches[1]):
        lane.land(one)
        lane.again(one)
    assert [through(lane), through(lane), through(lane)] == batches


def test_a_hole_ends_an_epoch_and_what_follows_is_numbered_anew() -> None:
    lane = known_lane()
    first, second, third = batch(lane), batch(lane), batch(lane)
    send(lane)
    send(lane)
    lane.land(first)
    lane.lost(first)
    assert send(lane) is None  # `second` is still out
    assert not lane.needs_new_epoch
    lane.land(second)
    lane.again(second)
    assert lane.needs_new_epoch
    lane.begin_epoch(SECOND)
    assert send(lane, SECOND) is second
    assert send(lane, SECOND) is None  # nobody knows this epoch yet
    lane.land(second)
    lane.accepted(second)
    assert send(lane, SECOND) is third
    assert (header(second), header(third)) == ((7, 1, 0), (7, 1, 2))


def test_what_may_be_written_already_keeps_its_number_until_its_fate_is_known() -> None:
    lane = known_lane()
    first, second = batch(lane), batch(lane)
    send(lane)
    send(lane)
    lane.land(first)
    lane.lost(first)
    lane.land(second)
    second.doubtful = True
    lane.again(second)
    assert not lane.needs_new_epoch
    assert send(lane) is second
    assert header(second) == (7, 0, 2)


def test_epochs_do_not_overlap() -> None:
    lane = known_lane()
    first, second = batch(lane), batch(lane)
    send(lane, FIRST)
    assert send(lane, SECOND) is None  # another lane has raised the epoch
    lane.land(first)
    lane.accepted(first)
    assert send(lane, SECOND) is second
    assert header(second) == (7, 1, 0)


def test_halves_take_the_place_and_the_numbers_of_the_whole() -> None:
    lane = known_lane()
    whole, later = batch(lane, 5), batch(lane)
    send(lane)
    send(lane)
    lane.land(whole)
    lane.replace(whole, whole.split())
    lane.land(later)
    lane.again(later)
    halves = whole.pieces
    assert [through(lane), through(lane), through(lane)] == [*halves, later]
    assert [one.sequence for one in (*halves, later)] == [0, 2, 5]
    assert [one.count for one in halves] == [2, 3]


def test_without_an_identity_nothing_is_numbered() -> None:
    lane = known_lane()
    only = batch(lane)
    picked = lane.next_batch(None)
    assert picked is only
    lane.launch(only, None, lambda one, sequence: one.seal(0, None, None, sequence))
    assert header(only) == (-1, -1, -1)
    lane.land(only)
    lane.lost(only)
    assert not lane.broken
