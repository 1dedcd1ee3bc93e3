import pytest

from penstock.model.config import AlterOp, ResourceKind, apply_incremental, check_resource_name
from penstock.model.errors import INVALID_CONFIG, INVALID_REQUEST, ErrorCode, Refused

SET, DELETE, APPEND, SUBTRACT = AlterOp
TOPIC, BROKER = ResourceKind.TOPIC, ResourceKind.BROKER


def policy(current: dict[str, str], op: AlterOp, value: str) -> str | None:
    return apply_incremental(current, [("cleanup.policy", op, value)], TOPIC).get("cleanup.policy")


def test_set_and_delete() -> None:
    current = {"retention.ms": "5", "segment.ms": "7"}
    ops = [("retention.ms", SET, "6"), ("segment.ms", DELETE, None), ("nope", DELETE, "")]
    assert apply_incremental(current, ops, TOPIC) == {"retention.ms": "6"}
    assert current == {"retention.ms": "5", "segment.ms": "7"}


def test_append_starts_from_the_default_and_adds_once() -> None:
    assert policy({}, APPEND, "compact") == "delete,compact"
    assert policy({"cleanup.policy": "delete,compact"}, APPEND, "compact") == "delete,compact"
    assert policy({"cleanup.policy": ""}, APPEND, "compact") == "compact"


def test_append_starts_from_what_is_in_force() -> None:
    ops = [("cleanup.policy", APPEND, "delete")]
    assert apply_incremental({}, ops, TOPIC, effective={"cleanup.policy": "compact"}) == {
        "cleanup.policy": "compact,delete"
    }


def test_subtract_can_leave_an_empty_list() -> None:
    assert policy({"cleanup.policy": "delete,compact"}, SUBTRACT, "delete") == "compact"
    assert policy({}, SUBTRACT, "delete") == ""


def test_subtracting_what_is_not_there_sets_nothing() -> None:
    assert policy({}, SUBTRACT, "compact") is None


def test_brokers_have_lists_too() -> None:
    changed = apply_incremental({}, [("log.cleanup.policy", APPEND, "compact")], BROKER)
    assert changed == {"log.cleanup.policy": "delete,compact"}


@pytest.mark.parametrize(
    ("ops", "kind", "error"),
    [
        ([("retention.ms", APPEND, "5")], TOPIC, INVALID_CONFIG),
        ([("nope", APPEND, "5")], TOPIC, INVALID_CONFIG),
        ([("unknown.thing", SUBTRACT, "5")], BROKER, INVALID_CONFIG),
        ([("metrics", APPEND, "a")], ResourceKind.CLIENT_METRICS, INVALID_CONFIG),
        ([("consumer.session.timeout.ms", APPEND, "5")], ResourceKind.GROUP, INVALID_CONFIG),
        ([("retention.ms", SET, None)], TOPIC, INVALID_REQUEST),
        ([("retention.ms", SET, "5"), ("retention.ms", DELETE, None)], TOPIC, INVALID_REQUEST),
        ([("retention.ms", 9, "5")], TOPIC, INVALID_REQUEST),
        ([("root", SET, "INFO")], ResourceKind.BROKER_LOGGER, INVALID_REQUEST),
    ],
)
def test_what_makes_no_sense_is_refused(ops: list[tuple[str, int, str | None]], kind: int, error: ErrorCode) -> None:
    with pytest.raises(Refused) as caught:
        apply_incremental({}, ops, kind)
    assert caught.value.error is error


@pytest.mark.parametrize(("kind", "name"), [(2, "t"), (4, ""), (4, "12"), (16, "m"), (32, "g")])
def test_resources_that_can_be_altered(kind: int, name: str) -> None:
    check_resource_name(kind, name)


@pytest.mark.parametrize(("kind", "name"), [(2, ""), (4, "x"), (4, "-1"), (8, "1"), (16, ""), (32, ""), (0, "t")])
def test_resources_that_cannot(kind: int, name: str) -> None:
    with pytest.raises(Refused) as caught:
        check_resource_name(kind, name)
    assert caught.value.error is INVALID_REQUEST
