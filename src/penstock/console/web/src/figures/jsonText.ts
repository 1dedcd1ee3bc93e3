// JSON as it is stored: cut into tokens and laid out anew, but never parsed, so that 12345678901234567890 stays what it is.

export type TokenKind = "key" | "string" | "number" | "word" | "mark";
export interface Token {
  kind: TokenKind;
  text: string;
}
export interface Member {
  path: string[];
  literal: Token;
}
export interface Line {
  depth: number;
  tokens: Token[];
  /** What a condition can ask for, where the line is such a thing. */
  member: Member | null;
}

const SHAPE =
  /\s+|"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null|[{}[\]:,]/y;

/** Tokens of a text, or null where it is not JSON. What it means is not asked, except that brackets close. */
export function tokens(text: string): Token[] | null {
  const found: Token[] = [];
  SHAPE.lastIndex = 0;
  while (SHAPE.lastIndex < text.length) {
    const hit = SHAPE.exec(text)?.[0];
    if (hit === undefined || hit === "") return null;
    const first = hit[0] as string;
    if (/\s/.test(first)) continue;
    if (first === '"') found.push({ kind: "string", text: hit });
    else if (first === "-" || (first >= "0" && first <= "9")) found.push({ kind: "number", text: hit });
    else if (/[tfn]/.test(first)) found.push({ kind: "word", text: hit });
    else found.push({ kind: "mark", text: hit });
  }
  return closes(found) ? found : null;
}

/** A grammar of one stack: who stands where a key must stand is a key from then on. */
function closes(found: Token[]): boolean {
  const open: string[] = [];
  let wanted: "value" | "valueOrEnd" | "key" | "keyOrEnd" | "colon" | "commaOrEnd" = "value";
  let done = false;
  for (const token of found) {
    if (done) return false;
    const { kind, text } = token;
    const ends = kind === "mark" && (text === "}" || text === "]");
    if (ends) {
      const opener = open.pop();
      if (opener !== (text === "}" ? "{" : "[")) return false;
      if (wanted !== "commaOrEnd" && wanted !== (text === "}" ? "keyOrEnd" : "valueOrEnd")) return false;
      wanted = "commaOrEnd";
    } else if (wanted === "key" || wanted === "keyOrEnd") {
      if (kind !== "string") return false;
      token.kind = "key";
      wanted = "colon";
      continue;
    } else if (wanted === "colon") {
      if (text !== ":" || kind !== "mark") return false;
      wanted = "value";
      continue;
    } else if (wanted === "commaOrEnd") {
      if (text !== "," || kind !== "mark") return false;
      wanted = open[open.length - 1] === "{" ? "key" : "value";
      continue;
    } else if (kind === "mark") {
      if (text !== "{" && text !== "[") return false;
      open.push(text);
      wanted = text === "{" ? "keyOrEnd" : "valueOrEnd";
      continue;
    } else wanted = "commaOrEnd";
    done = open.length === 0;
  }
  return done;
}

/** Lines to show, one member each; empty objects and arrays stay on theirs. */
export function layOut(found: Token[]): Line[] {
  const lines: Line[] = [];
  const above: (string | null)[] = [];
  let line: Token[] = [];
  let key: string | null = null;
  const close = (): void => {
    if (line.length) lines.push({ depth: above.length, tokens: line, member: memberOf(line, above) });
    line = [];
  };
  for (const [at, token] of found.entries()) {
    const before = found[at - 1];
    const next = found[at + 1];
    if (token.kind !== "mark") {
      if (token.kind === "key") key = JSON.parse(token.text) as string;
      line.push(token);
    } else if (token.text === "{" || token.text === "[") {
      line.push(token);
      if (isEnd(next)) continue;
      // Inside an array there is no name by which a condition could ask for a member.
      const inside = above.length === 0 ? "" : key;
      close();
      above.push(token.text === "[" ? null : inside);
      key = null;
    } else if (isEnd(token)) {
      if (before?.kind !== "mark" || !isStart(before)) {
        close();
        above.pop();
      }
      line.push(token);
    } else if (token.text === ",") {
      line.push(token);
      close();
      key = null;
    } else line.push({ kind: "mark", text: ": " });
  }
  close();
  return lines;
}

const isEnd = (token: Token | undefined): boolean =>
  token?.kind === "mark" && (token.text === "}" || token.text === "]");
const isStart = (token: Token): boolean => token.text === "{" || token.text === "[";

/** The member that a line is, where a condition can name it: a plain value, and nothing but objects around it. */
function memberOf(line: Token[], above: (string | null)[]): Member | null {
  const [name, , value] = line;
  if (name?.kind !== "key" || value === undefined || value.kind === "mark" || above.includes(null)) return null;
  return { path: [...(above.slice(1) as string[]), JSON.parse(name.text) as string], literal: value };
}

const PLAIN = /^[^\W\d][\w@-]*$/;

/** `value.amount == 12` of a member, in the words of the conditions; null where they cannot say it. */
export function conditionOf(member: Member, sign: "==" | "!="): string | null {
  const path = ["value", ...member.path];
  if (path.some((name) => name.includes("`") || name.includes("."))) return null;
  const field = path.every((name) => PLAIN.test(name)) ? path.join(".") : "`" + path.join(".") + "`";
  const { kind, text } = member.literal;
  if (text === "null") return (sign === "==" ? "not " : "") + "exists " + field;
  const literal = kind === "string" ? '"' + (JSON.parse(text) as string).replace(/[\\"]/g, "\\$&") + '"' : text;
  return field + " " + sign + " " + literal;
}

/** Letters that are written as `\u674e` are shown as letters; what would change how a line is read stays as it is. */
export const readable = (text: string): string =>
  text.replace(/\\(?:u([0-9a-fA-F]{4})|.)/gs, (escape, digits: string | undefined) => {
    const code = digits === undefined ? 0 : parseInt(digits, 16);
    const steers =
      (code >= 0x200b && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) || (code >= 0x2060 && code <= 0x206f);
    return code < 0xa1 || steers || code === 0xfeff ? escape : String.fromCharCode(code);
  });
