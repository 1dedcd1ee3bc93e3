import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { w } from "../words/words";
import { Icon } from "./icon";

interface Given {
  title?: string;
  label?: string;
  class?: string;
  onClose: () => void;
  footer?: ComponentChildren;
  children: ComponentChildren;
}

/** The browser's own dialog: it keeps the focus, closes by Escape and gives the focus back. */
export function Dialog({ title, label, class: extra, onClose, footer, children }: Given) {
  const box = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const before = document.activeElement;
    box.current?.showModal();
    return () => {
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  const outside = (event: MouseEvent): void => {
    if (event.target === box.current) onClose();
  };
  // Whoever follows a link out of a dialog has done with it.
  const followed = (event: MouseEvent): void => {
    if (event.target instanceof Element && event.target.closest("a[href]")) onClose();
  };
  return (
    <dialog
      ref={box}
      class={extra}
      aria-label={label ?? title}
      onClose={onClose}
      onMouseDown={outside}
      onClick={followed}
    >
      {title && (
        <header>
          <h2>{title}</h2>
          <button type="button" class="button plain" aria-label={w().close} onClick={onClose}>
            <Icon name="close" />
          </button>
        </header>
      )}
      {title ? <div class="body">{children}</div> : children}
      {footer && <footer>{footer}</footer>}
    </dialog>
  );
}
