import type { Follower, MapAnswer } from "../../asking/shapes";
import { exact, moment } from "../../figures/numbers";
import { Badge } from "../../parts/badge";
import { Command } from "../../parts/command";
import { Grid, type Column } from "../../parts/grid";
import { Panel, Tiles } from "../../parts/page";
import { w } from "../../words/words";

type QuorumOf = NonNullable<MapAnswer["quorum"]>;
type Row = Follower & { kind: "voter" | "observer"; leads: boolean };

/** Who keeps the cluster's metadata, and how far each is behind its leader. */
export function Quorum({ of }: { of: QuorumOf }) {
  const rows: Row[] = [
    ...of.voters.map((one): Row => ({ ...one, kind: "voter", leads: one.id === of.leader })),
    ...of.observers.map((one): Row => ({ ...one, kind: "observer", leads: false })),
  ];
  return (
    <Panel title={w().quorum} plain>
      <Tiles
        of={[
          [w().leader, of.leader === null ? "–" : w().node(of.leader)],
          [w().epoch, exact(of.epoch)],
          [w().highWatermark, exact(of.high_watermark)],
        ]}
      />
      <Grid
        label={w().quorum}
        columns={columns()}
        total={rows.length}
        rowAt={(at) => rows[at]}
        keyOf={(row) => row.kind + row.id}
      />
      <div class="foot-command">
        <Command text="penstock cluster quorum" />
      </div>
    </Panel>
  );
}

const columns = (): Column<Row>[] => [
  {
    key: "id",
    head: w().nodeWord,
    name: true,
    cell: (row) => (
      <span class="row">
        {w().node(row.id)} {row.leads && <Badge tone="info">{w().leader}</Badge>}
      </span>
    ),
  },
  { key: "kind", head: w().type, cell: (row) => (row.kind === "voter" ? w().voter : w().observer) },
  { key: "lag", head: w().lag, end: true, cell: (row) => exact(row.lag) },
  {
    key: "caught",
    head: w().caughtUp,
    end: true,
    cell: (row) => (row.caught_up_ms === null ? "–" : moment(row.caught_up_ms, false)),
  },
];
