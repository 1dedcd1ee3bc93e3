import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { useAsked } from "../asking/resource";
import type { FollowStep } from "../asking/shapes";
import { Mark, type Tone } from "../parts/badge";
import { Command } from "../parts/command";
import { Field, Text } from "../parts/field";
import { PageOf, Panel } from "../parts/page";
import { Empty, Shown } from "../parts/shown";
import { Link } from "../routing/link";
import { asked, setQuery, to } from "../routing/place";
import { told, w } from "../words/words";

/** The way of one record: from its file to its topic, to who has read it, to the row it became or why it did not. */
export function FollowPage() {
  const [topic, partition, offset] = [asked("topic"), asked("partition"), asked("offset")];
  const complete = topic !== "" && /^\d+$/.test(partition) && /^\d+$/.test(offset);
  const form = { topic: useSignal(topic), partition: useSignal(partition), offset: useSignal(offset) };
  useEffect(() => {
    form.topic.value = topic;
    form.partition.value = partition;
    form.offset.value = offset;
  }, [topic, partition, offset]);
  const go = (event: Event): void => {
    event.preventDefault();
    setQuery({
      topic: form.topic.value.trim(),
      partition: form.partition.value.trim(),
      offset: form.offset.value.trim(),
    });
  };
  return (
    <PageOf title={w().follow}>
      <div class="stack">
        <Panel>
          <form class="explain" onSubmit={go}>
            <Field label={w().topic}>
              <Text value={form.topic.value} set={(next) => (form.topic.value = next)} placeholder="orders" />
            </Field>
            <Field label={w().partition}>
              <Text value={form.partition.value} set={(next) => (form.partition.value = next)} placeholder="0" />
            </Field>
            <Field label={w().offset}>
              <Text value={form.offset.value} set={(next) => (form.offset.value = next)} placeholder="42" />
            </Field>
            <button class="button main">{w().followIt}</button>
          </form>
        </Panel>
        {complete ? (
          <Steps key={topic + partition + ":" + offset} topic={topic} partition={partition} offset={offset} />
        ) : (
          <Panel plain>
            <Empty title={w().followWhich} text={w().followWhichText} command="penstock consume orders -o -1" />
          </Panel>
        )}
      </div>
    </PageOf>
  );
}

function Steps({ topic, partition, offset }: { topic: string; partition: string; offset: string }) {
  const of = new URLSearchParams({ topic, partition, offset });
  const way = useAsked<{ steps: FollowStep[]; command?: string }>("/follow?" + of.toString(), ["groups"]);
  return (
    <Panel title={topic + "-" + partition + " @ " + offset}>
      <Shown of={way}>
        {(now) => (
          <div class="stack">
            <ol class="way">
              {now.steps.map((step, at) => (
                <Step key={at} of={step} />
              ))}
            </ol>
            {now.command && <Command text={now.command} />}
          </div>
        )}
      </Shown>
    </Panel>
  );
}

const TONES: Record<FollowStep["state"], Tone> = { done: "good", waiting: "warn", unknown: "quiet" };

const Step = ({ of }: { of: FollowStep }) => (
  <li class={of.state}>
    <Mark tone={of.kind === "dead_letter" && of.state === "done" ? "bad" : TONES[of.state]} />
    <div>
      <strong>{told("step_", of.kind, of.kind)}</strong>{" "}
      <span class="soft small">{told("step_state_", of.state, of.state)}</span>
      <p>{of.text}</p>
      <Goes of={of} />
    </div>
  </li>
);

/** To the page of what the step names. */
function Goes({ of }: { of: FollowStep }) {
  const name = (key: string): string | null =>
    typeof of.params[key] === "string" || typeof of.params[key] === "number" ? String(of.params[key]) : null;
  const links: [string | null, string][] = [
    [name("group"), "/groups/{}"],
    [name("pipeline"), "/pipelines/{}"],
    [name("table"), "/tables/{}"],
  ];
  const record = name("topic") !== null && name("partition") !== null && name("offset") !== null;
  return (
    <span class="row">
      {links.map(
        ([to_, shape]) =>
          to_ !== null && (
            <Link key={shape} to={to(shape, to_)}>
              {to_}
            </Link>
          ),
      )}
      {record && (
        <Link
          to={
            to("/topics/{}/messages", name("topic") ?? "") +
            `?from=offset:${name("offset")}&partition=${name("partition")}&at=${name("partition")}:${name("offset")}`
          }
        >
          {w().recordAt(name("partition") ?? "", name("offset") ?? "")}
        </Link>
      )}
    </span>
  );
}
