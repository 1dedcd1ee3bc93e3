// Runs before the first paint, so that a page chosen dark never flashes light. It shares no code with the rest.
(() => {
  const chosen = (name: string): string | null => {
    try {
      return localStorage.getItem("penstock." + name);
    } catch {
      return null; // storage may be forbidden; the system's choice is as good
    }
  };
  const root = document.documentElement;
  const theme = chosen("theme");
  if (theme === "light" || theme === "dark") root.dataset.theme = theme;
  root.lang = chosen("language") ?? (navigator.language.startsWith("zh") ? "zh" : "en");
})();
