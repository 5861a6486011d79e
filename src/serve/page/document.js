// Updates the document only where it differs, and explains words on hover, focus or tap.

export const $ = (selector, root = document) => root.querySelector(selector);

const kept = new WeakMap(); // parent → (key → component)

/** Updates the children of `parent` to match `items`, in order. Existing components are kept, and moved only if necessary. */
export function keyed(parent, items, keyOf, create) {
  const before = kept.get(parent) ?? new Map();
  const after = new Map();
  for (const item of items) after.set(keyOf(item), before.get(keyOf(item)) ?? create(item));
  for (const [key, { node }] of before) if (!after.has(key)) node.remove();
  kept.set(parent, after);

  const ours = new Set([...after.values()].map(({ node }) => node));
  let place = [...parent.children].find((child) => ours.has(child)) ?? null;
  for (const item of items) {
    const { node, draw } = after.get(keyOf(item));
    if (node === place) place = place.nextElementSibling;
    else parent.insertBefore(node, place);
    draw(item);
  }
}

export function stamp(template) {
  return document.getElementById(template).content.firstElementChild.cloneNode(true);
}

export function text(node, words) {
  if (node.textContent !== words) node.textContent = words;
}

export function attribute(node, name, value) {
  if (value == null) node.removeAttribute(name);
  else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
}

/** Shows a paragraph, or hides it if it is empty. */
export function note(node, words) {
  text(node, words);
  node.hidden = words === "";
}

/** Shows a list of sentences, or hides it if it is empty. */
export function lines(list, sentences) {
  told(list, sentences.map((message) => ({ message })));
}

/** Shows a list of warnings, each with a link to its runbook, and with its severity if it has one. */
export function told(list, warnings) {
  const items = warnings.map((warning, i) => ({ warning, i }));
  keyed(list, items, ({ i }) => i, () => {
    const node = document.createElement("li");
    return { node, draw: ({ warning }) => sentence(node, warning) };
  });
  list.hidden = warnings.length === 0;
}

/** Writes a warning and the link to its runbook. */
export function sentence(node, { severity, message, runbook }) {
  attribute(node, "data-severity", severity);
  attribute(node, "data-runbook", runbook);
  const said = severity === "critical" ? `Critical: ${message}` : message;
  if (node.dataset.said === said + (runbook ?? "")) return;
  node.dataset.said = said + (runbook ?? "");
  node.textContent = said;
  if (runbook == null) return;
  const link = document.createElement("a");
  link.href = `runbooks#${runbook.toLowerCase()}`;
  link.textContent = "What to do";
  link.setAttribute("aria-label", `What to do: ${runbook}`);
  node.append(" ", link);
}

/** A word that explains itself. */
export function withTip(words, tip) {
  const node = document.createElement("button");
  Object.assign(node, { type: "button", className: "explain" });
  attribute(node, "data-tip", tip);
  text(node, words);
  return node;
}

/** Returns a function that creates named values: { name, value, tip }, and { isMuch } or the { runbook } if something is wrong. */
export function named(kind) {
  return ({ name }) => {
    const node = document.createElement("div");
    const [term, value] = ["dt", "dd"].map((tag) => document.createElement(tag));
    const button = withTip(name);
    attribute(node, `data-${kind}`, name);
    term.append(button);
    node.append(term, value);
    return {
      node,
      draw({ value: message, tip, runbook, isMuch = runbook !== undefined }) {
        sentence(value, { message, runbook });
        attribute(button, "data-tip", tip);
        node.classList.toggle("much", isMuch);
      },
    };
  };
}

// ---- Tables that are wider than their container --------------------------------------------------

const sizes = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    if (target.isConnected) fade(target.closest("[role=region]"));
    else sizes.unobserve(target);
  }
});

/** Fades out the right edge of a region while more content is beyond it. */
export function hintAtMore(region) {
  region.addEventListener("scroll", () => fade(region), { passive: true });
  for (const it of [region, $("table", region)]) sizes.observe(it);
}

function fade(region) {
  region.classList.toggle("more", region.scrollWidth - region.clientWidth - region.scrollLeft > 1);
}

// ---- Explanations: elements with data-tip show it on hover, focus or tap; Escape hides it ---------

const LINGER_MS = 200; // time to move the pointer from the word to its explanation

let explained = null;
let leaving;

export function startTips() {
  const tip = $("#tip");
  const wordOf = (target) => target.closest?.("[data-tip]") ?? null;
  document.addEventListener("pointerover", ({ target, pointerType }) => {
    if (pointerType === "touch") return;
    if (tip.contains(target) || wordOf(target)) clearTimeout(leaving);
    if (wordOf(target)) explain(wordOf(target), tip);
  });
  document.addEventListener("pointerout", ({ target, pointerType }) => {
    if (pointerType === "touch" || !(tip.contains(target) || wordOf(target))) return;
    clearTimeout(leaving);
    leaving = setTimeout(() => silence(tip), LINGER_MS);
  });
  document.addEventListener("focusin", ({ target }) => (wordOf(target) ? explain(wordOf(target), tip, target) : silence(tip)));
  document.addEventListener("focusout", () => silence(tip));
  document.addEventListener("click", ({ target }) => {
    const word = wordOf(target);
    // Elements that do something else on click are explained on hover and focus only.
    if (word !== null && !word.matches(".sort, label")) explain(word, tip);
    else if (!tip.contains(target)) silence(tip);
  });
  document.addEventListener("keydown", ({ key }) => key === "Escape" && silence(tip));
  addEventListener("scroll", () => silence(tip), { passive: true, capture: true });
  addEventListener("resize", () => silence(tip));
}

function explain(word, tip, described = word) {
  clearTimeout(leaving);
  if (explained !== null && explained !== described) explained.removeAttribute("aria-describedby");
  explained = described;
  text(tip, word.dataset.tip);
  described.setAttribute("aria-describedby", tip.id);
  tip.hidden = false;
  placeAt(word, tip);
}

/** Places a box below a word, or above it if there is no room below. */
export function placeAt(word, box) {
  const GAP = 6;
  const at = word.getBoundingClientRect();
  box.style.setProperty("left", "0px"); // a box near the right edge is narrower
  const { width, height } = box.getBoundingClientRect();
  const left = Math.max(GAP, Math.min(at.left, innerWidth - width - GAP));
  const below = at.bottom + GAP;
  const top = below + height > innerHeight && at.top > height + GAP ? at.top - height - GAP : below;
  box.style.setProperty("left", `${left}px`);
  box.style.setProperty("top", `${top}px`);
}

function silence(tip) {
  clearTimeout(leaving);
  explained?.removeAttribute("aria-describedby");
  explained = null;
  tip.hidden = true;
}
