import { useAsked } from "../../asking/resource";
import type { PipelineAnswer, PipelineEnd, Redriven } from "../../asking/shapes";
import { about, exact, lagTime, moment, span } from "../../figures/numbers";
import { Action, Opens } from "../../parts/action";
import { Badge } from "../../parts/badge";
import { Command } from "../../parts/command";
import { PageOf, Panel, Tiles } from "../../parts/page";
import { Shown } from "../../parts/shown";
import { Link } from "../../routing/link";
import { to } from "../../routing/place";
import { told, w } from "../../words/words";
import { Batches } from "./batches";
import { PipelineState } from "./pipelines";

export function PipelinePage({ name }: { name: string }) {
  const asking = useAsked<PipelineAnswer>(to("/pipelines/{}", name), ["offsets"]);
  const now = asking.seen.value.data;
  return (
    <PageOf
      title={name}
      crumb={{ to: "/pipelines", text: w().pipelines }}
      beside={now && <PipelineState of={now.state} />}
      acts={now && <Acts of={now} again={asking.again} />}
    >
      <Shown of={asking}>
        {(of) => (
          <div class="stack">
            {of.last_error && (
              <div class="refused" role="alert">
                <strong>{w().lastError}</strong>
                <pre class="json wrapped">{of.last_error}</pre>
              </div>
            )}
            <Tiles
              of={[
                [w().rowsPerS, about(of.rows_per_s)],
                [w().lag, exact(of.lag)],
                [w().freshness, lagTime(of.freshness_s)],
                [w().batchTime, span(of.batch_ms)],
                [w().deadLetters, exact(of.dead)],
                of.state_rows && of.state_rows !== "0" ? [w().stateRows, exact(of.state_rows)] : null,
                [w().restarts, exact(of.restarts)],
              ]}
            />
            <p class="small soft row">
              <span>{w().runsOn(of.host, of.master)}</span>
              <span class="mono">{of.file}</span>
              {of.watermark && (
                <span>
                  {w().watermark} {typeof of.watermark === "number" ? moment(of.watermark, false) : of.watermark}
                </span>
              )}
              {of.groups.map((group) => (
                <Link key={group} to={to("/groups/{}", group)}>
                  {group}
                </Link>
              ))}
            </p>
            <Drawing of={of} />
            <Batches of={of.batches ?? []} />
            {Object.entries(of.commands ?? {}).length > 0 && (
              <Panel title={w().asCommand}>
                <div class="stack">
                  {Object.entries(of.commands ?? {}).map(([what, command]) => (
                    <Command key={what} text={command} />
                  ))}
                </div>
              </Panel>
            )}
          </div>
        )}
      </Shown>
    </PageOf>
  );
}

/** Only what the console can do for this pipeline is offered; what it cannot, its command says. */
function Acts({ of, again }: { of: PipelineAnswer; again: () => void }) {
  return (
    <>
      {of.acts.map((verb) => (
        <Opens key={verb} text={told("verb_", verb, verb)}>
          {(close) => (
            <Action
              title={told("verb_", verb, verb) + " " + of.name}
              verb={told("verb_", verb, verb)}
              danger={verb === "stop"}
              change={{ method: "POST", path: to("/pipelines/{}/" + verb, of.name), body: {} }}
              onDone={again}
              onClose={close}
            >
              <p>{told("verb_text_", verb, "")}</p>
            </Action>
          )}
        </Opens>
      ))}
      {of.redrives.map((source) => (
        <Opens key={source} text={w().redrive + (of.redrives.length > 1 ? " · " + source : "")}>
          {(close) => (
            <Action<Redriven>
              title={w().redrive + " · " + source}
              verb={w().redrive}
              change={{ method: "POST", path: to("/pipelines/{}/redrive", of.name), body: { source } }}
              plan={(plan) => <Letters of={plan} />}
              done={(answer) => answer.done !== undefined && <Letters of={answer.done as Redriven} />}
              onDone={again}
              onClose={close}
            >
              <p>{w().redriveText}</p>
            </Action>
          )}
        </Opens>
      ))}
    </>
  );
}

/** How many letters, to where, and why they are letters. */
const Letters = ({ of }: { of: Redriven }) => (
  <div class="stack small">
    <span>
      {exact(of.letters)} · {of.place}
    </span>
    {Object.entries(of.by_target).map(([topic, letters]) => (
      <span key={topic}>
        → {topic}: {exact(letters)}
      </span>
    ))}
    {Object.entries(of.errors).map(([why, letters]) => (
      <span key={why} class="soft">
        {exact(letters)} × {why}
      </span>
    ))}
  </div>
);

/** From where, through what, to where: read from left to right, and in this order by ear. */
const Drawing = ({ of }: { of: PipelineAnswer }) => (
  <Panel title={w().flow}>
    <ol class="flow">
      <li>
        {(of.sources ?? []).map((end) => (
          <End key={"source" + end.name} of={end} />
        ))}
      </li>
      <li aria-hidden="true" class="arrow">
        →
      </li>
      <li>
        {of.flows.map((name) => (
          <div key={name} class="box step">
            <strong>{name}</strong>
            <span class="small soft">Spark</span>
          </div>
        ))}
      </li>
      <li aria-hidden="true" class="arrow">
        →
      </li>
      <li>
        {(of.sinks ?? []).map((end) => (
          <End key={"sink" + end.name} of={end} />
        ))}
      </li>
    </ol>
  </Panel>
);

function End({ of }: { of: PipelineEnd }) {
  const where = of.topic ? to("/topics/{}/messages", of.topic) : of.table ? to("/tables/{}", of.table) : null;
  return (
    <div class="box">
      <strong>{where ? <Link to={where}>{of.name}</Link> : of.name}</strong>
      <span class="small soft">
        {of.kind && <Badge>{of.kind}</Badge>}{" "}
        {of.rows_per_s !== undefined && of.rows_per_s !== null && about(of.rows_per_s) + " " + w().perSecond}
        {of.lag !== undefined && of.lag !== null && " · " + w().lag + " " + exact(of.lag)}
        {of.committed && " · " + w().version + " " + exact(of.committed)}
        {of.committed_ms && " · " + moment(of.committed_ms, false)}
      </span>
    </div>
  );
}
