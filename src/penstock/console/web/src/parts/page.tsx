import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Link } from "../routing/link";
import { path } from "../routing/place";

interface Head {
  title: string;
  crumb?: { to: string; text: string };
  beside?: ComponentChildren;
  acts?: ComponentChildren;
  children: ComponentChildren;
}

/** A page: its title is the document's, and whoever comes by keyboard or by ear arrives at it. */
export function PageOf({ title, crumb, beside, acts, children }: Head) {
  const head = useRef<HTMLHeadingElement>(null);
  const here = path.value;
  useEffect(() => {
    document.title = title + " · Penstock";
  }, [title]);
  useEffect(() => {
    // Only after a step inside the console: at the first paint the browser begins where it always does.
    if (stepped(here)) head.current?.focus({ preventScroll: true });
  }, [here]);
  return (
    <>
      <div class="page-head">
        <div>
          {crumb && (
            <Link class="crumb" to={crumb.to}>
              {crumb.text}
            </Link>
          )}
          <h1 ref={head} tabIndex={-1}>
            {title}
          </h1>
        </div>
        {beside}
        {acts && <div class="acts">{acts}</div>}
      </div>
      {children}
    </>
  );
}

let before: string | null = null;

function stepped(here: string): boolean {
  const moved = before !== null && before !== here;
  before = here;
  return moved;
}

export const Panel = (given: {
  title?: string;
  end?: ComponentChildren;
  class?: string;
  plain?: boolean;
  children: ComponentChildren;
}) => (
  <section class={"panel " + (given.class ?? "")}>
    {given.title && (
      <header>
        <h2>{given.title}</h2>
        {given.end && <div class="end">{given.end}</div>}
      </header>
    )}
    {given.plain ? given.children : <div class="body">{given.children}</div>}
  </section>
);

export const Tiles = ({ of }: { of: (readonly [string, ComponentChildren] | null)[] }) => (
  <dl class="tiles">
    {of.map(
      (tile) =>
        tile && (
          <div key={tile[0]}>
            <dt>{tile[0]}</dt>
            <dd>{tile[1]}</dd>
          </div>
        ),
    )}
  </dl>
);

export const Tabs = ({ label, of }: { label: string; of: { to: string; text: string; shown: boolean }[] }) => (
  <nav class="tabs" aria-label={label}>
    {of.map((tab) => (
      <Link key={tab.to} to={tab.to} aria-current={tab.shown ? "page" : undefined}>
        {tab.text}
      </Link>
    ))}
  </nav>
);
