import { useAsked } from "../../asking/resource";
import type { Consuming } from "../../asking/shapes";
import { exact, lagTime } from "../../figures/numbers";
import { Grid, type Column } from "../../parts/grid";
import { Panel } from "../../parts/page";
import { Empty, Shown } from "../../parts/shown";
import { GroupState } from "../../parts/state";
import { Link } from "../../routing/link";
import { to } from "../../routing/place";
import { w } from "../../words/words";

/** Who reads this topic, groups and pipelines alike, and how far behind each is. */
export function ConsumersTab({ name, command }: { name: string; command?: string }) {
  const asking = useAsked<{ groups: Consuming[] }>(to("/topics/{}/consumers", name), ["groups"]);
  return (
    <Shown of={asking}>
      {(now) =>
        now.groups.length ? (
          <div class="stack">
            {now.groups.map((group) => (
              <Panel key={group.kind + group.group} title={group.group} plain end={<Head of={group} />}>
                <Grid
                  label={group.group}
                  columns={columns()}
                  total={group.partitions.length}
                  rowAt={(at) => group.partitions[at]}
                  keyOf={(row) => String(row.partition)}
                />
              </Panel>
            ))}
          </div>
        ) : (
          <Panel plain>
            <Empty title={w().noConsumers} text={w().noConsumersText} command={command} />
          </Panel>
        )
      }
    </Shown>
  );
}

const Head = ({ of }: { of: Consuming }) => (
  <>
    <GroupState of={of.state} />
    <span class="small soft">
      {w().lag} {exact(of.lag)}
      {of.lag_s !== null && " · " + lagTime(of.lag_s)}
    </span>
    <Link class="button tiny" to={to(of.kind === "pipeline" ? "/pipelines/{}" : "/groups/{}", of.group)}>
      {w().open}
    </Link>
  </>
);

const columns = (): Column<Consuming["partitions"][number]>[] => [
  { key: "partition", head: w().partition, name: true, cell: (row) => w().partition + " " + row.partition },
  {
    key: "committed",
    head: w().committed,
    end: true,
    cell: (row) => (row.committed === null ? <span class="soft">{w().never}</span> : exact(row.committed)),
  },
  { key: "end", head: w().end, end: true, cell: (row) => exact(row.end) },
  { key: "lag", head: w().lag, end: true, cell: (row) => exact(row.lag) },
  { key: "lag_s", head: w().lagSeconds, end: true, cell: (row) => lagTime(row.lag_s) },
  { key: "member", head: w().member, offPhone: true, cell: (row) => row.member ?? <span class="soft">–</span> },
];
