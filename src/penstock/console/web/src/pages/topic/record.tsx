import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useAsked } from "../../asking/resource";
import type { Stored } from "../../asking/shapes";
import { bytes, exact, moment } from "../../figures/numbers";
import { Command } from "../../parts/command";
import { Icon } from "../../parts/icon";
import { Panel } from "../../parts/page";
import { Shown } from "../../parts/shown";
import { Brief, ValueOf } from "../../parts/value";
import { Link } from "../../routing/link";
import { addressOf, asked, keepingCluster, setQuery, to } from "../../routing/place";
import { w } from "../../words/words";
import { SendAgainDialog } from "./sendAgain";

interface Given {
  name: string;
  place: string;
  known: Stored | undefined;
  onClose: () => void;
}

/** One record, whole. It is asked for by its place when the list does not hold it, or holds only the beginning. */
export function RecordPanel({ name, place, known, onClose }: Given) {
  const [partition = "0", offset = "0"] = place.split(":");
  const whole = known && !known.value.cut && !known.key.cut ? known : null;
  const asking = useAsked<Stored | { record: Stored }>(
    whole ? null : to("/topics/{}/records/{}/{}", name, partition, offset),
  );
  const head = (
    <button type="button" class="button plain tiny" aria-label={w().close} onClick={onClose}>
      <Icon name="close" />
    </button>
  );
  return (
    <Panel class="record" title={w().recordAt(partition, exact(offset))} end={head}>
      {whole ? (
        <Body name={name} of={whole} />
      ) : (
        <Shown of={asking}>{(told) => <Body name={name} of={"record" in told ? told.record : told} />}</Shown>
      )}
    </Panel>
  );
}

function Body({ name, of }: { name: string; of: Stored }) {
  const sending = useSignal(false);
  const place = [name, of.partition, of.offset] as const;
  const only = (condition: string): void => {
    const before = asked("where");
    setQuery({
      where: before ? before + " and " + condition : condition,
      mode: asked("mode") === "tail" ? "tail" : "search",
      at: null,
      run: String(Date.now()),
    });
  };
  return (
    <>
      <dl class="pairs small">
        <dt>{w().time}</dt>
        <dd>
          {moment(of.timestamp)}{" "}
          <span class="soft">{of.timestamp_type === "append" ? w().timeAppended : w().timeCreated}</span>
        </dd>
        <dt>{w().size}</dt>
        <dd>{bytes(of.size)}</dd>
      </dl>
      <section>
        <h3>{w().key}</h3>
        <ValueOf of={of.key} />
      </section>
      <section>
        <h3>{w().value}</h3>
        <ValueOf of={of.value} onCondition={only} />
      </section>
      {of.headers.length > 0 && (
        <section>
          <h3>{w().headers}</h3>
          <dl class="pairs small">
            {of.headers.map((header, at) => (
              <Header key={at} name={header.name}>
                <Brief of={header.value} />
              </Header>
            ))}
          </dl>
        </section>
      )}
      <div class="row">
        <button type="button" class="button tiny" onClick={() => (sending.value = true)}>
          {w().sendAgain}
        </button>
        <Link
          class="button tiny"
          to={`/follow?topic=${encodeURIComponent(name)}&partition=${of.partition}&offset=${of.offset}`}
        >
          {w().follow}
        </Link>
        <a
          class="button tiny"
          href={addressOf("/api/v1" + keepingCluster(to("/topics/{}/records/{}/{}", ...place) + "?raw=value"))}
          download
        >
          {w().download}
        </a>
      </div>
      <Command text={of.command} />
      {sending.value && <SendAgainDialog name={name} of={of} onClose={() => (sending.value = false)} />}
    </>
  );
}

const Header = ({ name, children }: { name: string; children: ComponentChildren }) => (
  <>
    <dt class="mono">{name}</dt>
    <dd>{children}</dd>
  </>
);
