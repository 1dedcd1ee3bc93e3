import { told } from "../words/words";
import { Badge, type Tone } from "./badge";

const TONES: Record<string, Tone> = {
  Stable: "good",
  Empty: "quiet",
  Dead: "quiet",
  PreparingRebalance: "warn",
  CompletingRebalance: "warn",
  Assigning: "warn",
  Reconciling: "warn",
};

export const GroupState = ({ of }: { of: string }) => (
  <Badge tone={TONES[of] ?? "info"} mark>
    {told("state_", of, of)}
  </Badge>
);
