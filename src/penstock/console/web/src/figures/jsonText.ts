// JSON as it is stored: cut into tokens and laid out anew, but never parsed, so that 12345678901234567890 stays what it is.

export type TokenKind = "key" | "string" | "number" | "word" | "mark";
export interface Token {
  kind: TokenKind;
  text: string;
}
export interface Line {
  depth: number;
  tokens: Token[];
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
  let depth = 0;
  let line: Token[] = [];
  const close = (): void => {
    if (line.length) lines.push({ depth, tokens: line });
    line = [];
  };
  for (const [at, token] of found.entries()) {
    const next = found[at + 1]?.text;
    if (token.kind !== "mark") line.push(token);
    else if (token.text === "{" || token.text === "[") {
      line.push(token);
      if (next !== "}" && next !== "]") {
        close();
        depth += 1;
      }
    } else if (token.text === "}" || token.text === "]") {
      const before = found[at - 1]?.text;
      if (before !== "{" && before !== "[") {
        close();
        depth -= 1;
      } else if (found[at - 1]?.kind !== "mark") {
        close();
        depth -= 1;
      }
      line.push(token);
    } else if (token.text === ",") {
      line.push(token);
      close();
    } else line.push({ kind: "mark", text: ": " });
  }
  close();
  return lines;
}
