import type { Trend } from "../asking/shapes";
import { w } from "../words/words";
import { Badge } from "./badge";

/** An arrow and its word: which way the lag goes. */
export function TrendBadge({ of }: { of: Trend }) {
  if (of === "growing") return <Badge tone="warn">↗ {w().growing}</Badge>;
  if (of === "falling") return <Badge tone="good">↘ {w().falling}</Badge>;
  if (of === "steady") return <Badge>→ {w().steady}</Badge>;
  return <span class="soft">–</span>;
}
