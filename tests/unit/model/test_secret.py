"""A secret is seen by nobody who does not ask for it by name."""

from __future__ import annotations

import copy
import dataclasses
import json
import logging
import pickle

import pytest

from penstock.model.secret import Secret


@dataclasses.dataclass
class Settings:
    user: str
    password: Secret


def test_no_way_of_printing_shows_it(caplog: pytest.LogCaptureFixture) -> None:
    secret = Secret("swordfish")
    logging.getLogger("x").warning("%s %r %s", secret, [secret], {"password": secret})
    shown = f"{secret} {secret!r} {secret:>20} {Settings('a', secret)} {caplog.text} {'%s' % secret}"  # noqa: UP031
    assert "swordfish" not in shown
    assert shown.count("[hidden]") == 8
    assert secret.reveal() == "swordfish"


def test_what_takes_objects_apart_leaves_it_whole() -> None:
    settings = Settings("a", Secret("swordfish"))
    assert "swordfish" not in str(dataclasses.asdict(settings))
    assert copy.deepcopy(settings) == settings
    with pytest.raises(TypeError):
        json.dumps(settings.password)
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(settings)


def test_secrets_are_equal_by_their_text() -> None:
    assert Secret("a") == Secret("a")
    assert Secret("a") != Secret("b")
    assert Secret("a") != "a"
    assert len({Secret("a"), Secret("a"), Secret("ä\ud800")}) == 2
    assert not Secret("")
    assert Secret("x")
