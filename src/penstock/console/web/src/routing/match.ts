/** Holds a path against a shape as `/topics/:name/:tab`; gives the names decoded, or null. */
export function match(shape: string, path: string): Record<string, string> | null {
  const wanted = shape.split("/");
  const given = path.replace(/\/+$/, "").split("/");
  if (shape === "/") return path === "/" ? {} : null;
  if (wanted.length !== given.length) return null;
  const names: Record<string, string> = {};
  for (const [at, part] of wanted.entries()) {
    const text = given[at] ?? "";
    if (part.startsWith(":")) {
      try {
        names[part.slice(1)] = decodeURIComponent(text);
      } catch {
        return null; // a broken escape names nothing
      }
    } else if (part !== text) return null;
  }
  return names;
}
