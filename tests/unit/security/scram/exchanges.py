"""Both sides of SCRAM run against each other, and credentials for it."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.model.ids import Millis
from penstock.model.secret import Secret
from penstock.security.exchange import Accepted, ClientStep, Derive, Finished, Rejected, ServerStep, Token
from penstock.security.scram.client import ScramClient
from penstock.security.scram.keys import Credential, Mechanism, Strangers, credential_of
from penstock.security.scram.server import ScramServer, TokenLogin

NOW = Millis(1_700_000_000_000)
STRANGERS = Strangers(b"a secret of the cluster")
SERVER_NONCE = "3rfcNHYJY1ZVvWVs7j"


@dataclass
class Known:
    """The credentials of a test."""

    users: dict[tuple[str, str], Credential] = field(default_factory=dict)
    tokens: dict[str, TokenLogin] = field(default_factory=dict)

    def of_user(self, mechanism: Mechanism, name: str) -> Credential | None:
        return self.users.get((mechanism.name, name))

    def of_token(self, mechanism: Mechanism, token_id: str) -> TokenLogin | None:
        return self.tokens.get(token_id)

    def add(
        self, mechanism: Mechanism, name: str, password: str, salt: bytes = b"salt", iterations: int = 4_096
    ) -> None:
        salted = mechanism.derive(password, salt, iterations).run()
        self.users[mechanism.name, name] = credential_of(mechanism, salted, salt, iterations)


def server(mechanism: Mechanism, known: Known, nonce: str = SERVER_NONCE) -> ScramServer:
    return ScramServer(mechanism, known, STRANGERS, nonce)


def heard(step: ServerStep | ClientStep) -> bytes:
    """The token of a step that has one."""
    assert isinstance(step, Token), step
    return step.data


def run(client: ScramClient, server: ScramServer) -> tuple[Accepted | Rejected, ClientStep | None]:
    """What became of a login: the server's verdict, and the client's if it was asked."""
    said: ClientStep = client.start()
    while True:
        if isinstance(said, Derive):
            said = client.worked(said.run())
        answer = server.heard(heard(said), NOW)
        if isinstance(answer, Derive):
            answer = server.worked(answer.run(), NOW)
        if isinstance(answer, Rejected):
            return answer, None
        if isinstance(answer, Accepted):
            return answer, client.heard(answer.token)
        said = client.heard(heard(answer))
        if isinstance(said, (Rejected, Finished)):
            raise AssertionError(f"the client ended before the server: {said}")


def client(mechanism: Mechanism, name: str, password: str, nonce: str = "fyko+d2lbbFgONRv9qkxdawL") -> ScramClient:
    return ScramClient(mechanism, name, Secret(password), nonce)
