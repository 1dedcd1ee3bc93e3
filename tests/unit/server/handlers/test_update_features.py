from __future__ import annotations

import pytest

from penstock.model.errors import CLUSTER_AUTHORIZATION_FAILED, INVALID_UPDATE_VERSION
from penstock.protocol.messages.update_features import UpdateFeaturesRequest
from penstock.server.doors import Operation, ResourceType
from penstock.server.handlers import update_features
from penstock.server.reception.authorize import Asked, Recording
from tests.walks.control_plane import ControlPlane, walk

Update = UpdateFeaturesRequest.FeatureUpdateKey
UPGRADE, SAFE_DOWNGRADE = 1, 2


def to(feature: str, level: int, kind: int = UPGRADE, **said: bool) -> UpdateFeaturesRequest:
    return UpdateFeaturesRequest(
        feature_updates=[Update(feature=feature, max_version_level=level, upgrade_type=kind)], **said
    )


@pytest.mark.parametrize("version", [1, 2])
def test_a_level_is_lowered_and_raised_again(version: int) -> None:
    async def steps(plane: ControlPlane) -> None:
        reply = await plane.ask(update_features, to("group.version", 0, SAFE_DOWNGRADE), version)
        assert (reply.error_code, reply.error_message) == (0, None)
        assert len(reply.results) == (1 if version == 1 else 0)
        assert "group.version" not in plane.image.features
        assert (await plane.ask(update_features, to("group.version", 1), version)).error_code == 0
        assert plane.image.features["group.version"] == 1

    walk(steps)


def test_a_cluster_of_an_earlier_release_goes_up_to_transactions_step_by_step() -> None:
    async def steps(plane: ControlPlane) -> None:
        await plane.ask(update_features, to("transaction.version", 0, SAFE_DOWNGRADE), 2)
        assert "transaction.version" not in plane.image.features
        for level in (1, 2):
            assert (await plane.ask(update_features, to("transaction.version", level), 2)).error_code == 0
            assert plane.image.features["transaction.version"] == level

    walk(steps)


def test_version_0_says_downgrade_with_a_flag() -> None:
    async def steps(plane: ControlPlane) -> None:
        for allowed, error in ((False, INVALID_UPDATE_VERSION.code), (True, 0)):
            update = Update(feature="group.version", max_version_level=0, allow_downgrade=allowed)
            reply = await plane.ask(update_features, UpdateFeaturesRequest(feature_updates=[update]), 0)
            assert reply.error_code == error

    walk(steps)


@pytest.mark.parametrize(
    "request_",
    [
        to("nonsense", 1),
        to("group.version", 9),
        to("group.version", 0),
        to("group.version", -1, SAFE_DOWNGRADE),
        to("metadata.version", 7, SAFE_DOWNGRADE),
        to("kraft.version", 0, SAFE_DOWNGRADE),
        to("transaction.version", 3),
        to("transaction.version", 1),
    ],
    ids=lambda request: str(request.feature_updates[0]),
)
def test_what_cannot_be_is_refused_with_a_reason(request_: UpdateFeaturesRequest) -> None:
    async def steps(plane: ControlPlane) -> None:
        before = dict(plane.image.features)
        reply = await plane.ask(update_features, request_, 2)
        assert reply.error_code == INVALID_UPDATE_VERSION.code
        assert reply.error_message
        assert plane.image.features == before

    walk(steps)


def test_validate_only_changes_nothing() -> None:
    async def steps(plane: ControlPlane) -> None:
        request = to("group.version", 0, SAFE_DOWNGRADE, validate_only=True)
        assert (await plane.ask(update_features, request, 2)).error_code == 0
        assert plane.image.features["group.version"] == 1

    walk(steps)


def test_it_takes_the_right_to_alter_the_cluster() -> None:
    async def steps(plane: ControlPlane) -> None:
        reply = await plane.ask(update_features, to("group.version", 0, SAFE_DOWNGRADE), 2)
        assert reply.error_code == CLUSTER_AUTHORIZATION_FAILED.code
        assert plane.image.features["group.version"] == 1

    walk(steps, authorizer=Recording(Asked(Operation.ALTER, ResourceType.CLUSTER, "kafka-cluster")))
