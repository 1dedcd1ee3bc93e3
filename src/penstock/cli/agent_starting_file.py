"""A first agent's file, with a comment for everything a beginner may want to change. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

DEFAULT_GLOBS: Final = ("logs/*.log",)


def starting_file(*, name: str, globs: Sequence[str], topic: str, bootstrap: str) -> str:
    """The text of the file; it is valid as it stands."""
    paths = json.dumps(list(globs or DEFAULT_GLOBS), ensure_ascii=False)
    lines = [
        "# An agent: inputs → transforms → topics.",
        "#   penstock agent validate -c FILE    checks it",
        "#   penstock agent test -c FILE        shows the records that lines become, without a broker",
        "#   penstock agent run -c FILE         runs it until Ctrl-C; SIGHUP reads this file again",
        "#   penstock agent status -c FILE      how it is",
        f"name = {_text(name)}",
        f"bootstrap = {_text(bootstrap)}",
        _line('# state_dir = "state"', f"positions and the spool; .penstock-agent/{name} if not set"),
        _line('# admin = "127.0.0.1:9645"', 'metrics and health; a free port if not set, or "off"'),
        _line(
            "# exactly_once = true",
            "records and positions in transactions: no line twice, for readers of committed records",
        ),
        "",
        "[output]",
        _line('memory = "64 MB"', "bound of what is read and not yet acknowledged; then inputs wait"),
        _line('# compression = "zstd"', "lz4 if not set; none, gzip, snappy"),
        "",
        _line("# [spool]", "network inputs go on while brokers are away"),
        _line('# size = "1 GB"', "then senders wait, or are told to come again"),
        "",
        "[inputs.logs]",
        'type = "tail"',
        _line(f"paths = {paths}", "files that grow; what is rotated away is read to its end"),
        _line(f"topic = {_text(topic)}", 'or "logs.{service}" with a field of the event'),
        _line('# key = "client"', 'a field, or "{host}"; keeps order by key'),
        _line(f"# dead_letters = {_text(topic + '.dead')}", "what cannot be understood; else it goes on as it is"),
        _line('# multiline = "python"', "lines that belong together: tracebacks of python, java, go"),
        "",
        _line("# [[inputs.logs.transforms]]", "in order, each with one verb"),
        _line('# parse = "json"', "json, logfmt, csv, regex, access_log"),
        "",
        "# [[inputs.logs.transforms]]",
        _line('# drop = ["password"]', "also add, keep, rename, mask, filter, sample, route"),
        "",
        "# [inputs.syslog]",
        '# type = "syslog"',
        _line('# listen = "udp://127.0.0.1:5514"', "also tcp:// and tls://"),
        '# topic = "syslog"',
        "",
        "# [inputs.api]",
        '# type = "http"',
        _line('# listen = "127.0.0.1:8089"', "JSON, NDJSON or raw; 200 when brokers have it"),
        '# topic = "events"',
    ]
    return "\n".join(lines) + "\n"


def _line(code: str, comment: str) -> str:
    return f"{code:<36}  # {comment}"


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)
