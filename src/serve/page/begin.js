// Setup that has to happen before anything is drawn, and even if the page's modules fail to load.

"use strict";

// If a part fails to load, for example because the daemon is stopping or has no connection to spare, the page reloads.
addEventListener(
  "error",
  ({ target }) => {
    // A failed preload is requested again when the module is needed.
    if (!(target instanceof HTMLElement && target.matches("script, link[rel=stylesheet]"))) return;
    const state = document.getElementById("state");
    if (state === null || state.dataset.state === "silent") return;
    state.dataset.state = "silent";
    state.textContent = "Part of this page failed to load: reloading in 5 s.";
    setTimeout(() => location.reload(), 5_000);
  },
  { capture: true },
);

// Light or dark: the system's choice, unless the reader has chosen one here. This browser then remembers it.

{
  const NAME = "abgauge-colours";
  const KNOWN = ["light", "dark"];

  // If the browser is set to store nothing, the choice lasts as long as the page.
  const kept = () => {
    try {
      return localStorage.getItem(NAME);
    } catch {
      return null;
    }
  };
  const keep = (colours) => {
    try {
      if (colours === "") localStorage.removeItem(NAME);
      else localStorage.setItem(NAME, colours);
    } catch {}
  };

  const wear = (wanted) => {
    const colours = KNOWN.includes(wanted) ? wanted : "";
    if (colours === "") delete document.documentElement.dataset.colours;
    else document.documentElement.dataset.colours = colours;
    const select = document.getElementById("colours");
    if (select !== null) select.value = colours;
  };

  wear(kept());
  addEventListener("DOMContentLoaded", () => {
    wear(kept());
    document.getElementById("colours").addEventListener("change", ({ target }) => {
      keep(target.value);
      wear(target.value);
    });
  });
  // Other pages of the same origin change along with this one.
  addEventListener("storage", ({ key }) => (key === NAME || key === null) && wear(kept()));
}
