import { useAsked } from "../../asking/resource";
import type { MapAnswer } from "../../asking/shapes";
import { exact } from "../../figures/numbers";
import { Choice } from "../../parts/field";
import { FilterBox } from "../../parts/filter";
import { PageOf, Panel, Tiles } from "../../parts/page";
import { Empty, Shown } from "../../parts/shown";
import { asked, setQuery } from "../../routing/place";
import { w } from "../../words/words";
import { BrokerGrid } from "../brokers";
import { HeatMap, type Measure } from "./heat";
import { Moves } from "./moves";
import { Quorum } from "./quorum";

/** Which broker has what: brokers across, topics down; then what moves, and who decides. */
export function MapPage() {
  const topic = asked("topic");
  const map = useAsked<MapAnswer>("/map" + (topic ? "?topic=" + encodeURIComponent(topic) : ""), [
    "metadata",
    "log_dirs",
  ]);
  const measure = asked("by", "leaders") as Measure;
  return (
    <PageOf title={w().map}>
      <Shown of={map}>
        {(now) => (
          <div class="stack">
            <Tiles
              of={[
                [w().brokers, w().alive(now.brokers.filter((broker) => broker.alive).length, now.brokers.length)],
                [w().partitions, exact(now.total)],
                [w().skewLeaders, skew(now.skew.leaders)],
                [w().skewBytes, skew(now.skew.bytes)],
                [w().movesUnderWay, exact(now.partitions.filter((one) => one.moving !== null).length)],
              ]}
            />
            <Panel title={w().brokers} plain>
              <BrokerGrid of={now.brokers} />
            </Panel>
            <Panel title={w().whereTopicsAre} plain>
              <div class="bar">
                <FilterBox label={w().filter} />
                <Choice
                  label={w().colourBy}
                  value={measure}
                  set={(by) => setQuery({ by })}
                  of={[
                    ["leaders", w().leaders],
                    ["replicas", w().replicas],
                    ["bytes", w().size],
                  ]}
                />
              </div>
              {now.cells.length ? (
                <HeatMap of={now} by={measure} wanted={asked("q").toLowerCase()} />
              ) : (
                <Empty
                  title={w().emptyCluster}
                  text={w().emptyClusterText}
                  command="penstock topic create orders --partitions 3"
                />
              )}
            </Panel>
            <Moves of={now} />
            {now.quorum && <Quorum of={now.quorum} />}
          </div>
        )}
      </Shown>
    </PageOf>
  );
}

/** 1 is even; 1.5 says that the fullest broker has half as much again as the middle. */
const skew = (of: number | null): string => (of === null ? "–" : "× " + of.toFixed(2));
