import { cancelSearch, type Search, type Tail } from "../../asking/watching";
import { about, bytes, exact } from "../../figures/numbers";
import { Badge } from "../../parts/badge";
import { Refused } from "../../parts/shown";
import { told, w } from "../../words/words";

/** How a search goes, why it stopped, and the way on from there. */
export function SearchProgress({ of }: { of: Search }) {
  const now = of.told.value;
  const running = of.running.value;
  return (
    <>
      <div class="progress" role="status">
        {running ? (
          <Badge tone="info" mark>
            {w().searching}
          </Badge>
        ) : (
          <Badge tone={now?.why === "failed" ? "bad" : "quiet"} mark>
            {now?.why ? told("why_", now.why, now.why) : w().stopped}
          </Badge>
        )}
        {now && (
          <>
            <span>{w().hits(of.hits.value.length)}</span>
            <span>{w().scanned(exact(now.scanned), bytes(now.bytes))}</span>
            {running && <span class="soft">{about(now.rate) + " " + w().perSecond}</span>}
            {now.unreadable !== "0" && <Badge tone="warn">{w().unreadable(exact(now.unreadable))}</Badge>}
          </>
        )}
        <span class="end">
          {running ? (
            <button type="button" class="button tiny" onClick={() => cancelSearch(of)}>
              {w().stop}
            </button>
          ) : (
            now?.next && (
              <button type="button" class="button tiny" onClick={of.goOn}>
                {w().goOn}
              </button>
            )
          )}
        </span>
      </div>
      {of.refusal.value && <Refused refusal={of.refusal.value} again={of.goOn} />}
      {now?.error && <p class="wrong">{now.error.message}</p>}
    </>
  );
}

/** How fast records come, and how many of them are not shown: a tail that drops in silence is worth nothing. */
export function TailProgress({ of }: { of: Tail }) {
  const now = of.told.value;
  const skipped = now !== null && now.skipped !== "0";
  return (
    <>
      <div class="progress">
        {of.refusal.value ? (
          <Badge tone="bad" mark>
            {w().notLive}
          </Badge>
        ) : of.paused.value ? (
          <Badge tone="warn" mark>
            {w().paused}
          </Badge>
        ) : (
          <Badge tone="good" mark>
            {w().live}
          </Badge>
        )}
        {now && (
          <>
            <span>{about(now.per_s) + " " + w().perSecond}</span>
            <span>{w().tailSeen(exact(now.seen))}</span>
          </>
        )}
        {skipped && <Badge tone="warn">{w().tailSkipped(exact(now.skipped))}</Badge>}
        {of.missed.value > 0 && <Badge>{w().tailMissed(exact(of.missed.value))}</Badge>}
        {of.cuts.value > 0 && <Badge tone="warn">{w().tailCut}</Badge>}
        <span class="end">
          <button
            type="button"
            class="button tiny"
            aria-pressed={of.paused.value}
            onClick={() => (of.paused.value = !of.paused.value)}
          >
            {of.paused.value ? w().goOn : w().pause}
          </button>
        </span>
      </div>
      {of.refusal.value && <Refused refusal={of.refusal.value} />}
    </>
  );
}
