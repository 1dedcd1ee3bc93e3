import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import type { History } from "../asking/shapes";
import { about, clock, moment } from "../figures/numbers";
import { dark, language } from "../settings";
import { w } from "../words/words";

interface Series {
  key: string;
  label: string;
}
interface Given {
  /** null where not everything that it sums up may be seen. */
  history: History | null;
  series: Series[];
  label: string;
  height?: number;
  show?: (value: number) => string;
}

const COLOURS = ["--accent", "--number", "--key"];
const colourOf = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** A drawn history, and the same as a table for who cannot see it; a sentence where there is none to be seen. */
export const Chart = ({ history, ...rest }: Given) =>
  history === null ? <p class="soft">{w().partlySeen}</p> : <Drawn history={history} {...rest} />;

function Drawn({ history, series, label, height = 168, show = about }: Given & { history: History }) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const data = table(history, series);
  const looks = String(dark.value) + language.value + series.map((one) => one.key + one.label).join() + height;
  useEffect(() => {
    const into = box.current;
    if (!into) return undefined;
    const made = (plot.current = new uPlot(optionsOf(series, into.clientWidth, height, show), data, into));
    const sized = new ResizeObserver(() => made.setSize({ width: into.clientWidth, height }));
    sized.observe(into);
    return () => {
      sized.disconnect();
      made.destroy();
    };
  }, [looks]);
  useEffect(() => plot.current?.setData(data), [history]);
  return (
    <figure>
      {!known(data) && <p class="soft small">{w().youngHistory}</p>}
      <div ref={box} class="chart" aria-hidden="true" style={{ height: known(data) ? height + "px" : "0" }} />
      <details>
        <summary>{w().asTable}</summary>
        <div class="grid-box chart-table">
          <table class="grid" aria-label={label}>
            <thead>
              <tr>
                <th>{w().time}</th>
                {series.map((one) => (
                  <th key={one.key} class="end">
                    {one.label}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {[...data[0]]
                .map((_, at) => at)
                .reverse()
                .slice(0, 60)
                .map((at) => (
                  <tr key={data[0][at]}>
                    <td>{moment((data[0][at] ?? 0) * 1000, false)}</td>
                    {series.map((one, which) => (
                      <td key={one.key} class="end">
                        {valueOf(data[which + 1]?.[at], show)}
                      </td>
                    ))}
                  </tr>
                ))}
            </tbody>
          </table>
        </div>
      </details>
    </figure>
  );
}

const valueOf = (value: number | null | undefined, show: (value: number) => string): string =>
  value === null || value === undefined ? "–" : show(value);

const FEWEST = 30;

/** Times and columns; what lies before anything was known is left out, so that a young history is not a dot at the edge. */
function table(history: History, series: Series[]): uPlot.AlignedData {
  const columns = series.map((one) => (history[one.key] as (number | null)[] | undefined) ?? []);
  const length = Math.max(0, ...columns.map((column) => column.length));
  const begin = Math.min(
    ...columns.map((column) => column.findIndex((value) => value !== null)).map((at) => (at < 0 ? length : at)),
  );
  const from = Math.max(0, Math.min(begin, length - FEWEST));
  const end = history.end_ms / 1000;
  const times = Array.from({ length: length - from }, (_, at) => end - (length - 1 - from - at) * history.step_s);
  return [times, ...columns.map((column) => column.slice(from))] as uPlot.AlignedData;
}

const known = (data: uPlot.AlignedData): boolean =>
  data.slice(1).some((column) => [...column].filter((value) => value !== null && value !== undefined).length > 1);

function optionsOf(series: Series[], width: number, height: number, show: (value: number) => string): uPlot.Options {
  const soft = colourOf("--soft");
  const line = colourOf("--line");
  const font = "11px system-ui, sans-serif";
  const axis = { stroke: soft, font, grid: { stroke: line, width: 1 }, ticks: { show: false } };
  return {
    width,
    height,
    legend: { show: series.length > 1, live: false },
    cursor: { points: { size: 6 }, y: false },
    padding: [8, 8, 0, 0],
    scales: { y: { range: (_, __, top) => [0, top > 0 ? top * 1.1 : 1] } },
    axes: [
      { ...axis, size: 28, space: 90, values: (_, ticks) => times(ticks) },
      { ...axis, size: 56, values: (_, ticks) => ticks.map(show) },
    ],
    series: [
      {},
      ...series.map((one, at) => ({
        label: one.label,
        stroke: colourOf(COLOURS[at % COLOURS.length] as string),
        width: 1.6,
        ...(series.length === 1 ? { fill: colourOf("--accent-wash") } : {}),
        points: { show: false },
      })),
    ],
  };
}

/** Minutes, and seconds where marks are closer than that. */
function times(ticks: number[]): string[] {
  const length = ticks.some((tick) => tick % 60 !== 0) ? 8 : 5;
  return ticks.map((tick) => clock(tick * 1000).slice(0, length));
}
