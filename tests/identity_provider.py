"""An identity provider for tests: a key set, a token endpoint, keys that change, answers that fail."""

from __future__ import annotations

import base64
import contextlib
import json
import threading
import time
import urllib.parse
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm

ISSUER, AUDIENCE = "https://idp.example", "kafka"


class IdentityProvider:
    """Signs tokens by one key at a time, and publishes that one."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.status = 200
        """What both endpoints answer."""
        self.lifetime_s = 600.0
        self.clients = {"alice": "wonder&land"}
        self.key_sets_given = self.tokens_given = 0
        self.scopes: list[str] = []
        self._rotations = 0
        self.rotate()

    @property
    def keys_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/keys"

    @property
    def tokens_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/token"

    def rotate(self) -> None:
        """From now on another key signs, and the old one is not published any more."""
        self._rotations += 1
        self.key_id = f"key-{self._rotations}"
        self.key = ec.generate_private_key(ec.SECP256R1())

    def key_set(self) -> dict[str, Any]:
        return {"keys": [{**json.loads(ECAlgorithm.to_jwk(self.key.public_key())), "kid": self.key_id, "use": "sig"}]}

    def token(
        self, name: str = "alice", *, key: Any = None, algorithm: str = "ES256", key_id: str = "", **claims: Any
    ) -> str:
        """A good one, but for what is asked for."""
        now_s = int(time.time())
        good = {"sub": name, "iss": ISSUER, "aud": AUDIENCE, "iat": now_s, "exp": now_s + self.lifetime_s}
        headers = {"kid": key_id or self.key_id}
        return jwt.encode({**good, **claims}, self.key if key is None else key, algorithm, headers)

    def answer(self, path: str, authorization: str, form: dict[str, str]) -> tuple[int, dict[str, Any]]:
        if self.status != 200:
            return self.status, {"error": "the provider is not well"}
        if path == "/keys":
            self.key_sets_given += 1
            return 200, self.key_set()
        name, _, secret = base64.b64decode(authorization.removeprefix("Basic ")).decode().partition(":")
        if form.get("grant_type") != "client_credentials" or self.clients.get(name) != secret:
            return 401, {"error": "invalid_client"}
        self.tokens_given += 1
        self.scopes.append(form.get("scope", ""))
        return 200, {"access_token": self.token(name), "token_type": "Bearer", "expires_in": self.lifetime_s}


@contextlib.contextmanager
def identity_provider(kind: type[IdentityProvider] = IdentityProvider) -> Iterator[IdentityProvider]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.do_POST()

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0))).decode()
            form = dict(urllib.parse.parse_qsl(body))
            status, answer = provider.answer(self.path, self.headers.get("authorization", ""), form)
            data = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Location", provider.keys_url)  # counts when the status is a redirect
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_words: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        provider = kind(server.server_port)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield provider
        finally:
            server.shutdown()
            thread.join()
