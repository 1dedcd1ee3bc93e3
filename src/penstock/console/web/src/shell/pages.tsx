// Which page stands at which path. These paths are part of the product: links to them are kept and shared.
import type { JSX } from "preact";
import { GroupPage } from "../pages/group/group";
import { GroupsPage } from "../pages/groups";
import { OverviewPage } from "../pages/overview";
import { TopicsPage } from "../pages/topics";
import type { IconName } from "../parts/icon";
import type { Words } from "../words/words";

export type Names = Record<string, string>;

export const PAGES: [string, (names: Names) => JSX.Element][] = [
  ["/", () => <OverviewPage />],
  ["/topics", () => <TopicsPage />],
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
