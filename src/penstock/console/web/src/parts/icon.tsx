// Drawn here, so that nothing is fetched for them; 24 by 24, one stroke.
const SHAPES = {
  overview: "M4 13h6V4H4zM14 20h6v-9h-6zM4 20h6v-3H4zM14 7h6V4h-6z",
  map: "M4 5h4v4H4zM10 5h4v4h-4zM16 5h4v4h-4zM4 11h4v4H4zM10 11h4v4h-4zM16 11h4v4h-4zM4 17h4v3H4zM10 17h4v3h-4zM16 17h4v3h-4z",
  topics: "M4 6h16M4 12h16M4 18h10",
  groups:
    "M9 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7zM3 20c0-4 2.5-6 6-6s6 2 6 6M16 4.5a3.5 3.5 0 0 1 0 6.5M17.500 14.500c2.300.700 3.500 2.600 3.500 5.500",
  pipelines: "M4 8h5c4 0 2 8 6 8h5M17 13l3 3-3 3M4 16h3",
  tables: "M4 5h16v14H4zM4 10h16M4 14.500h16M10 10v9",
  agents: "M12 3v4M7 7h10v7H7zM9 14v3M15 14v3M4 20h16M10 10.500h.010M14 10.500h.010",
  follow:
    "M5 19a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM19 9a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM7 17h7a3.500 3.500 0 0 0 0-7h-4a3 3 0 0 1 0-6h7",
  access: "M12 3l7 3v5c0 5-3 8-7 10-4-2-7-5-7-10V6zM9.500 12l2 2 3.500-4",
  events: "M12 7v5l3 2M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18z",
  search: "M11 18a7 7 0 1 0 0-14 7 7 0 0 0 0 14zM20 20l-4-4",
  menu: "M4 7h16M4 12h16M4 17h16",
  close: "M6 6l12 12M18 6L6 18",
  gear: "M4 7h9M17 7h3M15 9a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM4 17h3M11 17h9M9 19a2 2 0 1 0 0-4 2 2 0 0 0 0 4z",
  copy: "M9 9h11v11H9zM15 9V4H4v11h5",
} as const;

export type IconName = keyof typeof SHAPES;

export const Icon = ({ name }: { name: IconName }) => (
  <svg class="icon" viewBox="0 0 24 24" aria-hidden="true">
    <path d={SHAPES[name]} />
  </svg>
);
