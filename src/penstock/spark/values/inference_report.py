"""What was found when a schema was inferred, for people to read before they trust it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FieldReport:
    """One field. `type` is empty when the field was left out; `present` of `possible` parents have it."""

    path: str
    type: str
    present: int
    possible: int
    example: str
    note: str

    @property
    def share(self) -> str:
        """How often the field is there; never rounded up to always."""
        if self.present >= self.possible:
            return "always"
        return f"{min(99.9, 100 * self.present / self.possible):.1f} %"


@dataclass(frozen=True, slots=True)
class InferenceReport:
    """A schema and the evidence for it."""

    ddl: str
    fields: tuple[FieldReport, ...]
    looked_at: int
    unreadable: int
    first_unreadable: str

    @property
    def conflicts(self) -> tuple[FieldReport, ...]:
        """Fields whose values do not go together; they became strings."""
        return tuple(field for field in self.fields if field.note.startswith("conflict"))

    def to_ddl(self) -> str:
        """The columns for `value.schema`."""
        return self.ddl

    def __str__(self) -> str:
        lines = [f"{self.looked_at:,} records looked at"]
        if self.unreadable:
            lines[0] += f", {self.unreadable:,} could not be read; the first: {self.first_unreadable}"
        header = ("field", "type", "present", "example", "note")
        rows = [header, *((f.path, f.type or "-", f.share, f.example, f.note) for f in self.fields)]
        widths = [min(40, max(len(row[at]) for row in rows)) for at in range(len(header))]
        for row in rows:
            cells = (_fitted(cell, width) for cell, width in zip(row[:-1], widths, strict=False))
            lines.append(f"  {'  '.join(cells)}  {row[-1]}".rstrip())
        lines.append(f"value.schema = {self.ddl}")
        return "\n".join(lines)


def _fitted(cell: str, width: int) -> str:
    return cell.ljust(width) if len(cell) <= width else cell[: width - 1] + "…"
