"""Mistakes in steps are told all at once, in their places, with a guess."""

from __future__ import annotations

import tomllib

import pytest

from penstock.agent.transforms import Chain
from penstock.declared.fields import Notes, Table
from penstock.declared.positions import Positions
from tests.unit.agent.transforms.chains import mistakes, read, steps


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        ('parze = "json"', "3:1: 'parze' is nothing that a step can do; did you mean 'parse'?"),
        (
            "colour = 1",
            "2:1: this step does nothing; it must have one of parse, add, drop, rename, keep, filter, sample, mask, "
            "route, timestamp",
        ),
        ('drop = ["a"]\nkeep = ["b"]', "4:1: a step does one thing: drop and keep are 2 steps, in their order"),
        ('parse = "jsn"', "3:1: there is no form 'jsn'; did you mean 'json'?"),
        (
            'parse = "json"\npattern = "x"',
            "4:1: 'pattern' means nothing in step 1 (parse); "
            "there is 'from', 'into', 'keep_original', 'on_error', 'parse'",
        ),
        (
            'parse = "json"\non_eror = "keep"',
            "4:1: 'on_eror' means nothing in step 1 (parse); did you mean 'on_error'?",
        ),
        (
            'parse = "json"\non_error = "dead"',
            '4:1: on_error = "dead" needs a topic: write dead_letters = "…" beside the input\'s topic',
        ),
        ('parse = "json"\ninto = "a..b"', "4:1: 'a..b' is no name of a field: between dots there must be a name"),
        ('parse = "json"\ninto = "*_*"', "4:1: into = '*_*' has more than one *: it stands for the name of the field"),
        ('parse = "csv"', '2:1: step 1 (parse) has no columns: name them, such as columns = ["id", "name"]'),
        ('parse = "csv"\ncolumns = ["a", "a"]', "4:1: 'a' is there more than once"),
        ('parse = "csv"\ncolumns = ["a"]\nquote = "ab"', '5:1: quote must be one character, such as quote = ";"'),
        (
            'parse = "csv"\ncolumns = ["a"]\ntypes = { a = "integer" }',
            "5:11: a cannot be 'integer'; did you mean 'int'?",
        ),
        (
            'parse = "regex"\npattern = "a(b"',
            "4:1: this is no pattern: missing ), unterminated subpattern at position 1",
        ),
        ('parse = "regex"\npattern = "ab"', "4:1: it has no named groups, so it makes no fields: write (?P<name>…)"),
        ('parse = "access_log"\nformat = "ngnix"', "4:1: format = 'ngnix' is not known; did you mean 'nginx'?"),
        ('add = { a = "{b" }', "3:14: '{' has no partner; write it twice to mean it"),
        ("add = {}", '3:1: add names nothing: write add = { env = "prod" }'),
        ('drop = [""]', "3:9: drop must hold texts, not an empty text"),
        ("rename = { a = 1 }", "3:12: the new name of a must be a text in quotes, not a number"),
        ('filter = "status = 5"', "3:18: '=' is not known; did you mean '=='?"),
        ("filter = \"a matches '('\"", "3:1: this is no pattern: missing ), unterminated subpattern at position 0"),
        ("sample = 1.5", "3:1: sample = 1.5 is neither a part from 0 to 1 nor a whole number such as 10"),
        ('sample = "all"', "3:1: sample must be a part such as 0.1, or 10 for one in ten, not a text"),
        (
            'mask = "emial"',
            "3:1: 'emial' is nothing to look for; did you mean 'email'? A pattern of your own stands between slashes",
        ),
        ('mask = "whole"', '3:1: mask = "whole" replaces whole fields: name them with in = ["password"]'),
        ('mask = "email"\nhash_key = "short"', "4:1: a key of 5 characters is guessed quickly: take 8 or more"),
        (
            'mask = "email"\nhash_key_env = "NOT_SET_ANYWHERE"',
            "4:1: the variable NOT_SET_ANYWHERE is not set: it must hold the key of the hash",
        ),
        (
            'mask = "email"\nwith = "x"\nhash_key = "long enough"',
            "4:1: either a fixed text (with) or a hash (hash_key), not both",
        ),
        (
            'route = [{ when = "a == 1" }]',
            '3:10: route 1 has no topic: where such events go, such as { when = "…", topic = "errors" }',
        ),
        (
            'route = [{ topic = "a b" }]',
            "3:12: ' ' may not stand in the name of a topic: letters, digits, '.', '_' and '-' may",
        ),
        ("route = []", '3:1: route has no rules: write route = [{ when = "status >= 500", topic = "errors" }]'),
        (
            'timestamp = "at"\nzone = "Berlin"',
            "4:1: there is no time zone 'Berlin': write UTC, +02:00 or a name such as Europe/Berlin",
        ),
        ('timestamp = "at"\nformat = "%Q"', "4:1: this is no pattern of a time: 'Q' is a bad directive in format '%Q'"),
    ],
)
def test_a_mistake_in_a_step(step: str, expected: str) -> None:
    assert mistakes(steps(step)) == [f"agent.toml:{expected}"]


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("", '1:1: inputs.web has no topic: where its records go, such as topic = "logs" or "logs.{host}"'),
        ('topic = "a/b"', "1:1: '/' may not stand in the name of a topic: letters, digits, '.', '_' and '-' may"),
        ('topic = "a.{b"', "1:12: '{' has no partner; write it twice to mean it"),
        ('topic = "a"\nkey = ".x"', "2:1: '.x' is no name of a field: between dots there must be a name"),
        ('topic = "a"\nheaders = ["hots"]', "2:12: there is no header 'hots'; did you mean 'host'?"),
        ('topic = "a"\nencode = "yaml"', "2:1: encode = 'yaml' is not known; there is 'raw', 'json', 'auto'"),
        ('topic = "a"\ndead_letters = "d.{x}"', "2:1: what cannot be understood has no field 'x': name one topic"),
    ],
)
def test_a_mistake_in_the_routing(key: str, expected: str) -> None:
    assert mistakes(key) == [f"agent.toml:{expected}"]


def test_masks_of_single_fields_do_not_go_with_raw_lines() -> None:
    text = steps('parse = "json"', 'mask = "whole"\nin = ["a"]', head='topic = "t"\nencode = "raw"')
    assert mistakes(text) == [
        'agent.toml:7:1: with encode = "raw" the line goes out as it came: leave `in` away to mask in all of it'
    ]


def test_patterns_that_only_python_takes_and_rules_that_nothing_reaches_are_warned_of() -> None:
    text = steps("filter = \"message matches '(?=x)'\"", 'route = [{ topic = "a" }, { topic = "b" }]')
    _, wrong, warnings = read(text)
    assert wrong == []
    assert [(each.line, each.words.split(":")[0].split(" (")[0]) for each in warnings] == [
        (3, "only Python's re takes this pattern"),
        (5, "nothing gets here"),
    ]


def test_steps_of_all_inputs_are_told_of_once() -> None:
    text = '[[transforms]]\nparze = "json"\n[[transforms]]\ndrop = ["a"]'
    notes = Notes(Positions(text))
    shared = list(Table(tomllib.loads(text), (), notes, "the file").table_list("transforms"))
    first = Chain.read((), shared, notes)
    assert Chain.read((), shared, notes) == first
    assert [step.title for step in first] == ["shared step 2 (drop)"]
    assert len(notes.mistakes) == 1
