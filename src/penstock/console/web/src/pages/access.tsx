import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useAsked } from "../asking/resource";
import type { Acl } from "../asking/shapes";
import { bytes, percent } from "../figures/numbers";
import { Opens } from "../parts/action";
import { AclDialog, AclGrid, OPERATIONS, RESOURCES, choices } from "../parts/acls";
import { Badge } from "../parts/badge";
import { Command } from "../parts/command";
import { Choice, Field, Text } from "../parts/field";
import { FilterBox } from "../parts/filter";
import { Grid } from "../parts/grid";
import { PageOf, Panel } from "../parts/page";
import { Empty, Refused, Shown } from "../parts/shown";
import { Refusal } from "../asking/ask";
import { asked } from "../routing/place";
import { w } from "../words/words";

interface Failed {
  code: string;
  message: string;
  attempt?: string;
}
interface AccessAnswer {
  enabled: boolean;
  acls: Acl[];
  users: { name: string; mechanisms: string[] }[];
  quotas: { entity: Record<string, string | null>; limits: Record<string, number> }[];
  failed: Record<string, Failed | undefined>;
  command: string;
}

export function AccessPage() {
  const access = useAsked<AccessAnswer>("/access");
  return (
    <PageOf title={w().access}>
      <Shown of={access}>
        {(now) => (
          <div class="stack">
            {!now.enabled && !now.failed.acls ? (
              <Panel plain>
                <Empty title={w().noAuthorizer} text={w().noAuthorizerText} command="penstock dev --secure" />
              </Panel>
            ) : (
              <>
                <Explain />
                <Acls of={now} again={access.again} />
              </>
            )}
            <div class="columns">
              <Panel class="w6" title={w().users} plain>
                <Part failed={now.failed.users}>
                  {now.users.length ? (
                    <Grid
                      label={w().users}
                      total={now.users.length}
                      rowAt={(at) => now.users[at]}
                      keyOf={(row) => row.name}
                      columns={[
                        { key: "name", head: w().name, name: true, cell: (row) => row.name },
                        { key: "how", head: w().mechanisms, cell: (row) => row.mechanisms.join(", ") },
                      ]}
                    />
                  ) : (
                    <Empty title={w().noUsers} command="penstock user add alice" />
                  )}
                </Part>
              </Panel>
              <Panel class="w6" title={w().quotas} plain>
                <Part failed={now.failed.quotas}>
                  {now.quotas.length ? (
                    <Quotas of={now.quotas} />
                  ) : (
                    <Empty title={w().noQuotas} command="penstock quota set --user alice producer_byte_rate=1048576" />
                  )}
                </Part>
              </Panel>
            </div>
          </div>
        )}
      </Shown>
    </PageOf>
  );
}

const Part = ({ failed, children }: { failed: Failed | undefined; children: ComponentChildren }) =>
  failed ? <Refused refusal={new Refusal(403, failed.code, failed.message, failed.attempt ?? "")} /> : <>{children}</>;

function Acls({ of, again }: { of: AccessAnswer; again: () => void }) {
  const wanted = asked("q").toLowerCase();
  const rows = of.acls.filter((acl) => Object.values(acl).join(" ").toLowerCase().includes(wanted));
  return (
    <Panel
      title={w().acls}
      plain
      end={<Opens text={w().addAcl}>{(close) => <AclDialog onDone={again} onClose={close} />}</Opens>}
    >
      <Part failed={of.failed.acls}>
        <div class="bar">
          <FilterBox label={w().filter} />
        </div>
        {rows.length ? (
          <AclGrid of={rows} again={again} />
        ) : (
          <Empty title={w().noAclFits} command="penstock acl allow User:alice read topic:orders" />
        )}
      </Part>
    </Panel>
  );
}

/** Whether somebody may do something, and which ACL says so. */
function Explain() {
  const principal = useSignal("User:");
  const operation = useSignal("read");
  const resource = useSignal("topic");
  const name = useSignal("");
  const question = useSignal<string | null>(null);
  const answer = useAsked<{ allowed: boolean; by: Acl | null; why: string; command: string }>(question.value);
  const ask = (event: Event): void => {
    event.preventDefault();
    const of = new URLSearchParams({
      principal: principal.value,
      operation: operation.value,
      resource: resource.value,
      name: resource.value === "cluster" ? "kafka-cluster" : name.value,
      host: "*",
    });
    question.value = "/access/explain?" + of.toString();
  };
  const { data, refusal } = answer.seen.value;
  return (
    <Panel title={w().mayThey}>
      <form class="explain" onSubmit={ask}>
        <Field label={w().principal}>
          <Text value={principal.value} set={(next) => (principal.value = next)} placeholder="User:alice" />
        </Field>
        <Field label={w().operation}>
          <Choice value={operation.value} set={(next) => (operation.value = next)} of={choices(OPERATIONS)} />
        </Field>
        <Field label={w().resource}>
          <Choice value={resource.value} set={(next) => (resource.value = next)} of={choices(RESOURCES)} />
        </Field>
        <Field label={w().name}>
          <Text value={name.value} set={(next) => (name.value = next)} placeholder="orders" />
        </Field>
        <button
          class="button main"
          disabled={!/^\w+:.+/.test(principal.value) || (resource.value !== "cluster" && !name.value)}
        >
          {w().explainIt}
        </button>
      </form>
      <div aria-live="polite">
        {question.value && refusal && <Refused refusal={refusal} />}
        {question.value && data && (
          <div class="stack verdict">
            <p class="row">
              <Badge tone={data.allowed ? "good" : "bad"} mark>
                {data.allowed ? w().allowed : w().denied}
              </Badge>
              {data.why}
            </p>
            <Command text={data.command} />
          </div>
        )}
      </div>
    </Panel>
  );
}

const Quotas = ({ of }: { of: AccessAnswer["quotas"] }) => (
  <Grid
    label={w().quotas}
    total={of.length}
    rowAt={(at) => of[at]}
    keyOf={(row) => JSON.stringify(row.entity)}
    columns={[
      {
        key: "who",
        head: w().appliesTo,
        name: true,
        cell: (row) =>
          Object.entries(row.entity)
            .map(([kind, name]) => kind + " " + (name ?? w().anybody))
            .join(", "),
      },
      {
        key: "limits",
        head: w().limits,
        wrap: true,
        cell: (row) =>
          Object.entries(row.limits).map(([name, limit]) => <div key={name}>{name + ": " + limitOf(name, limit)}</div>),
      },
    ]}
  />
);

const limitOf = (name: string, limit: number): string =>
  name.endsWith("byte_rate")
    ? bytes(limit) + " " + w().perSecond
    : name === "request_percentage"
      ? percent(limit / 100)
      : String(limit);
