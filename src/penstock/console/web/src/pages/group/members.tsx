import type { GroupAnswer, GroupMember } from "../../asking/shapes";
import { exact } from "../../figures/numbers";
import { Grid, type Column } from "../../parts/grid";
import { Panel } from "../../parts/page";
import { w } from "../../words/words";

/** Who is in the group, and a drawing of who has which partition. */
export const Members = ({ of }: { of: GroupAnswer }) => (
  <Panel title={w().members} plain>
    <Grid
      label={w().members}
      columns={columns()}
      total={of.members.length}
      rowAt={(at) => of.members[at]}
      keyOf={(row) => row.id}
    />
  </Panel>
);

const count = (of: Record<string, number[]>): number => Object.values(of).reduce((sum, list) => sum + list.length, 0);

const columns = (): Column<GroupMember>[] => [
  {
    key: "client",
    head: w().client,
    name: true,
    cell: (row) => <span title={row.id}>{row.instance ?? row.client}</span>,
  },
  { key: "host", head: w().host, cell: (row) => <span class="mono">{row.host.replace(/^\//, "")}</span> },
  { key: "count", head: w().partitions, end: true, cell: (row) => exact(count(row.assignment)) },
  {
    key: "has",
    head: w().assigned,
    wrap: true,
    offPhone: true,
    cell: (row) => <Matrix of={row.assignment} target={row.target} />,
  },
];

const AT_MOST = 64;

/** One small square a partition: full when the member has it, hollow when it is still to come. */
function Matrix({ of, target }: { of: Record<string, number[]>; target: Record<string, number[]> | null }) {
  const topics = [...new Set([...Object.keys(of), ...Object.keys(target ?? {})])].sort();
  return (
    <div class="matrix">
      {topics.map((topic) => {
        const has = new Set(of[topic] ?? []);
        const coming = (target?.[topic] ?? []).filter((partition) => !has.has(partition));
        const all = [...has, ...coming].sort((one, other) => one - other);
        return (
          <div key={topic} class="row">
            <span class="small">{topic}</span>
            {all.slice(0, AT_MOST).map((partition) => (
              <i key={partition} class={has.has(partition) ? "has" : "coming"}>
                {partition}
              </i>
            ))}
            {all.length > AT_MOST && <span class="soft small">{w().andMore(all.length - AT_MOST)}</span>}
          </div>
        );
      })}
    </div>
  );
}
