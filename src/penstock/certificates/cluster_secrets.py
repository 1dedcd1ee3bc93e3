"""What all nodes of a cluster have in common and nobody else: `secrets.properties`, beside the certificates.

The file is made once. Whoever writes a node's `server.properties` refers to it by a provider of Kafka's, so that the
secret stands in no other file, and Apache Kafka finds it as well.

One secret so far, `delegation.token.secret.key`: nodes sign delegation tokens with it, and by it all of them show the
same salt for a user that does not exist.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from penstock.certificates.files import create_private, private_directory
from penstock.certificates.node_settings import properties_text
from penstock.security.references import FILE_CLASS

FILE: Final = "secrets.properties"
TOKEN_SECRET: Final = "delegation.token.secret.key"
SECRET_BYTES: Final = 32
PROVIDER: Final = "cluster"
PROVIDERS: Final = "config.providers"
# They end a part of a reference, or of a list of paths, and there is no way to escape them.
_NOT_IN_REFERENCES: Final = frozenset(":},")


@dataclass(frozen=True, slots=True)
class ClusterSecrets:
    """The file, which clusters of earlier releases do not have."""

    path: Path

    def make(self) -> None:
        """Writes the file if it is not there; one that is there stays as it is."""
        if self.path.exists():
            return
        import secrets

        private_directory(self.path.parent)
        text = properties_text(
            {TOKEN_SECRET: secrets.token_urlsafe(SECRET_BYTES)},
            "Known to all nodes of the cluster, and to nobody else.",
        )
        create_private(self.path, text.encode())

    def settings(self, at: Path | None = None) -> dict[str, str]:
        """What refers a node to it, `at` where its host will have it; nothing when there is no such file."""
        path = str(at or self.path)
        if not self.path.exists() or not _NOT_IN_REFERENCES.isdisjoint(path):
            return {}
        return {
            PROVIDERS: PROVIDER,
            f"{PROVIDERS}.{PROVIDER}.class": FILE_CLASS,
            f"{PROVIDERS}.{PROVIDER}.param.allowed.paths": path,
            TOKEN_SECRET: f"${{{PROVIDER}:{path}:{TOKEN_SECRET}}}",
        }


def overridden(own: Mapping[str, str], overrides: Mapping[str, str]) -> dict[str, str]:
    """Settings with somebody's own over them. Providers are added to ours: a reference whose provider nobody names is
    a text like any other, and this one would be a secret that everybody can guess."""
    found = {**own, **overrides}
    names = [each.strip() for given in (own, overrides) for each in given.get(PROVIDERS, "").split(",")]
    if any(names):
        found[PROVIDERS] = ",".join(dict.fromkeys(filter(None, names)))
    return found
