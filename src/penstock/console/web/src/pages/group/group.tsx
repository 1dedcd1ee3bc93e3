import { useAsked } from "../../asking/resource";
import type { GroupAnswer } from "../../asking/shapes";
import { exact, lagTime } from "../../figures/numbers";
import { Chart } from "../../parts/chart";
import { Command } from "../../parts/command";
import { PageOf, Panel, Tiles } from "../../parts/page";
import { Empty, Shown } from "../../parts/shown";
import { GroupState } from "../../parts/state";
import { TrendBadge } from "../../parts/trend";
import { to } from "../../routing/place";
import { w } from "../../words/words";
import { GroupActs, Undos } from "./acts";
import { Explained } from "./explained";
import { Members } from "./members";
import { Positions } from "./positions";

export function GroupPage({ name }: { name: string }) {
  const group = useAsked<GroupAnswer>(to("/groups/{}", name), ["groups", "offsets"]);
  return (
    <PageOf
      title={name}
      crumb={{ to: "/groups", text: w().groups }}
      beside={<State of={group.seen.value.data} />}
      acts={group.seen.value.data && <GroupActs of={group.seen.value.data} again={group.again} />}
    >
      <Shown of={group}>
        {(now) => (
          <div class="stack">
            <Tiles
              of={[
                [w().lag, exact(now.lag)],
                [w().lagSeconds, lagTime(now.lag_s)],
                [w().trend, <TrendBadge of={now.trend} />],
                [w().members, exact(now.members.length)],
                [w().partitions, exact(now.partitions.length)],
                now.coordinator === null ? null : [w().coordinator, w().broker(now.coordinator)],
                now.assignor ? [w().assignor, now.assignor] : null,
              ]}
            />
            <div class="columns">
              <Panel class="w7" title={w().lagOverTime}>
                <Chart history={now.history} series={[{ key: "lag", label: w().lag }]} label={w().lagOverTime} />
              </Panel>
              <div class="w5">
                <Explained name={name} />
              </div>
            </div>
            <Undos of={now} again={group.again} />
            <Positions of={now} />
            {now.members.length ? (
              <Members of={now} />
            ) : (
              <Panel title={w().members} plain>
                <Empty
                  title={w().noMembers}
                  text={w().noMembersText}
                  command={now.read_command}
                />
              </Panel>
            )}
            <Command text={now.command} />
          </div>
        )}
      </Shown>
    </PageOf>
  );
}

const State = ({ of }: { of: GroupAnswer | null }) => of && <GroupState of={of.state} />;
