import { useAsked, type Resource } from "../../asking/resource";
import type { TopicAnswer } from "../../asking/shapes";
import { about, bytes, exact } from "../../figures/numbers";
import { Badge } from "../../parts/badge";
import { PageOf, Tabs } from "../../parts/page";
import { Empty, Refused } from "../../parts/shown";
import { Link } from "../../routing/link";
import { to } from "../../routing/place";
import { w } from "../../words/words";
import { AccessTab } from "./access";
import { TopicActs } from "./acts";
import { ConfigTab } from "./config";
import { ConsumersTab } from "./consumers";
import { MessagesTab } from "./messages";
import { PartitionsTab } from "./partitions";

export type Topic = Resource<TopicAnswer>;

const TABS = ["messages", "partitions", "consumers", "config", "access"] as const;
type Tab = (typeof TABS)[number];

export function TopicPage({ name, tab }: { name: string; tab: string }) {
  const topic = useAsked<TopicAnswer>(to("/topics/{}", name), ["metadata", "offsets"]);
  const { data, refusal } = topic.seen.value;
  const words: Record<Tab, string> = {
    messages: w().messages,
    partitions: w().partitions,
    consumers: w().consumers,
    config: w().config,
    access: w().access,
  };
  return (
    <PageOf
      title={name}
      crumb={{ to: "/topics", text: w().topics }}
      beside={data && <Facts of={data} />}
      acts={data && <TopicActs of={data} again={topic.again} />}
    >
      <Tabs
        label={name}
        of={TABS.map((one) => ({ to: to("/topics/{}/" + one, name), text: words[one], shown: one === tab }))}
      />
      {refusal !== null && data === null ? (
        <Refused refusal={refusal} again={topic.again} />
      ) : (
        <Shows tab={tab} name={name} topic={data} />
      )}
    </PageOf>
  );
}

function Shows({ tab, name, topic }: { tab: string; name: string; topic: TopicAnswer | null }) {
  switch (tab as Tab) {
    case "messages":
      return <MessagesTab name={name} partitions={topic?.partitions ?? 1} command={topic?.commands.produce} />;
    case "partitions":
      return <PartitionsTab name={name} topic={topic} />;
    case "consumers":
      return <ConsumersTab name={name} command={topic?.commands.consume} />;
    case "config":
      return <ConfigTab path={to("/topics/{}/config", name)} />;
    case "access":
      return <AccessTab name={name} command={topic?.commands.allow} />;
    default:
      return <Empty title={w().notFound} text={w().notFoundText} />;
  }
}

/** What one wants to know of a topic on each of its pages, in one line. */
const Facts = ({ of }: { of: TopicAnswer }) => (
  <div class="row small soft facts">
    {of.internal && <Badge>{w().internal}</Badge>}
    {of.compacted && <Badge>{w().compacted}</Badge>}
    {of.leaderless > 0 && (
      <Badge tone="bad" mark>
        {w().leaderless}: {exact(of.leaderless)}
      </Badge>
    )}
    {of.behind > 0 && (
      <Badge tone="warn" mark>
        {w().outOfSync}: {exact(of.behind)}
      </Badge>
    )}
    <span>{w().countPartitions(of.partitions)}</span>
    <span>{w().countRecords(exact(of.records))}</span>
    <span>{bytes(of.bytes)}</span>
    {of.rate !== null && <span>{about(of.rate) + " " + w().perSecond}</span>}
    {(of.feeds ?? []).map((one) => (
      <Link key={one.kind + one.name} to={to(one.kind === "table" ? "/tables/{}" : "/pipelines/{}", one.name)}>
        → {one.name}
      </Link>
    ))}
  </div>
);
