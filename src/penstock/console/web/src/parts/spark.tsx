// A small line without axes. What it says is said in words beside it, so it is hidden from those who listen.
const WIDTH = 88;
const HEIGHT = 22;

export function Spark({ of }: { of: readonly (number | null)[] }) {
  const known = of.filter((value): value is number => value !== null);
  if (known.length < 2) return null;
  const top = Math.max(...known, 1e-9);
  const step = WIDTH / Math.max(1, of.length - 1);
  let line = "";
  let pen = "M";
  let firstX = 0;
  let lastX = 0;
  of.forEach((value, at) => {
    if (value === null) {
      pen = "M";
      return;
    }
    const x = at * step;
    if (line === "") firstX = x;
    lastX = x;
    line += pen + x.toFixed(1) + " " + (HEIGHT - 2 - (value / top) * (HEIGHT - 4)).toFixed(1);
    pen = "L";
  });
  return (
    <svg class="spark" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} aria-hidden="true" preserveAspectRatio="none">
      {!line.slice(1).includes("M") && (
        <path class="under" d={line + `L${lastX.toFixed(1)} ${HEIGHT}L${firstX.toFixed(1)} ${HEIGHT}Z`} />
      )}
      <path d={line} />
    </svg>
  );
}
