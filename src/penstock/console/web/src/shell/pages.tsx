// Which page stands at which path. These paths are part of the product: links to them are kept and shared.
import type { JSX } from "preact";
import { AccessPage } from "../pages/access";
import { AgentsPage } from "../pages/agents";
import { BrokerPage } from "../pages/brokers";
import { EventsPage } from "../pages/events";
import { FollowPage } from "../pages/follow";
import { GroupPage } from "../pages/group/group";
import { GroupsPage } from "../pages/groups";
import { MapPage } from "../pages/map/map";
import { OverviewPage } from "../pages/overview";
import { PipelinePage } from "../pages/pipelines/pipeline";
import { PipelinesPage } from "../pages/pipelines/pipelines";
import { TablePage } from "../pages/tables/table";
import { TablesPage } from "../pages/tables/tables";
import { TopicPage } from "../pages/topic/topic";
import { TopicsPage } from "../pages/topics";
import type { IconName } from "../parts/icon";
import type { Words } from "../words/words";

export type Names = Record<string, string>;

export const PAGES: [string, (names: Names) => JSX.Element][] = [
  ["/", () => <OverviewPage />],
  ["/map", () => <MapPage />],
  ["/brokers/:id", (at) => <BrokerPage key={at.id} id={at.id ?? ""} />],
  ["/pipelines", () => <PipelinesPage />],
  ["/pipelines/:name", (at) => <PipelinePage key={at.name} name={at.name ?? ""} />],
  ["/tables", () => <TablesPage />],
  ["/tables/:name", (at) => <TablePage key={at.name} name={at.name ?? ""} />],
  ["/agents", () => <AgentsPage />],
  ["/follow", () => <FollowPage />],
  ["/access", () => <AccessPage />],
  ["/events", () => <EventsPage />],
  ["/topics", () => <TopicsPage />],
  ["/topics/:name", (at) => <TopicPage key={at.name} name={at.name ?? ""} tab="messages" />],
  ["/topics/:name/:tab", (at) => <TopicPage key={at.name} name={at.name ?? ""} tab={at.tab ?? ""} />],
  ["/groups", () => <GroupsPage />],
  ["/groups/:name", (at) => <GroupPage key={at.name} name={at.name ?? ""} />],
];

export interface Entry {
  to: string;
  icon: IconName;
  word: keyof Words & IconName;
  /** Pressed after `g`. */
  letter: string;
}

export const ENTRIES: (Entry | null)[] = [
  { to: "/", icon: "overview", word: "overview", letter: "o" },
  { to: "/map", icon: "map", word: "map", letter: "m" },
  null,
  { to: "/topics", icon: "topics", word: "topics", letter: "t" },
  { to: "/groups", icon: "groups", word: "groups", letter: "g" },
  { to: "/pipelines", icon: "pipelines", word: "pipelines", letter: "p" },
  { to: "/tables", icon: "tables", word: "tables", letter: "b" },
  { to: "/agents", icon: "agents", word: "agents", letter: "a" },
  null,
  { to: "/follow", icon: "follow", word: "follow", letter: "f" },
  { to: "/access", icon: "access", word: "access", letter: "x" },
  { to: "/events", icon: "events", word: "events", letter: "e" },
];
