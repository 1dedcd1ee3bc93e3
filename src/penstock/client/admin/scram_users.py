"""Users who log in by SCRAM: their passwords are salted here, and never leave this process as they are."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

from penstock.client.admin.session import Results, Session, check, gathered, refused
from penstock.client.errors import ClientError
from penstock.protocol.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from penstock.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)
from penstock.security.scram.keys import BY_NAME, BY_TYPE, ITERATIONS_DEFAULT, RANDOM_BYTES, SHA_512, salt_of


@dataclass(frozen=True, slots=True)
class ScramCredential:
    """How a user can log in; nothing that would let anybody do it."""

    mechanism: str
    iterations: int


@dataclass(frozen=True, slots=True)
class ScramPassword:
    """A password to set, in place of the one before, if any. ValueError for a mechanism that nobody knows."""

    user: str
    password: str = field(repr=False)
    mechanism: str = SHA_512.name
    iterations: int = ITERATIONS_DEFAULT

    def __post_init__(self) -> None:
        _check(self.mechanism)


@dataclass(frozen=True, slots=True)
class ScramRemoval:
    """A credential to remove: its user can no longer log in by that mechanism."""

    user: str
    mechanism: str = SHA_512.name

    def __post_init__(self) -> None:
        _check(self.mechanism)


ScramChange = ScramPassword | ScramRemoval


def _check(mechanism: str) -> None:
    if mechanism not in BY_NAME:
        raise ValueError(f"{mechanism!r} is none of {', '.join(BY_NAME)}")


async def describe_scram_users(session: Session, names: Iterable[str] | None) -> Results[str, list[ScramCredential]]:
    """How users can log in by SCRAM; all of them for None."""
    if names is None:
        everybody = await session.patient(lambda: _described(session, None))
        results: Results[str, list[ScramCredential]] = Results()
        results.done.update({name: told for name, told in everybody.items() if not isinstance(told, ClientError)})
        return results
    return await session.settled(names, lambda pending: gathered(lambda: _described(session, pending), pending))


async def _described(session: Session, names: list[str] | None) -> dict[str, list[ScramCredential] | ClientError]:
    made = DescribeUserScramCredentialsRequest
    users = None if names is None else [made.UserName(name=name) for name in names]
    reply: DescribeUserScramCredentialsResponse = await session.any(made(users=users))
    check(reply.error_code, reply.error_message, "listing users")
    return {
        result.user: refused(result.error_code, result.error_message, f"user {result.user!r}")
        if result.error_code
        else [ScramCredential(_mechanism(info.mechanism), info.iterations) for info in result.credential_infos]
        for result in reply.results
    }


def _mechanism(number: int) -> str:
    return BY_TYPE[number].name if number in BY_TYPE else str(number)


async def alter_scram_users(session: Session, changes: Iterable[ScramChange]) -> Results[ScramChange, None]:
    """Sets and removes credentials. A request names a user once, so whoever has several changes takes several."""

    async def ask(pending: list[ScramChange]) -> Mapping[ScramChange, ClientError | None]:
        outcomes: dict[ScramChange, ClientError | None] = {}
        for part in _rounds(pending):
            outcomes.update(await gathered(partial(_altered, session, part), part))
        return outcomes

    return await session.settled(changes, ask)


def _rounds(changes: list[ScramChange]) -> list[list[ScramChange]]:
    """The changes in parts that have every user once, each user's in order."""
    rounds: list[dict[str, ScramChange]] = []
    for change in changes:
        turn = next((each for each in rounds if change.user not in each), None)
        if turn is None:
            rounds.append(turn := {})
        turn[change.user] = change
    return [list(each.values()) for each in rounds]


async def _altered(session: Session, changes: list[ScramChange]) -> dict[ScramChange, ClientError | None]:
    request = AlterUserScramCredentialsRequest()
    for change in changes:
        mechanism = BY_NAME[change.mechanism]
        if isinstance(change, ScramRemoval):
            deletion = AlterUserScramCredentialsRequest.ScramCredentialDeletion
            request.deletions.append(deletion(name=change.user, mechanism=mechanism.type))
            continue
        salt = salt_of(secrets.token_bytes(RANDOM_BYTES))
        # Thousands of rounds of a hash take milliseconds that the loop has other use for. Whether there are enough of
        # them is for the cluster to say.
        salting = mechanism.derive(change.password, salt, max(change.iterations, 1))
        salted = await asyncio.to_thread(salting.run)
        request.upsertions.append(
            AlterUserScramCredentialsRequest.ScramCredentialUpsertion(
                name=change.user,
                mechanism=mechanism.type,
                iterations=change.iterations,
                salt=salt,
                salted_password=salted,
            )
        )
    reply = await session.any(request)
    told = {result.user: result for result in reply.results}
    return {
        change: refused(result.error_code, result.error_message, f"user {change.user!r}")
        if (result := told[change.user]).error_code
        else None
        for change in changes
        if change.user in told
    }
