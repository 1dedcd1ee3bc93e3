"""Charging connections: shared buckets, limits that change, and a table that strangers cannot fill."""

from __future__ import annotations

from penstock.metadata.delta import Delta
from penstock.metadata.image import ClusterImage, quota_entity
from penstock.security.quotas.buckets import BUCKETS_MAX, Buckets
from penstock.security.quotas.clients import ClientQuotas, Meter
from penstock.security.quotas.limits import Limit
from penstock.security.quotas.rate import RateBucket
from penstock.security.quotas.tokens import TokenBucket

KEY = "producer_byte_rate"
MUTATIONS = "controller_mutation_rate"


def quotas(**limits: float) -> tuple[ClientQuotas, ClusterImage]:
    """Limits of users by name; `default` is everybody else's, `client` that of every client id."""
    image, made = ClusterImage(), ClientQuotas()
    for name, limit in limits.items():
        parts = [("client-id", None)] if name == "client" else [("user", None if name == "default" else name)]
        image.quotas[quota_entity(parts)] = {KEY: limit, MUTATIONS: limit}
    made.load(image)
    return made, image


def test_connections_of_a_user_share_what_it_may_use() -> None:
    made, _ = quotas(alice=1_000)
    one, other, stranger = Meter(made, "alice"), Meter(made, "alice"), Meter(made, "bob")
    assert one.charge(KEY, "c", 10_000, 0) == 0
    assert other.charge(KEY, "d", 1_000, 0) == 1_000
    assert stranger.charge(KEY, "c", 1e12, 0) == 0
    assert len(made.rates) == 1


def test_client_ids_that_are_limited_each_have_their_own() -> None:
    made, _ = quotas(client=1_000)
    meter = Meter(made, "alice")
    assert meter.charge(KEY, "c", 11_000, 0) == 1_000
    assert meter.charge(KEY, "d", 1_000, 0) == 0
    assert meter.charge(KEY, "c", 0, 0) == 1_000


def test_a_changed_limit_holds_for_what_was_used_before() -> None:
    made, image = quotas(alice=1_000)
    meter = Meter(made, "alice")
    assert meter.charge(KEY, "c", 5_000, 0) == 0
    image.quotas[quota_entity([("user", "alice")])] = {KEY: 100.0}
    made.follow(image, Delta())
    assert meter.charge(KEY, "c", 0, 0) == 0, "nothing was said about quotas"
    made.follow(image, Delta(quotas=True))
    assert meter.charge(KEY, "c", 0, 0) == 40_000
    assert meter.most(KEY, "c") == 1_000
    image.quotas.clear()
    made.follow(image, Delta(quotas=True))
    assert meter.charge(KEY, "c", 1e12, 0) == 0
    assert meter.most(KEY, "c") is None


def test_what_is_about_to_be_given_is_paid_for_or_not_counted() -> None:
    made, _ = quotas(alice=1_000)
    meter = Meter(made, "alice")
    assert meter.pay(KEY, "c", 9_000, 0) == 0
    assert [meter.pay(KEY, "c", 2_000, 0) for _ in range(3)] == [1_000] * 3, "what was refused does not count"
    assert meter.pay(KEY, "c", 1_000, 0) == 0
    assert Meter(made, "bob").pay(KEY, "c", 1e12, 0) == 0


def test_one_thing_larger_than_a_limit_ever_lets_through_passes_when_nothing_else_counts() -> None:
    made, _ = quotas(alice=1_000)
    meter = Meter(made, "alice")
    assert meter.pay(KEY, "c", 1, 0) == 0
    assert meter.pay(KEY, "c", 50_000, 0) > 0
    assert meter.pay(KEY, "c", 50_000, 11_500) == 0, "what was used before counts no more"
    assert meter.pay(KEY, "c", 1, 11_500) == 40_001, "and is paid for now"


def test_pauses_are_averaged_while_they_go_on() -> None:
    made, _ = quotas(alice=1_000)
    meter = Meter(made, "alice")
    meter.note_pause(KEY, 500, 0)  # nothing was charged yet
    meter.charge(KEY, "c", 1, 0)
    (bucket,) = [bucket for _, bucket in made.rates.items()]
    assert bucket.pause_avg_ms(0) == 0
    meter.note_pause(KEY, 100, 0)
    meter.note_pause(KEY, 300, 10_000)
    assert bucket.pause_avg_ms(10_000) == 200
    assert bucket.pause_avg_ms(21_000) == 0
    meter.note_pause(KEY, 50, 30_000)
    assert bucket.pause_avg_ms(30_000) == 50


def test_with_one_window_a_rate_is_measured_over_it() -> None:
    made = ClientQuotas(windows=1)
    made.load(quotas(alice=1_000)[1])
    meter = Meter(made, "alice")
    assert meter.charge(KEY, "c", 1_000, 0) == 0
    assert meter.charge(KEY, "c", 1_000, 0) == 1_000


def test_time_is_counted_in_hundredths_and_its_pause_is_short() -> None:
    made, image = ClientQuotas(), ClusterImage()
    image.quotas[quota_entity([("user", "alice")])] = {"request_percentage": 10.0}
    made.load(image)
    meter = Meter(made, "alice")
    assert meter.charge_time("c", 1_000, 0) == 0, "a tenth of ten seconds"
    assert meter.charge_time("c", 10, 0) == 100
    assert meter.charge_time("c", 5_000, 0) == 1_000


def test_an_address_makes_no_more_connections_than_it_may_and_refused_ones_do_not_count() -> None:
    made, image = ClientQuotas(), ClusterImage()
    image.quotas[quota_entity([("ip", None)])] = {"connection_creation_rate": 2.0}
    made.load(image)
    assert [made.charge_connection("10.0.0.1", 0) for _ in range(20)] == [0] * 20
    assert [made.charge_connection("10.0.0.1", 0) for _ in range(5)] == [500] * 5
    assert made.charge_connection("10.0.0.2", 0) == 0
    assert made.charge_connection("10.0.0.1", 12_000) == 0
    for number in range(BUCKETS_MAX + 10):
        made.charge_connection(f"fd00:0:0:0:0:0:0:{number:x}", 12_000)
    assert len(made.connections) == BUCKETS_MAX + 1
    made.sweep(30_000)
    assert len(made.connections) == 0
    image.quotas.clear()
    made.load(image)
    assert made.charge_connection("10.0.0.1", 0) == 0


def test_mutations_are_taken_out_of_a_token_bucket() -> None:
    made, _ = quotas(alice=2)
    bucket = made.mutation_bucket("alice", "c", 0)
    assert isinstance(bucket, TokenBucket)
    assert bucket.try_take(30, 0)
    assert made.mutation_bucket("alice", "d", 0) is bucket
    assert bucket.charge(2, 0) == 5_000
    assert made.mutation_bucket("bob", "c", 0) is None


def test_a_bucket_that_was_forgotten_is_asked_for_again_by_whoever_held_it() -> None:
    made, _ = quotas(alice=1_000)
    one, other = Meter(made, "alice"), Meter(made, "alice")
    one.charge(KEY, "c", 1, 0)
    made.sweep(20_000)
    assert len(made.rates) == 0
    assert one.charge(KEY, "c", 10_000, 20_000) == 0
    assert other.charge(KEY, "c", 1_000, 20_000) == 1_000, "both charge the same bucket again"


def limit(client: str, user: str = "u", value: float = 1_000) -> Limit:
    return Limit(KEY, value, user, client)


def test_a_client_that_calls_itself_something_new_each_time_fills_no_memory() -> None:
    table = Buckets(RateBucket, most=100)
    for number in range(1_000):
        table.of(limit(f"c{number}"), now_ms=0).charge(1, 0)
    assert len(table) == 101
    first, later = table.of(limit("x"), 0), table.of(limit("y"), 0)
    assert first is later, "over the bound they share one"
    assert first.charge(10_000, 0) > 0, "what earlier ones used counts"
    assert table.of(limit("c5"), 0) is not first, "who was there before keeps its own"
    assert table.of(limit("", user="v"), 0) is not first, "a user's own limit is never shared"
    assert table.of(limit("z", user="v"), 0) is not first


def test_old_buckets_make_room_while_new_ones_come() -> None:
    table = Buckets(RateBucket, most=100)
    for number in range(100):
        table.of(limit(f"old{number}"), 0).charge(1, 0)
    busy = table.of(limit("old7"), 0)
    for number in range(100):
        busy.charge(1, 11_500)
        table.of(limit(f"new{number}"), 11_500).charge(1, 11_500)
    assert len(table) <= 101
    assert busy.kept
    assert table.of(limit("old7"), 11_500) is busy
    assert table.of(limit("new5"), 11_500).kept


def test_all_that_can_be_held_is_stated() -> None:
    assert BUCKETS_MAX == 10_000
    table = Buckets(RateBucket, most=3)
    for name in "abc":
        table.of(limit(name), 0)
    assert [key for key, _ in table.items()] == [(KEY, "u", name) for name in "abc"]
    table.sweep(11_000)
    assert len(table) == 0
