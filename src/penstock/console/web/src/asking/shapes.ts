// What the API answers. Digits is an int64: it is shown, compared by BigInt, and never becomes a number that may round.
export type Digits = string;

export interface Trouble {
  code: string;
  message: string;
  since_ms?: number;
}
export interface Sampled {
  as_of_ms: number;
  age_ms: number;
  trouble: Trouble | null;
}
export interface Page<T> extends Sampled {
  total: number;
  matching: number;
  items: T[];
}
export interface ClusterName {
  name: string;
  bootstrap: string;
  id: string | null;
  state: string;
}
export interface Session {
  login: "none" | "kafka" | "oidc" | "proxy";
  person: { principal: string; name: string; ends_ms?: number } | null;
  needs_login: boolean;
  version: string;
  base_path: string;
  read_only: boolean;
  clusters: ClusterName[];
  features: Record<string, boolean>;
  oidc: { name: string } | null;
}
export interface LogDir {
  path: string;
  total: Digits | null;
  usable: Digits | null;
  used: Digits | null;
  error: string | null;
}
export interface Broker {
  id: number;
  host: string;
  port: number;
  rack: string | null;
  alive: boolean;
  controller: boolean;
  leaders: number;
  replicas: number;
  behind: number;
  bytes: Digits | null;
  dirs?: LogDir[];
}
export interface Reason {
  kind: string;
  what: string;
  items: string[];
  more: number;
  attempt: string;
}
export interface Happened {
  id: number;
  at_ms: number;
  kind: string;
  level: Level;
  text: string;
  params: Record<string, unknown>;
}
export type Level = "bad" | "warn" | "info" | "good";
export type Trend = "growing" | "steady" | "falling" | "unknown";
export interface History {
  step_s: number;
  end_ms: number;
  [series: string]: number | (number | null)[];
}
export interface Overview extends Sampled {
  cluster: {
    id: string | null;
    controller: number | null;
    brokers: number;
    alive: number;
    topics: number;
    partitions: number;
    groups: number;
    bytes: Digits | null;
  };
  /** null for who may not see it, and until it was looked at. */
  healthy: boolean | null;
  sentence: string;
  reasons: Reason[];
  rates: { records_in: number | null; records_out: number | null; bytes_in: number | null };
  history: History | null;
  kept: { state: "waiting" | "reading" | "writing" | "off"; why: string } | null;
  brokers: Broker[];
  lags: { group: string; lag: Digits | null; lag_s: number | null; trend: Trend }[];
  tables: TableRow[];
  events: Happened[];
  command: string;
}
export interface Moving {
  adding: number[];
  removing: number[];
}
export interface MapAnswer extends Sampled {
  brokers: Broker[];
  partitions: {
    topic: string;
    partition: number;
    leader: number | null;
    replicas: number[];
    isr: number[];
    bytes: Digits | null;
    rate: number | null;
    moving: Moving | null;
  }[];
  total: number;
  cells: { broker: number; topic: string; leaders: number; replicas: number; behind: number; bytes: Digits | null }[];
  quorum: {
    leader: number | null;
    epoch: number | null;
    high_watermark: Digits | null;
    voters: Follower[];
    observers: Follower[];
  } | null;
  skew: { leaders: number | null; bytes: number | null };
}
export interface Follower {
  id: number;
  lag: Digits | null;
  caught_up_ms: number | null;
}
export interface BrokerAnswer extends Sampled, Broker {
  features: { name: string; lowest: number; highest: number; finalized: number | null }[];
}
export interface TopicRow {
  name: string;
  internal: boolean;
  partitions: number;
  replication: number;
  behind: number;
  leaderless: number;
  records: Digits | null;
  bytes: Digits | null;
  rate: number | null;
  spark: (number | null)[];
  groups: number;
  lag: Digits | null;
  retention_ms: Digits | null;
  compacted: boolean;
}
export interface TopicAnswer extends Sampled, TopicRow {
  id: string;
  configs: Record<string, string>;
  history: History;
  rights: string[] | null;
  feeds?: { kind: string; name: string }[];
  command: string;
  /** Names are quoted by the server: what is shown to be copied is never put together here. */
  commands: { produce: string; consume: string; allow: string };
}
export interface PartitionRow {
  partition: number;
  leader: number | null;
  leader_epoch: number | null;
  replicas: number[];
  isr: number[];
  offline: number[];
  start: Digits | null;
  end: Digits | null;
  last_stable: Digits | null;
  bytes: Digits | null;
  rate: number | null;
  share: number | null;
  moving: Moving | null;
}
export interface Consuming {
  group: string;
  kind: "group" | "pipeline";
  state: string;
  members: number;
  lag: Digits | null;
  lag_s: number | null;
  partitions: {
    partition: number;
    committed: Digits | null;
    end: Digits | null;
    lag: Digits | null;
    lag_s: number | null;
    member: string | null;
  }[];
}
export interface ConfigEntry {
  name: string;
  value: string | null;
  source: string;
  read_only: boolean;
  sensitive: boolean;
  doc: string | null;
  default: string | null;
  unit: "ms" | "bytes" | null;
  type: string | null;
  values: string[] | null;
}
export interface Acl {
  principal: string;
  operation: string;
  resource: string;
  name: string;
  pattern: string;
  host: string;
  permission: "allow" | "deny";
}
export interface GroupRow {
  group: string;
  type: string;
  protocol: string | null;
  state: string;
  members: number;
  topics: string[];
  lag: Digits | null;
  lag_s: number | null;
  trend: Trend;
  spark: (number | null)[];
  looked_ms: number | null;
  unseen: string | null;
}
export interface GroupMember {
  id: string;
  instance: string | null;
  client: string;
  host: string;
  assignment: Record<string, number[]>;
  target: Record<string, number[]> | null;
}
export interface GroupPartition {
  topic: string;
  partition: number;
  committed: Digits | null;
  start: Digits | null;
  end: Digits | null;
  lag: Digits | null;
  lag_s: number | null;
  member: string | null;
  client: string | null;
  host: string | null;
  rate_in: number | null;
  rate_out: number | null;
  drain_s: number | null;
}
export interface Undo {
  id: string;
  at_ms: number;
  until_ms: number;
  by: string | null;
  positions: number;
}
export interface GroupAnswer extends Sampled, Omit<GroupRow, "members"> {
  coordinator: number | null;
  assignor: string | null;
  epoch: number | null;
  members: GroupMember[];
  partitions: GroupPartition[];
  history: History | null;
  undo: Undo[];
  command: string;
  read_command: string;
}
export interface Finding {
  kind: string;
  level: Level;
  what: string;
  evidence: string[];
  attempt: string;
  partitions: string[];
}
export interface Explanation {
  group: string;
  findings: Finding[];
  sentence: string;
  command: string;
}
export interface TableRow {
  name: string;
  kind: string;
  path: string;
  dead: Digits | null;
  problem: string | null;
  version: Digits | null;
  files: number | null;
  bytes: Digits | null;
  rows: Digits | null;
  committed_ms: number | null;
  freshness_s: number | null;
  feeds_from: string[];
}
export interface Bytes {
  as: string | null;
  text: string | null;
  size: number;
  cut?: boolean;
  others?: [string, string][];
}
export interface Stored {
  partition: number;
  offset: Digits;
  timestamp: Digits;
  timestamp_type: string;
  size: number;
  key: Bytes;
  value: Bytes;
  headers: { name: string; value: Bytes }[];
  more_headers: number;
  command: string;
}
export interface Records {
  records: Stored[];
  next: string | null;
  previous: string | null;
  more?: boolean;
  reached: string;
  ends: Record<string, { start: Digits; end: Digits }>;
  order: string;
  command: string;
}
export interface TailTold {
  id: string;
  records: Stored[];
  seen: Digits;
  shown: Digits;
  skipped: Digits;
  per_s: number;
  positions: Record<string, Digits>;
  error: { code: string; message: string; attempt: string } | null;
}
export interface SearchTold {
  id: string;
  hits: Stored[];
  scanned: Digits;
  bytes: Digits;
  rate: number;
  positions: Record<string, Digits>;
  unreadable: Digits;
  state: "running" | "stopped";
  why: string | null;
  error: { message: string; attempt?: string } | null;
  next: string | null;
}
export interface Changed<Plan = unknown> {
  plan?: Plan;
  done?: unknown;
  command: string;
}
export interface PipelineRow {
  name: string;
  cluster?: string;
  state: "running" | "stopped" | "failed" | "unknown";
  flows: string[];
  rows_per_s: number | null;
  lag: Digits | null;
  freshness_s: number | null;
  batch_ms: number | null;
  dead: Digits | null;
  last_error: string | null;
  restarts: number;
  seen_ms: number | null;
}
export interface PipelineAnswer extends PipelineRow {
  host: string;
  master: string;
  file: string;
  groups: string[];
  /** What the console can do about it; whoever may is asked when it is done. */
  acts: string[];
  /** Sources whose dead letters can be sent again from here. */
  redrives: string[];
  sources?: PipelineEnd[];
  sinks?: PipelineEnd[];
  batches?: {
    id: Digits | number;
    flow: string;
    run: string;
    at_ms: number;
    rows: Digits | null;
    duration_ms: number | null;
    parts: Record<string, number>;
  }[];
  watermark?: string | number | null;
  state_rows?: Digits | null;
  commands?: Record<string, string>;
}
export interface Redriven {
  place: string;
  letters: Digits;
  by_target: Record<string, Digits>;
  errors: Record<string, Digits>;
  done: boolean;
}
export interface PipelineEnd {
  kind?: string;
  name: string;
  topic?: string | null;
  table?: string | null;
  rows_per_s?: number | null;
  lag?: Digits | null;
  /** The version that its newest batch became. */
  committed?: Digits | null;
  committed_ms?: number | null;
}
export interface TableAnswer extends TableRow {
  versions?: {
    version: Digits;
    at_ms: number | null;
    operation?: string | null;
    rows?: Digits | null;
    files?: number | null;
    bytes?: Digits | null;
    batch?: Digits | null;
    dead?: Digits | null;
    absent?: Digits | null;
  }[];
  pipelines?: string[];
  commands?: Record<string, string>;
  schema?: { name: string; type: string; nullable: boolean }[];
  ranges?: { topic: string; partition: number; start: Digits | null; end: Digits; lag: Digits | null }[];
  command?: string;
}
export interface SqlAnswer {
  columns: { name: string; type: string }[];
  rows: (string | null)[][];
  cut: boolean;
  elapsed_ms: number;
  command: string;
}
export interface AgentRow {
  name: string;
  address: string | null;
  state: string;
  inputs: AgentInput[];
  behind: Digits | null;
  spool: Digits | null;
  files: AgentFile[];
  seen_ms?: number | null;
  machine?: string;
  error?: string | null;
  command?: string;
}
export interface AgentInput {
  name: string;
  type?: string;
  state?: string;
  events?: Digits | null;
  rate?: number | null;
  behind?: Digits | null;
  dropped?: Digits | null;
  topic?: string | null;
  error?: string | null;
}
export interface AgentFile {
  path: string;
  input?: string;
  position: Digits | null;
  size: Digits | null;
  behind?: Digits | null;
}
export interface ProducerRow {
  partition: number;
  producer_id: Digits;
  epoch: number;
  last_sequence: number;
  last_timestamp: Digits | null;
  open_since: Digits | null;
}
export interface TransactionRow {
  id: string;
  producer_id: Digits;
  state: string;
  coordinator: number;
}
export interface FollowStep {
  kind: "file" | "record" | "group" | "batch" | "table" | "dead_letter";
  state: "done" | "waiting" | "unknown";
  text: string;
  params: Record<string, unknown>;
}
