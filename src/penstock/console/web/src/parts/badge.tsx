import type { ComponentChildren } from "preact";

export type Tone = "good" | "warn" | "bad" | "info" | "quiet";

// Each tone has a shape of its own: colour alone tells nothing to who cannot see it.
const MARKS: Record<Tone, string> = {
  good: "M5 0a5 5 0 1 0 0 10A5 5 0 0 0 5 0z",
  warn: "M5 0l5 10H0z",
  bad: "M0 0h10v10H0z",
  info: "M5 0l5 5-5 5-5-5z",
  quiet: "M5 0a5 5 0 1 0 0 10A5 5 0 0 0 5 0zm0 2.500a2.500 2.500 0 1 1 0 5 2.500 2.500 0 0 1 0-5z",
};

export const Mark = ({ tone }: { tone: Tone }) => (
  <svg class={"mark " + tone} viewBox="0 0 10 10" aria-hidden="true">
    <path d={MARKS[tone]} fill-rule="evenodd" />
  </svg>
);

export const Badge = ({
  tone = "quiet",
  mark = false,
  children,
}: {
  tone?: Tone;
  mark?: boolean;
  children: ComponentChildren;
}) => (
  <span class={"badge " + tone}>
    {mark && <Mark tone={tone} />}
    {children}
  </span>
);
