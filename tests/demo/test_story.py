"""The whole demo, small: it ends with 0 when all is well and with 1 when a record is missing."""

from __future__ import annotations

import pytest

from demo import __main__ as story


@pytest.mark.parametrize(("arguments", "code"), [((), 0), (("--plant", "doubled"), 1)])
def test_the_exit_code_tells_whether_everything_came_back(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], code: int
) -> None:
    assert story.main(["--records", "20000", *arguments]) == code
    said = capsys.readouterr().out
    assert "kill -9" in said
    assert ("FAIL" in said) is bool(code)


def test_a_node_that_does_not_come_up_is_a_failure(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("demo.node.sys.executable", "/bin/false")
    assert story.main(["--records", "1"]) == 1
    assert "did not come up" in capsys.readouterr().out
