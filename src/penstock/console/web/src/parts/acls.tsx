import { useSignal } from "@preact/signals";
import type { Acl } from "../asking/shapes";
import { told, w } from "../words/words";
import { Action } from "./action";
import { Badge } from "./badge";
import { Choice, Field, Text } from "./field";
import { Grid, GridFoot, type Column } from "./grid";

const same = (acl: Acl): string =>
  [acl.permission, acl.principal, acl.operation, acl.resource, acl.pattern, acl.name, acl.host].join(" ");

/** Who may what, and what takes it away. */
export function AclGrid({ of, again }: { of: Acl[]; again: () => void }) {
  const removing = useSignal<Acl | null>(null);
  return (
    <>
      <Grid
        label={w().acls}
        columns={columns((acl) => (removing.value = acl))}
        total={of.length}
        rowAt={(at) => of[at]}
        keyOf={same}
      />
      <GridFoot shown={of.length} total={of.length} />
      {removing.value && (
        <Action
          title={w().removeAcl}
          verb={w().remove}
          danger
          change={{ method: "DELETE", path: "/access/acls", body: { ...removing.value } }}
          onDone={again}
          onClose={() => (removing.value = null)}
        >
          <p class="mono">{same(removing.value)}</p>
        </Action>
      )}
    </>
  );
}

const columns = (remove: (acl: Acl) => void): Column<Acl>[] => [
  { key: "principal", head: w().principal, name: true, cell: (row) => row.principal },
  {
    key: "permission",
    head: w().permission,
    cell: (row) => (
      <Badge tone={row.permission === "allow" ? "good" : "bad"} mark>
        {told("permission_", row.permission, row.permission)}
      </Badge>
    ),
  },
  { key: "operation", head: w().operation, cell: (row) => row.operation },
  { key: "resource", head: w().resource, cell: (row) => row.resource },
  {
    key: "name",
    head: w().name,
    cell: (row) => <span class="mono">{row.name + (row.pattern === "prefixed" ? "…" : "")}</span>,
  },
  { key: "host", head: w().host, offPhone: true, cell: (row) => row.host },
  {
    key: "remove",
    head: w().actions,
    mute: true,
    end: true,
    cell: (row) => (
      <button type="button" class="button tiny" aria-label={w().remove + " " + same(row)} onClick={() => remove(row)}>
        {w().remove}
      </button>
    ),
  },
];

export const OPERATIONS = [
  "read",
  "write",
  "create",
  "delete",
  "alter",
  "describe",
  "describe_configs",
  "alter_configs",
  "cluster_action",
  "idempotent_write",
  "all",
];
export const RESOURCES = ["topic", "group", "cluster", "transactional_id", "delegation_token", "user"];
export const choices = (of: string[]): (readonly [string, string])[] => of.map((one) => [one, one] as const);

/** A new ACL; on the page of a topic what it is about is known already. */
export function AclDialog({ topic, onDone, onClose }: { topic?: string; onDone: () => void; onClose: () => void }) {
  const principal = useSignal("User:");
  const permission = useSignal("allow");
  const operation = useSignal("read");
  const resource = useSignal("topic");
  const name = useSignal(topic ?? "");
  const pattern = useSignal("literal");
  const host = useSignal("*");
  const complete = /^\w+:.+/.test(principal.value) && (resource.value === "cluster" || name.value !== "");
  const body = {
    principal: principal.value,
    operation: operation.value,
    resource: resource.value,
    name: resource.value === "cluster" ? "kafka-cluster" : name.value,
    pattern: pattern.value,
    host: host.value || "*",
    permission: permission.value,
  };
  return (
    <Action
      title={w().addAcl}
      verb={w().add}
      change={complete ? { method: "POST", path: "/access/acls", body } : null}
      onDone={onDone}
      onClose={onClose}
    >
      <div class="form2">
        <Field label={w().principal}>
          <Text value={principal.value} set={(next) => (principal.value = next)} placeholder="User:alice" autofocus />
        </Field>
        <Field label={w().permission}>
          <Choice
            value={permission.value}
            set={(next) => (permission.value = next)}
            of={[
              ["allow", told("permission_", "allow", "allow")],
              ["deny", told("permission_", "deny", "deny")],
            ]}
          />
        </Field>
        <Field label={w().operation}>
          <Choice value={operation.value} set={(next) => (operation.value = next)} of={choices(OPERATIONS)} />
        </Field>
        <Field label={w().resource}>
          <Choice value={resource.value} set={(next) => (resource.value = next)} of={choices(RESOURCES)} />
        </Field>
        {resource.value !== "cluster" && (
          <Field label={w().name}>
            <Text value={name.value} set={(next) => (name.value = next)} placeholder="orders" />
          </Field>
        )}
        <Field label={w().pattern}>
          <Choice
            value={pattern.value}
            set={(next) => (pattern.value = next)}
            of={[
              ["literal", w().patternLiteral],
              ["prefixed", w().patternPrefixed],
            ]}
          />
        </Field>
        <Field label={w().host}>
          <Text value={host.value} set={(next) => (host.value = next)} />
        </Field>
      </div>
    </Action>
  );
}
