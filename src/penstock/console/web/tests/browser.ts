// The few things of a browser that the pure parts look at when they are loaded.
const nowhere = {
  addEventListener: () => undefined,
  documentElement: { dataset: {}, lang: "" },
  baseURI: "http://localhost/",
};
const given: Record<string, unknown> = {
  document: nowhere,
  location: { pathname: "/", search: "" },
  localStorage: { getItem: () => null, setItem: () => undefined },
  navigator: { language: "en" },
  addEventListener: () => undefined,
};
for (const [name, value] of Object.entries(given)) {
  if (name in globalThis && name !== "navigator") continue;
  Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
}
export {};
