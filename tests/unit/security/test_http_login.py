"""Logins by HTTP's Authorization: who is known, what failures are called, and settings that make no login."""

from __future__ import annotations

from base64 import b64encode

import pytest

from penstock.model.secret import Secret
from penstock.security.http_login import Attempt, BadHttpLogin, HttpLogins

WRONG = "wrong user name or password"
BOTH = HttpLogins("prometheus", Secret("pa:ss wörd"), Secret("t0ken"))


def basic(text: str | bytes) -> str:
    return "Basic " + b64encode(text.encode() if isinstance(text, str) else text).decode()


@pytest.mark.parametrize(
    ("header", "attempt"),
    [
        (basic("prometheus:pa:ss wörd"), Attempt("basic", "prometheus")),
        ("bAsIc   " + basic("prometheus:pa:ss wörd")[6:], Attempt("basic", "prometheus")),
        ("Bearer t0ken", Attempt("bearer", "")),
        (basic("prometheus:pa"), Attempt("basic", "prometheus", WRONG)),
        (basic("prometheus:"), Attempt("basic", "prometheus", WRONG)),
        (basic("prometheus"), Attempt("basic", "prometheus", WRONG)),
        (basic("grafana:pa:ss wörd"), Attempt("basic", "grafana", WRONG)),
        (basic(b"\xff\xfe:x"), Attempt("basic", "\ufffd\ufffd", WRONG)),
        (basic(""), Attempt("basic", "", WRONG)),
        ("Basic !!!", Attempt("basic", "", "the credentials are not base64")),
        ("Bearer t0ken2", Attempt("bearer", "", "wrong token")),
        ("Bearer", Attempt("bearer", "", "wrong token")),
        ("Bearer \u00ff", Attempt("bearer", "", "wrong token")),
        ("Digest x", Attempt("digest", "", "this way to log in is not offered")),
        ("", Attempt("", "", "this way to log in is not offered")),
    ],
)
def test_who_is_known_and_why_others_are_not(header: str, attempt: Attempt) -> None:
    judged = BOTH.judge(header)
    assert judged == attempt
    assert judged.known == (not attempt.failure)


def test_only_what_is_set_is_offered_and_opens() -> None:
    token = HttpLogins(token=Secret("t0ken"))
    assert token.challenges() == ('Bearer realm="penstock"',)
    assert not token.judge(basic("prometheus:pa:ss wörd")).known
    password = HttpLogins("a", Secret("b"))
    assert password.challenges() == ('Basic realm="penstock", charset="UTF-8"',)
    assert not password.judge("Bearer b").known
    assert len(BOTH.challenges()) == 2


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (("a", None, None), "set together"),
        (("", Secret("b"), None), "set together"),
        (("a:b", Secret("c"), None), "no colon"),
        (("a", Secret(""), None), "the password is empty"),
        (("", None, Secret("")), "the token is empty"),
    ],
)
def test_half_a_login_is_none(given: tuple[str, Secret | None, Secret | None], why: str) -> None:
    with pytest.raises(BadHttpLogin, match=why):
        HttpLogins(*given)
