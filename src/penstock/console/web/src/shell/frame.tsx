import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { consoleAway } from "../asking/ask";
import { cluster, logOut, session } from "../asking/session";
import { trouble } from "../asking/trouble";
import { Badge } from "../parts/badge";
import { Icon } from "../parts/icon";
import { Link } from "../routing/link";
import { path, setQuery } from "../routing/place";
import { zone } from "../settings";
import { w } from "../words/words";
import { keysOpen, paletteOpen } from "./keys";
import { ENTRIES } from "./pages";
import { SettingsDialog } from "./settingsDialog";

/** What is around every page: where one is, where one can go, and whether what is seen is of now. */
export function Frame({ children }: { children: ComponentChildren }) {
  const open = useSignal(false);
  return (
    <>
      <a class="skip" href="#content" onClick={toContent}>
        {w().toContent}
      </a>
      <div class="frame" onClick={() => (open.value = false)}>
        <Side open={open.value} />
        <div>
          <Top onMenu={() => (open.value = true)} />
          <Notices />
          <main id="content" tabIndex={-1}>
            {children}
          </main>
        </div>
      </div>
    </>
  );
}

function toContent(event: MouseEvent): void {
  // The base of the document would lead `#content` away from this page.
  event.preventDefault();
  document.getElementById("content")?.focus();
}

function Side({ open }: { open: boolean }) {
  const here = path.value;
  return (
    <div class={"side" + (open ? " open" : "")}>
      <Link class="brand" to="/">
        <Logo />
        Penstock
      </Link>
      <nav aria-label={w().navigation}>
        <ul>
          {ENTRIES.map((entry, at) =>
            entry ? (
              <li key={entry.to}>
                <Link to={entry.to} aria-current={isAt(here, entry.to) ? "page" : undefined}>
                  <Icon name={entry.icon} />
                  {w()[entry.word]}
                </Link>
              </li>
            ) : (
              <li key={"gap" + at} class="gap" role="presentation" />
            ),
          )}
        </ul>
      </nav>
      <div class="foot small soft">
        {session.value && <span>{session.value.version}</span>}
        <button type="button" class="button plain tiny" onClick={() => (keysOpen.value = true)}>
          {w().keys} <kbd>?</kbd>
        </button>
      </div>
    </div>
  );
}

const isAt = (here: string, to: string): boolean =>
  (to === "/" ? here === "/" : here === to || here.startsWith(to + "/")) ||
  (to === "/map" && here.startsWith("/brokers"));

export const Logo = () => (
  <svg width="26" height="26" viewBox="0 0 24 24" aria-hidden="true">
    <rect width="24" height="24" rx="6" fill="var(--accent)" />
    <path
      d="M5 7.500h4c4 0 4 9 8 9h2"
      fill="none"
      stroke="var(--accent-ink)"
      stroke-width="2.600"
      stroke-linecap="round"
    />
  </svg>
);

function Top({ onMenu }: { onMenu: () => void }) {
  const settings = useSignal(false);
  const now = session.value;
  const menu = (event: MouseEvent): void => {
    event.stopPropagation();
    onMenu();
  };
  return (
    <header class="top">
      <button type="button" class="button plain menu" aria-label={w().menu} onClick={menu}>
        <Icon name="menu" />
      </button>
      <ClusterChoice />
      {now?.read_only && <Badge tone="info">{w().readOnly}</Badge>}
      <div class="grow" />
      <button type="button" class="finder" onClick={() => (paletteOpen.value = true)} aria-label={w().search}>
        <Icon name="search" />
        <span>{w().search}</span>
        <kbd>Ctrl K</kbd>
      </button>
      {now?.person && (
        <>
          <span class="soft nowrap" title={now.person.principal}>
            {now.person.name}
          </span>
          {now.login !== "proxy" && (
            <button type="button" class="button plain" onClick={() => void logOut()}>
              {w().logOut}
            </button>
          )}
        </>
      )}
      <button
        type="button"
        class="button plain"
        aria-label={w().settings}
        title={w().settings}
        onClick={() => (settings.value = true)}
      >
        <Icon name="gear" />
        <span class="small">{zone.value === "utc" ? "UTC" : offsetOf(new Date())}</span>
      </button>
      {settings.value && <SettingsDialog onClose={() => (settings.value = false)} />}
    </header>
  );
}

function offsetOf(now: Date): string {
  const minutes = -now.getTimezoneOffset();
  const two = (number: number): string => String(number).padStart(2, "0");
  return (
    "UTC" +
    (minutes
      ? (minutes < 0 ? "-" : "+") + two(Math.floor(Math.abs(minutes) / 60)) + ":" + two(Math.abs(minutes) % 60)
      : "")
  );
}

function ClusterChoice() {
  const all = session.value?.clusters ?? [];
  const chosen = cluster.value;
  if (!chosen) return null;
  if (all.length === 1)
    return (
      <span class="nowrap" title={chosen.bootstrap}>
        <strong>{chosen.name}</strong>
      </span>
    );
  return (
    <select
      aria-label={w().cluster}
      value={chosen.name}
      style={{ width: "auto" }}
      onChange={(event) => setQuery({ cluster: event.currentTarget.value })}
    >
      {all.map((one) => (
        <option key={one.name}>{one.name}</option>
      ))}
    </select>
  );
}

/** Said once, above every page, for as long as it is so. */
function Notices() {
  const away = trouble.value;
  return (
    <div aria-live="polite">
      {consoleAway.value ? (
        <div class="away gone">{w().consoleAway}</div>
      ) : (
        away && <div class="away">{w().brokerAway(away.message)}</div>
      )}
    </div>
  );
}
