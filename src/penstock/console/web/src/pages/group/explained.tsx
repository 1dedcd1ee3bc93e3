import { useAsked } from "../../asking/resource";
import type { Explanation, Finding } from "../../asking/shapes";
import { Mark, type Tone } from "../../parts/badge";
import { Command } from "../../parts/command";
import { Panel } from "../../parts/page";
import { Shown } from "../../parts/shown";
import { to } from "../../routing/place";
import { told, w } from "../../words/words";

/** Why the group is behind: the likeliest first, each with what shows it and what to try. */
export function Explained({ name }: { name: string }) {
  const found = useAsked<Explanation>(to("/groups/{}/explain", name), ["groups"]);
  return (
    <Panel title={w().explainLag}>
      <Shown of={found}>
        {(now) => (
          <div class="stack">
            <p>
              <strong>{now.sentence}</strong>
            </p>
            {now.findings.map((finding) => (
              <FindingOf key={finding.kind + finding.what} of={finding} />
            ))}
            <details>
              <summary>{w().asCommand}</summary>
              <Command text={now.command} />
            </details>
          </div>
        )}
      </Shown>
    </Panel>
  );
}

const TONES: Record<string, Tone> = { bad: "bad", warn: "warn", good: "good" };

const FindingOf = ({ of }: { of: Finding }) => (
  <section class="finding">
    <p class="row">
      <Mark tone={TONES[of.level] ?? "info"} />
      <strong>{told("finding_", of.kind, of.what)}</strong>
    </p>
    <ul class="small">
      {of.evidence.map((line) => (
        <li key={line}>{line}</li>
      ))}
    </ul>
    {of.attempt && <p class="soft small">{of.attempt.replace(/`/g, "")}</p>}
  </section>
);
