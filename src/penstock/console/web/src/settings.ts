// What a person chose in this browser: it stays here and is told to nobody.
import { effect, signal, type Signal } from "@preact/signals";

export type Theme = "system" | "light" | "dark";
export type Language = "en" | "zh";
export type Zone = "local" | "utc";

function kept<T extends string>(name: string, choices: readonly T[], otherwise: T): Signal<T> {
  const key = "penstock." + name;
  let stored: string | null = null;
  try {
    stored = localStorage.getItem(key);
  } catch {
    // Private windows may forbid storage; then a choice lasts as long as the page.
  }
  const chosen = signal<T>(choices.find((choice) => choice === stored) ?? otherwise);
  let first = true;
  effect(() => {
    const value = chosen.value;
    if (first) {
      first = false;
      return;
    }
    try {
      localStorage.setItem(key, value);
    } catch {
      // As above.
    }
  });
  return chosen;
}

export const theme = kept<Theme>("theme", ["system", "light", "dark"], "system");
export const language = kept<Language>("language", ["en", "zh"], navigator.language.startsWith("zh") ? "zh" : "en");
export const zone = kept<Zone>("zone", ["local", "utc"], "local");

effect(() => {
  const root = document.documentElement;
  if (theme.value === "system") delete root.dataset.theme;
  else root.dataset.theme = theme.value;
});
