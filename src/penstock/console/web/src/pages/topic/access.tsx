import { useAsked } from "../../asking/resource";
import type { Acl } from "../../asking/shapes";
import { Opens } from "../../parts/action";
import { AclDialog, AclGrid } from "../../parts/acls";
import { Panel } from "../../parts/page";
import { Empty, Shown } from "../../parts/shown";
import { to } from "../../routing/place";
import { w } from "../../words/words";

/** The ACLs that say something of this topic, by its name, by a prefix or for all. */
export function AccessTab({ name, command }: { name: string; command?: string }) {
  const asking = useAsked<{ enabled: boolean; acls: Acl[] }>(to("/topics/{}/access", name));
  return (
    <Shown of={asking}>
      {(now) => (
        <Panel
          title={w().acls}
          plain
          end={
            now.enabled && (
              <Opens text={w().addAcl}>
                {(close) => <AclDialog topic={name} onDone={asking.again} onClose={close} />}
              </Opens>
            )
          }
        >
          {!now.enabled ? (
            <Empty title={w().noAuthorizer} text={w().noAuthorizerText} command="penstock dev --secure" />
          ) : now.acls.length ? (
            <AclGrid of={now.acls} again={asking.again} />
          ) : (
            <Empty title={w().noAcls} text={w().noAclsText} command={command} />
          )}
        </Panel>
      )}
    </Shown>
  );
}
