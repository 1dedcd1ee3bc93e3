"""Who may do what, by which rule, and that the index of ACLs is a function of the image."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.metadata.image import ClusterImage
from penstock.metadata.snapshot import image_of, snapshot_records
from penstock.model.ids import Epoch, Offset
from penstock.model.security import ANONYMOUS, Operation, PatternType, Permission, Principal, ResourceType
from penstock.security.acl_index import AclIndex
from penstock.security.acls import AclEntry
from penstock.security.authorizer import Authorizer, Rule, Verdict
from penstock.security.decisions import KEPT_MAX, NAME_CHARACTERS_MAX, Decisions
from tests.unit.security.acl_worlds import add, allow, deny, entries, image_with, questions, remove

ALICE, BOB = Principal("User", "alice"), Principal("User", "bob")
HERE = "10.0.0.1"
TOPIC = ResourceType.TOPIC
READ, WRITE, DESCRIBE, ALL = Operation.READ, Operation.WRITE, Operation.DESCRIBE, Operation.ALL
PREFIXED = PatternType.PREFIXED

Question = tuple[Principal, str, Operation, ResourceType, str]


def deciding(*acls: AclEntry, super_users: tuple[str, ...] = (), allow_everyone: bool = False) -> Authorizer:
    authorizer = Authorizer(super_users, allow_everyone=allow_everyone)
    authorizer.load(image_with(*acls))
    return authorizer


def may(authorizer: Authorizer, operation: Operation, name: str, who: Principal = ALICE, host: str = HERE) -> bool:
    return authorizer.decide(who, host, operation, TOPIC, name).allowed


def by_the_book(acls: list[AclEntry], question: Question, *, everyone: bool) -> bool:
    """The rules as facts have them, over a plain list: slow, and nothing is arranged that could be lost."""
    who, host, operation, type, name = question
    about = [
        acl
        for acl in acls
        if acl.resource_type == type
        and (name.startswith(acl.name) if acl.pattern == PREFIXED else acl.name in (name, "*"))
    ]

    def fits(acl: AclEntry) -> bool:
        implied = {
            DESCRIBE: {READ, WRITE, Operation.DELETE, Operation.ALTER},
            Operation.DESCRIBE_CONFIGS: {Operation.ALTER_CONFIGS},
        }
        gives = {operation, ALL} | (implied.get(operation, set()) if acl.permission == Permission.ALLOW else set())
        return acl.principal in (str(who), "User:*") and acl.host in (host, "*") and acl.operation in gives

    fitting = [acl for acl in about if fits(acl)]
    if any(acl.permission == Permission.DENY for acl in fitting):
        return False
    own = next((own for own in ("__penstock_", "__cluster_metadata") if name.startswith(own)), None)
    if own is not None and type == TOPIC and operation in (READ, WRITE):
        return any(acl.name == name if acl.pattern != PREFIXED else acl.name.startswith(own) for acl in fitting)
    return bool(fitting) or (everyone and not about)


@given(st.lists(entries, max_size=12), questions, st.booleans())
def test_decisions_are_by_the_book(acls: list[AclEntry], question: Question, everyone: bool) -> None:
    authorizer = deciding(*acls, allow_everyone=everyone)
    assert authorizer.decide(*question).allowed == by_the_book(acls, question, everyone=everyone)


def test_a_super_user_may_do_everything_even_before_acls_are_loaded_and_against_a_deny() -> None:
    authorizer = Authorizer(["User:alice"])
    assert authorizer.decide(ALICE, HERE, WRITE, TOPIC, "t") == Verdict(True, Rule.SUPER_USER)
    assert authorizer.decide(BOB, HERE, WRITE, TOPIC, "t") == Verdict(False, Rule.NOT_LOADED)
    authorizer.load(image_with(deny(ALL, "*", "User:*")))
    assert may(authorizer, WRITE, "__cluster_metadata")
    assert authorizer.is_super(ALICE)
    assert not authorizer.is_super(Principal("Group", "alice"))


def test_the_deciding_acl_is_told() -> None:
    allowing, denying = allow(READ, "ab", pattern=PREFIXED), deny(READ, "abcd")
    authorizer = deciding(allowing, denying)
    assert authorizer.decide(ALICE, HERE, READ, TOPIC, "abc") == Verdict(True, Rule.ACL, allowing)
    assert authorizer.decide(ALICE, HERE, READ, TOPIC, "abcd") == Verdict(False, Rule.ACL, denying)
    assert authorizer.decide(BOB, HERE, READ, TOPIC, "abc") == Verdict(False, Rule.NO_FITTING_ACL)
    assert authorizer.decide(BOB, HERE, READ, TOPIC, "z") == Verdict(False, Rule.NO_ACL)
    assert str(authorizer.decide(ALICE, HERE, READ, TOPIC, "abcd")) == (
        "denied: DENY READ on TOPIC LITERAL 'abcd' to User:alice"
    )


def test_a_denied_operation_takes_nothing_else_and_an_allowed_one_gives_describe() -> None:
    assert may(deciding(allow(ALL, "t"), deny(READ, "t")), DESCRIBE, "t")
    reads_only = deciding(allow(ALL, "t"), deny(DESCRIBE, "t"))
    assert may(reads_only, READ, "t")
    assert not may(reads_only, DESCRIBE, "t")
    configs = deciding(allow(Operation.ALTER_CONFIGS, "t"))
    assert may(configs, Operation.DESCRIBE_CONFIGS, "t")
    assert not may(configs, DESCRIBE, "t")


def test_a_prefixed_star_is_a_letter_and_user_star_is_everybody() -> None:
    star = deciding(allow(READ, "*", pattern=PREFIXED))
    assert may(star, READ, "*x")
    assert not may(star, READ, "x")
    everybody = deciding(allow(READ, "t", "User:*"), allow(WRITE, "t", "Group:*"))
    assert may(everybody, READ, "t", Principal("Group", "g"))
    assert not may(everybody, WRITE, "t", Principal("Group", "g"))


def test_a_deny_of_everything_is_about_names_that_begin_with_a_star_too() -> None:
    # Kafka 4.3.1 overlooks ACLs of `*` there: it takes them for ACLs of a shorter name.
    authorizer = deciding(allow(READ, "*x", type=ResourceType.GROUP), deny(ALL, "*", type=ResourceType.GROUP))
    assert not authorizer.decide(ALICE, HERE, READ, ResourceType.GROUP, "*x").allowed


def test_with_everyone_allowed_one_acl_for_a_stranger_closes_the_resource() -> None:
    authorizer = deciding(allow(READ, "t", "User:bob"), allow_everyone=True)
    assert may(authorizer, READ, "other")
    assert not may(authorizer, READ, "t")


def test_a_host_is_compared_as_text() -> None:
    authorizer = deciding(allow(READ, "t", host="10.0.0.2"))
    assert may(authorizer, READ, "t", host="10.0.0.2")
    assert not may(authorizer, READ, "t", host="10.0.0.1")


@pytest.mark.parametrize("name", ["__cluster_metadata", "__penstock_progress"])
@pytest.mark.parametrize(
    "operation", [READ, WRITE, Operation.DELETE, Operation.ALTER, Operation.ALTER_CONFIGS], ids=lambda each: each.name
)
def test_topics_that_steer_the_cluster_take_an_acl_that_names_them(name: str, operation: Operation) -> None:
    wide = (allow(ALL, "*"), allow(operation, "*", "User:*"), allow(operation, "__", pattern=PREFIXED))
    assert deciding(*wide).decide(ALICE, HERE, operation, TOPIC, name) == Verdict(False, Rule.NOT_NAMED)
    assert deciding(*wide, allow(operation, name)).decide(ALICE, HERE, operation, TOPIC, name).allowed
    assert may(deciding(*wide, super_users=("User:alice",)), operation, name)
    assert not may(deciding(allow_everyone=True), operation, name)
    assert not may(deciding(*wide, allow(operation, name), deny(ALL, "*")), operation, name)


def test_own_topics_can_be_opened_by_their_prefix_and_described_by_star() -> None:
    authorizer = deciding(allow(WRITE, "__penstock_", pattern=PREFIXED), allow(ALL, "*"))
    assert may(authorizer, WRITE, "__penstock_stops")
    assert may(authorizer, DESCRIBE, "__cluster_metadata")
    assert not may(authorizer, WRITE, "__cluster_metadata")
    assert may(authorizer, WRITE, "__consumer_offsets"), "as in Kafka"


def test_what_a_later_release_wrote_allows_nothing_and_closes_the_resource() -> None:
    unknown = allow(READ, "t")._replace(permission=Permission.UNKNOWN)
    authorizer = deciding(unknown, allow_everyone=True)
    assert authorizer.decide(ALICE, HERE, READ, TOPIC, "t") == Verdict(False, Rule.NO_FITTING_ACL)
    odd_pattern = allow(READ, "t")._replace(pattern=PatternType.UNKNOWN)
    assert not may(deciding(odd_pattern), READ, "t")


# By resource type, as InitProducerId asks


def any_topic(*acls: AclEntry, **said: bool) -> bool:
    return deciding(*acls, **said).decide_any(ALICE, HERE, WRITE, TOPIC).allowed  # type: ignore[arg-type]


def test_write_on_any_topic_is_an_allow_that_no_deny_dominates() -> None:
    assert any_topic(allow(WRITE, "t"))
    assert any_topic(allow(ALL, "t", "User:*", pattern=PREFIXED))
    assert any_topic(allow_everyone=True)
    assert any_topic(allow(WRITE, "*"), deny(WRITE, "t"))
    assert any_topic(allow(WRITE, "ab", pattern=PREFIXED), deny(WRITE, "abc", pattern=PREFIXED))
    assert any_topic(allow(WRITE, "ab", pattern=PREFIXED), deny(WRITE, "ab"))


def test_no_topic_can_be_written_where_every_allow_is_dominated() -> None:
    assert not any_topic()
    assert not any_topic(allow(READ, "t"))
    assert not any_topic(allow(WRITE, "t"), deny(WRITE, "*"))
    assert not any_topic(allow(WRITE, "t"), deny(ALL, "t", "User:*"))
    assert not any_topic(allow(WRITE, "abc"), deny(WRITE, "ab", pattern=PREFIXED))
    assert not any_topic(allow(WRITE, "abc", pattern=PREFIXED), deny(WRITE, "abc", pattern=PREFIXED))


def test_by_type_nobody_but_super_users_may_before_acls_are_loaded() -> None:
    authorizer = Authorizer(["User:alice"], allow_everyone=True)
    assert authorizer.decide_any(ALICE, HERE, WRITE, TOPIC) == Verdict(True, Rule.SUPER_USER)
    assert authorizer.decide_any(ANONYMOUS, HERE, WRITE, TOPIC) == Verdict(False, Rule.NOT_LOADED)


# The index


@given(st.lists(st.tuples(st.integers(0, 7), st.none() | entries, st.booleans()), max_size=40), questions)
def test_cve_2024_27309_removing_an_acl_loses_no_other(
    steps: list[tuple[int, AclEntry | None, bool]], question: Question
) -> None:
    image, authorizer = ClusterImage(), Authorizer()
    authorizer.load(image)
    for number, entry, published in steps:
        if entry is None:
            remove(image, number)
        else:
            add(image, number, entry)
        if published:
            authorizer.follow(image, image.take_delta())
    authorizer.follow(image, image.take_delta())
    anew = Authorizer()
    anew.load(image_of((record for record, _ in snapshot_records(image)), Offset(0), Epoch(0)))
    assert authorizer.acls == anew.acls == AclIndex.of(image.acls)
    assert authorizer.decide(*question) == anew.decide(*question)
    assert authorizer.decide_any(*question[:4]) == anew.decide_any(*question[:4])


def test_equal_acls_of_two_ids_go_one_by_one() -> None:
    image = image_with(allow(READ, "t"), allow(READ, "t"))
    authorizer = Authorizer()
    authorizer.load(image)
    image.take_delta()
    remove(image, 0)
    authorizer.follow(image, image.take_delta())
    assert may(authorizer, READ, "t")
    assert allow(READ, "t") in authorizer.acls
    remove(image, 1)
    authorizer.follow(image, image.take_delta())
    assert not may(authorizer, READ, "t")
    assert allow(READ, "t") not in authorizer.acls
    assert authorizer.acls == AclIndex()


def test_an_index_of_thousands_of_acls_is_emptied_to_nothing() -> None:
    image = ClusterImage()
    names = [f"topic-{number}" for number in range(2_000)]
    for number, name in enumerate(names):
        pattern = PREFIXED if number % 2 else PatternType.LITERAL
        add(image, number, allow(READ, name, f"User:u{number % 100}", pattern=pattern))
    index = AclIndex.of(image.acls)
    assert len(index) == 2_000
    image.take_delta()
    numbers = list(range(2_000))
    Random(1).shuffle(numbers)
    for number in numbers:
        remove(image, number)
    index.follow(image, image.take_delta())
    assert index == AclIndex()


# What a connection remembers


@given(st.lists(st.tuples(st.integers(0, 3), st.none() | entries), max_size=12), st.lists(questions, max_size=12))
def test_remembered_decisions_are_those_of_now(steps: list[tuple[int, AclEntry | None]], asked: list[Question]) -> None:
    image, authorizer = ClusterImage(), Authorizer()
    authorizer.load(image)
    remembered = Decisions(authorizer, ALICE, HERE)
    for number, entry in steps:
        if entry is None:
            remove(image, number)
        else:
            add(image, number, entry)
        authorizer.follow(image, image.take_delta())
        for _, _, operation, type, name in asked:
            now = authorizer.decide(ALICE, HERE, operation, type, name)
            assert remembered.verdict(operation, type, name) == remembered.verdict(operation, type, name) == now


def test_a_decision_is_made_once_as_long_as_acls_are_the_same() -> None:
    image = image_with(allow(READ, "t"))
    authorizer = Authorizer()
    remembered = Decisions(authorizer, ALICE, HERE)
    assert not remembered.allows(READ, TOPIC, "t")
    assert len(remembered) == 0, "not ready is not remembered"
    authorizer.load(image)
    image.take_delta()
    first = remembered.verdict(READ, TOPIC, "t")
    assert first.allowed
    assert remembered.verdict(READ, TOPIC, "t") is first
    authorizer.follow(image, image.take_delta())
    assert remembered.verdict(READ, TOPIC, "t") is first, "nothing about ACLs changed"
    remove(image, 0)
    authorizer.follow(image, image.take_delta())
    assert not remembered.allows(READ, TOPIC, "t")
    assert not remembered.any_verdict(READ, TOPIC).allowed


def test_what_a_client_can_make_a_connection_remember_is_bounded() -> None:
    remembered = Decisions(deciding(), ALICE, HERE)
    for number in range(3 * KEPT_MAX):
        remembered.allows(READ, TOPIC, f"t{number}")
        assert len(remembered) <= KEPT_MAX
    before = len(remembered)
    remembered.allows(READ, TOPIC, "x" * (NAME_CHARACTERS_MAX + 1))
    assert len(remembered) == before
