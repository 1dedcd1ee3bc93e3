from __future__ import annotations

from pathlib import Path

import penstock.client

ROOM = Path(penstock.client.__file__).parent


def test_the_contract_of_the_room_names_every_part_of_it() -> None:
    contract = penstock.client.__doc__ or ""
    modules = [part.name for part in ROOM.glob("*.py") if part.name != "__init__.py"]
    rooms = [f"{part.parent.name}/" for part in ROOM.glob("*/__init__.py")]
    assert [name for name in [*modules, *rooms] if name not in contract] == []
    assert "Invariants:" in contract
