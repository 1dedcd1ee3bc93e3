// The catalogue of the language that was chosen. `w().topics` is read where it is shown, so a change of language shows at once.
import { effect, signal } from "@preact/signals";
import { language } from "../settings";
import { en } from "./en";

/** What every catalogue has: the same keys, the same arguments. */
export type Words = {
  [Key in keyof typeof en]: (typeof en)[Key] extends (...given: infer Given) => string
    ? (...given: Given) => string
    : string;
};

const catalogue = signal<Words>(en);
/** Nothing is drawn before the words of a person's language are here. */
export const wordsReady = signal(language.peek() === "en");

effect(() => {
  const wanted = language.value;
  document.documentElement.lang = wanted === "zh" ? "zh-CN" : "en";
  if (wanted === "en") {
    catalogue.value = en;
    wordsReady.value = true;
    return;
  }
  void import("./zh").then(({ zh }) => {
    if (language.peek() !== "zh") return;
    catalogue.value = zh;
    wordsReady.value = true;
  });
});

export const w = (): Words => catalogue.value;

/** A word by a name that comes from the server, or what the server says itself. */
export function told(prefix: string, code: string, otherwise: string): string {
  const found = (catalogue.value as Record<string, unknown>)[prefix + code];
  return typeof found === "string" ? found : otherwise;
}
