// What must stand before anything is drawn, and whatever becomes of the page's modules.

"use strict";

// A part that did not come, as from a daemon that is just going or has no connection to spare: the page begins anew.
addEventListener(
  "error",
  ({ target }) => {
    // What was only to be loaded early is asked for again where it is needed.
    if (!(target instanceof HTMLElement && target.matches("script, link[rel=stylesheet]"))) return;
    const state = document.getElementById("state");
    if (state === null || state.dataset.state === "silent") return;
    state.dataset.state = "silent";
    state.textContent = "A part of this page did not come: it is loaded again in 5 s.";
    setTimeout(() => location.reload(), 5_000);
  },
  { capture: true },
);

// Light or dark: as the system has it, unless something else was chosen here, which this browser then keeps.

{
  const NAME = "abgauge-colours";
  const KNOWN = ["light", "dark"];

  // A browser may be told to keep nothing: what is chosen then lasts as long as the page.
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
  // Other pages of the same origin change with this one.
  addEventListener("storage", ({ key }) => (key === NAME || key === null) && wear(kept()));
}
