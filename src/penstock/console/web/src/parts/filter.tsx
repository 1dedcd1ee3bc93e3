import { useSignal, useSignalEffect } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { asked, query, setQuery } from "../routing/place";
import { w } from "../words/words";
import { Text } from "./field";

/** The text that a list is filtered by, in the address a moment after the last key; `/` comes here. */
export function FilterBox({ label, name = "q" }: { label: string; name?: string }) {
  const text = useSignal(asked(name));
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  useSignalEffect(() => {
    // Back and forward change the address; the box follows, unless somebody is writing in it.
    const now = query.value.get(name) ?? "";
    if (timer.current === undefined) text.value = now;
  });
  useEffect(() => () => clearTimeout(timer.current), []);
  const set = (next: string): void => {
    text.value = next;
    clearTimeout(timer.current);
    timer.current = setTimeout(() => {
      timer.current = undefined;
      setQuery({ [name]: next });
    }, 150);
  };
  return (
    <div class="grow" data-filter>
      <Text type="search" value={text.value} set={set} label={label} placeholder={w().filter + " …  /"} />
    </div>
  );
}
