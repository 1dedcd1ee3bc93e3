// The pure parts of the pages, run by Node. What a browser has and Node has not is given here, before they are loaded.
import assert from "node:assert/strict";
import { test } from "node:test";
import "./browser";
import { about, bytes, exact, moment, span } from "../src/figures/numbers";
import { conditionOf, layOut, readable, tokens, type Line } from "../src/figures/jsonText";
import { ordered } from "../src/parts/ordered";
import { match } from "../src/routing/match";
import { to } from "../src/routing/place";
import { zone } from "../src/settings";

const textOf = (lines: Line[] | null): string =>
  (lines ?? []).map((line) => "  ".repeat(line.depth) + line.tokens.map((token) => token.text).join("")).join("\n");

test("every digit of a 64-bit number is shown", () => {
  assert.equal(exact("9223372036854775807"), "9,223,372,036,854,775,807");
  assert.equal(exact("-9007199254740993"), "-9,007,199,254,740,993");
  assert.equal(exact(null), "–");
});

test("figures are said shortly where that is enough", () => {
  assert.equal(about(1234567), "1.23M");
  assert.equal(about(0.25), "0.3");
  assert.equal(bytes("1536"), "1.5 KiB");
  assert.equal(bytes("0"), "0 B");
  assert.equal(span(850), "850 ms");
  assert.equal(span(3_600_000), "1 h");
  assert.equal(span(200_000), "3 min 20 s");
  assert.equal(span(59_999), "1 min");
  assert.equal(span(-5_000), "-5 s");
});

test("a moment is said in the zone that was chosen", () => {
  zone.value = "utc";
  assert.equal(moment("1732000000123"), "2024-11-19 07:06:40.123");
  assert.equal(moment("-1"), "–");
});

test("JSON is laid out with the numbers that are stored", () => {
  const text = '{"id":12345678901234567890,"x":1.10,"list":[1,{"a":[]}],"e":{},"s":"a\\"b"}';
  assert.equal(
    textOf(layOut(tokens(text) ?? [])),
    [
      "{",
      '  "id": 12345678901234567890,',
      '  "x": 1.10,',
      '  "list": [',
      "    1,",
      "    {",
      '      "a": []',
      "    }",
      "  ],",
      '  "e": {},',
      '  "s": "a\\"b"',
      "}",
    ].join("\n"),
  );
});

test("what is not JSON is not taken for it", () => {
  for (const text of [
    "",
    "{",
    "}",
    "[1,]",
    '{"a"}',
    '{"a":1,}',
    "{a:1}",
    "01",
    "1 2",
    "[1}",
    '"a',
    "nul",
    '{"a":1}}',
    "[,1]",
    '{"a" 1}',
    "+1",
    "'a'",
  ])
    assert.equal(tokens(text), null, text);
  for (const text of ["1", "null", '"a"', "[]", "{}", " [1, 2] ", '{"a":{"b":[]}}', "-0.5e+3"])
    assert.notEqual(tokens(text), null, text);
});

test("laying out loses nothing but white space: any JSON, seeded", () => {
  let seed = 20;
  const draw = (below: number): number => {
    seed = (seed * 1103515245 + 12345) % 2147483648;
    return Math.floor((seed / 2147483648) * below);
  };
  const value = (depth: number): unknown => {
    switch (draw(depth > 4 ? 4 : 6)) {
      case 0:
        return draw(1_000_000) - 500_000;
      case 1:
        return ["", "a", 'q"q', "\u2028", "<script>", "汉字", "\\"][draw(7)];
      case 2:
        return [true, false, null][draw(3)];
      case 3:
        return draw(1000) / 8;
      case 4:
        return Array.from({ length: draw(4) }, () => value(depth + 1));
      default:
        return Object.fromEntries(Array.from({ length: draw(4) }, (_, at) => ["k" + at, value(depth + 1)]));
    }
  };
  for (let round = 0; round < 2_000; round += 1) {
    const drawn = value(0);
    const shown = textOf(layOut(tokens(JSON.stringify(drawn)) ?? []));
    assert.deepEqual(JSON.parse(shown), drawn);
    assert.equal(shown, typeof drawn === "object" && drawn !== null ? shown : JSON.stringify(drawn));
  }
});

test("digits are put in order as numbers, and what is not known comes last", () => {
  const rows = [{ lag: "9" }, { lag: null }, { lag: "10" }, { lag: "9007199254740993" }, { lag: "9007199254740992" }];
  const of = (row: { lag: string | null }): bigint | null => (row.lag === null ? null : BigInt(row.lag));
  assert.deepEqual(
    ordered(rows, of, false).map((row) => row.lag),
    ["9", "10", "9007199254740992", "9007199254740993", null],
  );
  assert.deepEqual(
    ordered(rows, of, true).map((row) => row.lag),
    ["9007199254740993", "9007199254740992", "10", "9", null],
  );
});

test("a name goes into an address and comes out of it", () => {
  for (const name of ["orders", "a b", "ü/?#%", "..", "组"]) {
    const address = to("/groups/{}", name);
    assert.deepEqual(match("/groups/:name", address), { name });
  }
  assert.equal(match("/groups/:name", "/groups/%E0%A4%A"), null);
  assert.equal(match("/", "/topics"), null);
  assert.deepEqual(match("/", "/"), {});
});

test("a member that was clicked becomes a condition", () => {
  const text = '{"a":{"b":"q\\"q","n":12345678901234567890},"list":[{"x":1}],"odd key":true,"none":null,"a.b":1}';
  const members = layOut(tokens(text) ?? []).flatMap((line) => (line.member ? [line.member] : []));
  assert.deepEqual(
    members.map((member) => conditionOf(member, "==")),
    [
      'value.a.b == "q\\"q"',
      "value.a.n == 12345678901234567890",
      "`value.odd key` == true",
      "not exists value.none",
      null,
    ],
  );
  assert.equal(conditionOf(members[1]!, "!="), "value.a.n != 12345678901234567890");
});

test("letters are shown as letters, and what steers is shown as it is written", () => {
  assert.equal(readable('"\\u674e\\u96f7 \\ud83d\\ude00"'), '"李雷 😀"');
  for (const text of ['"\\u202e"', '"\\u0022"', '"\\n"', '"\\\\u674e"', '"\\ufeff"', '"\\u200b"'])
    assert.equal(readable(text), text);
});
