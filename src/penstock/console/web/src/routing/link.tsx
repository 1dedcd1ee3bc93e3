import type { ComponentChildren } from "preact";
import { addressOf, go, keepingCluster } from "./place";

interface Rest {
  class?: string;
  title?: string;
  "aria-current"?: "page" | undefined;
  "aria-label"?: string;
}

/** A real link: it opens in another tab, is copied, and is followed without loading the page again. */
export function Link({ to, children, ...rest }: { to: string; children?: ComponentChildren } & Rest) {
  const target = keepingCluster(to);
  const follow = (event: MouseEvent): void => {
    if (
      event.defaultPrevented ||
      event.button !== 0 ||
      event.metaKey ||
      event.ctrlKey ||
      event.shiftKey ||
      event.altKey
    )
      return;
    event.preventDefault();
    go(target);
  };
  return (
    <a {...rest} href={addressOf(target)} onClick={follow}>
      {children}
    </a>
  );
}
