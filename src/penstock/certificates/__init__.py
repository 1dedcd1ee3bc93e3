"""Authorities and certificates of a cluster: made, renewed, rotated and shown, as files in a directory. Floor 6.

Duty: everything that a cluster needs to know its nodes and clients by certificates, without another tool. Two
authorities: the cluster's signs nodes and nobody else, the clients' signs clients and never anybody who could be taken
for a node. Listeners between nodes trust only the first.

May import `transport.tls` and below. Needs `cryptography`, which is imported with this room: nothing that starts
without making certificates imports it. Time comes in with the call.

Invariants: every file is written whole or not at all, mode 0600 from its first byte on; a key belongs to exactly one
certificate; whatever step of a rotation is cut short can be done again.

Read `subjects.py` (who may be called what), `authority.py` (an authority and its directory), `issuing.py`,
`rotating.py` (a new authority in three steps), `directory.py` (both authorities and all they issued, in one place),
`showing.py` and `files.py`. `node_settings.py` and `client_files.py` are what nodes and clients are told, as texts;
`users.py` makes records of the first user, `cluster_secrets.py` has what only nodes know, `cluster.py` all that makes a
cluster a secured one, `local.py` all of that for one machine.
"""

from penstock.certificates.authority import Authority, BadCertificate, Role, create_authority, open_authority
from penstock.certificates.client_files import ClientFiles
from penstock.certificates.cluster import SecuredCluster
from penstock.certificates.directory import CertificateDirectory, leaf_of
from penstock.certificates.issuing import Issued, issue_client, issue_node, renew, write_issued
from penstock.certificates.rotating import Step, begin_rotation, finish_rotation, rotation_step, switch_rotation
from penstock.certificates.showing import Shown, show

__all__ = [
    "Authority",
    "BadCertificate",
    "CertificateDirectory",
    "ClientFiles",
    "Issued",
    "Role",
    "SecuredCluster",
    "Shown",
    "Step",
    "begin_rotation",
    "create_authority",
    "finish_rotation",
    "issue_client",
    "issue_node",
    "leaf_of",
    "open_authority",
    "renew",
    "rotation_step",
    "show",
    "switch_rotation",
    "write_issued",
]
