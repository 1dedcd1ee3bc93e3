"""Somebody who comes to do harm: `python -m tests.faults.abuse.attacker WAY PORT COUNT STAY_S SEED`.

`strangers` open connections and never get to the end of a handshake or a login; they stay until the node hangs up, or
for so many seconds. `mutations` send TLS records, SASL tokens and requests that were changed on the way, before anybody
has logged in; those who log in use a name that exists and a password that is wrong. At the end a line of JSON says what
became of them.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import hmac
import json
import random
import resource
import struct
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import uvloop

from penstock.protocol.frame import decode_response, encode_request
from penstock.protocol.messages.metadata import MetadataRequest
from penstock.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from penstock.protocol.messages.sasl_handshake import SaslHandshakeRequest
from penstock.protocol.wire import Malformed
from tests.faults.abuse.raw_tls import Gone, RawTls, distrusting_nobody
from tests.faults.mutations import mutate, seeds

OPENING_AT_ONCE = 200
MUTATING_AT_ONCE = 40
ANSWER_S = 1.0
DRIP_S = 0.3
HOSTS = 250
NAME = "admin"
"""A user that there is."""
HANDSHAKE, AUTHENTICATE, METADATA = 17, 36, 3


def host(number: int) -> str:
    """The loopback has sixteen million addresses, and bounds are by address too."""
    return f"127.7.{number // HOSTS % HOSTS}.{number % HOSTS + 1}"


class Attack:
    def __init__(self, port: int, stay_s: int, seed: int) -> None:
        self.port, self.stay_s, self.chance = port, stay_s, random.Random(seed)
        self.context = distrusting_nobody()
        self.outcomes: Counter[str] = Counter()
        self.longest_s = 0.0

    @contextlib.asynccontextmanager
    async def connected(self, from_host: str) -> AsyncIterator[RawTls]:
        tls = RawTls(self.context)
        try:
            await tls.connect(self.port, from_host)
            yield tls
        except (Gone, ConnectionError):
            self.outcomes["hung up"] += 1
        except TimeoutError:
            self.outcomes["no answer"] += 1
        finally:
            tls.close()

    async def many(self, count: int, at_once: int, act: Callable[[int], Coroutine[Any, Any, None]]) -> None:
        numbers = iter(range(count))

        async def worker() -> None:
            for number in numbers:
                await act(number)

        await asyncio.gather(*(worker() for _ in range(min(at_once, count))))

    # Strangers.

    async def strangers(self, count: int) -> None:
        opened: list[asyncio.Task[None]] = []
        few = asyncio.Semaphore(OPENING_AT_ONCE)
        for number in range(count):
            await few.acquire()
            opened.append(asyncio.create_task(self._stranger(number, few.release)))
        await asyncio.gather(*opened)

    async def _stranger(self, number: int, is_open: Callable[[], None]) -> None:
        # One in eight comes from the address of the others, where the bound by address is met.
        async with self.connected("127.0.0.1" if number % 8 == 0 else host(number)) as tls:
            began = time.monotonic()
            try:
                async with asyncio.timeout(ANSWER_S * 10):
                    await self._begin(number % 10, tls)
            finally:
                is_open()
            self.outcomes["opened"] += 1
            try:
                async with asyncio.timeout(self.stay_s):
                    if number % 10 == 9:
                        await self._drip(tls)
                    await tls.until_gone()
                self.outcomes["ended by the node"] += 1
            except TimeoutError:
                self.outcomes["still there"] += 1
            finally:
                self.longest_s = max(self.longest_s, time.monotonic() - began)

    async def _begin(self, kind: int, tls: RawTls) -> None:
        """Silence, half a greeting, a greeting, and TLS without a login or with half of one."""
        hello = tls.hello()
        if kind < 3:
            return
        if kind < 5:
            await tls.send_bytes(hello[: len(hello) // 2])
            return
        await tls.send_bytes(hello)
        if kind < 7:
            return
        await tls.shake()
        if kind == 7:
            await tls.send(encode_request(1, "x", SaslHandshakeRequest(mechanism="SCRAM-SHA-256"), 1)[:9])

    async def _drip(self, tls: RawTls) -> None:
        """A frame that comes byte by byte, each just in time for nobody."""
        with contextlib.suppress(Gone):
            for byte in struct.pack(">i", 500_000) + bytes(1_000):
                await tls.send(bytes([byte]))
                await asyncio.sleep(DRIP_S)

    # Mutations.

    async def mutations(self, count: int) -> None:
        self._frames = seeds(self.chance)
        await self.many(count, MUTATING_AT_ONCE, self._mutation)

    async def _mutation(self, number: int) -> None:
        async with self.connected(host(number)) as tls, asyncio.timeout(ANSWER_S):
            self.outcomes["tried"] += 1
            hello = tls.hello()
            match number % 10:
                case 0 | 1 | 2 | 3:
                    await tls.send_bytes(self._changed(hello))
                    await self._seen_out(tls)
                case 4:
                    await tls.send_bytes(hello)
                    await tls.shake(self._changed)
                    await self._seen_out(tls)
                case 5 | 6 | 7:
                    await tls.send_bytes(hello)
                    await tls.shake()
                    await self._log_in(tls)
                case _:
                    await tls.send_bytes(hello)
                    await tls.shake()
                    await tls.send(mutate(self.chance.choice(self._frames), self.chance))
                    self._heard(await tls.frame())
                    await self._ask(tls)

    async def _seen_out(self, tls: RawTls) -> None:
        """A handshake that a change did no harm to goes on, and asks."""
        await tls.shake()
        await self._ask(tls)

    def _changed(self, data: bytes) -> bytes:
        changed = bytearray(data)
        for _ in range(self.chance.randint(1, 3)):
            at = self.chance.randrange(len(changed) or 1)
            match self.chance.randrange(4):
                case 0 if changed:
                    changed[at % len(changed)] ^= 1 << self.chance.randrange(8)
                case 1:
                    del changed[at:]
                case 2:
                    changed[at:at] = self.chance.randbytes(self.chance.choice((1, 4, 400)))
                case _:
                    changed[at : at + 2] = self.chance.choice((b"\xff\xff", b"\0\0", b"\x17\x03"))
        return bytes(changed)

    async def _log_in(self, tls: RawTls) -> None:
        """A login of somebody who does not know the password, changed in places."""
        mechanism = self.chance.choice(("SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN", "OAUTHBEARER", ""))
        await tls.send(encode_request(1, "x", SaslHandshakeRequest(mechanism=mechanism), 1))
        reply = decode_response(await tls.frame(), HANDSHAKE, 1)[1]
        if reply.error_code:  # type: ignore[attr-defined]
            raise Gone
        nonce = base64.b64encode(self.chance.randbytes(16)).decode()
        bare = f"n={NAME},r={nonce}"
        first = await self._token(tls, f"n,,{bare}".encode())
        final = self._final(mechanism, bare, first.auth_bytes.decode())
        answer = await self._token(tls, final.encode())
        if not answer.error_code:
            self.outcomes["in"] += 1
        await self._ask(tls)

    def _final(self, mechanism: str, bare: str, server_first: str) -> str:
        told = dict(part.split("=", 1) for part in server_first.split(","))
        name = "sha512" if mechanism.endswith("512") else "sha256"
        salted = hashlib.pbkdf2_hmac(name, b"a guess", base64.b64decode(told["s"]), int(told["i"]))
        key = hmac.digest(salted, b"Client Key", name)
        signed = f"{bare},{server_first},c=biws,r={told['r']}".encode()
        signature = hmac.digest(hashlib.new(name, key).digest(), signed, name)
        proof = bytes(left ^ right for left, right in zip(key, signature, strict=True))
        return f"c=biws,r={told['r']},p={base64.b64encode(proof).decode()}"

    async def _token(self, tls: RawTls, token: bytes) -> Any:
        if self.chance.random() < 0.6:
            token = self._changed(token)
        frame = encode_request(2, "x", SaslAuthenticateRequest(auth_bytes=token), 2)
        if self.chance.random() < 0.2:
            frame = frame[:4] + self._changed(frame[4:])
        await tls.send(frame)
        answer = await tls.frame()
        try:
            reply: Any = decode_response(answer, AUTHENTICATE, 2)[1]
        except Malformed:
            # The change was one of key or version, and so is the answer's form. Whoever is in by it hears more.
            await self._ask(tls)
            raise Gone from None
        if reply.error_code:
            self.outcomes["told that it is refused"] += 1
            raise Gone
        return reply

    def _heard(self, reply: bytes) -> None:
        self.outcomes["answered"] += 1

    async def _ask(self, tls: RawTls) -> None:
        """Whoever gets an answer to this is in."""
        await tls.send(encode_request(77, "x", MetadataRequest(topics=None), 12))
        reply = await tls.frame()
        with contextlib.suppress(Malformed):
            correlation_id, found = decode_response(reply, METADATA, 12)
            if correlation_id == 77 and found.brokers:  # type: ignore[attr-defined]
                self.outcomes["in"] += 1


async def main(way: str, port: int, count: int, stay_s: int, seed: int) -> dict[str, Any]:
    attack = Attack(port, stay_s, seed)
    await (attack.strangers if way == "strangers" else attack.mutations)(count)
    return {**attack.outcomes, "in": attack.outcomes["in"], "longest_s": round(attack.longest_s, 1)}


if __name__ == "__main__":
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    way, *numbers = sys.argv[1:]
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        print(json.dumps(runner.run(main(way, *map(int, numbers)))), flush=True)
