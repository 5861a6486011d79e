// Results to paste elsewhere: an experiment as Markdown, and clean columns of a table that is copied.

import { sharedAddress } from "./choice.js";
import { $, text } from "./document.js";
import { visible } from "./words.js";

/** Time for which a button reports its success. */
const THANKS_MS = 2_000;

/** Text of an element without drawings and hidden parts, on one line. */
function wordsOf(node) {
  const copy = node.cloneNode(true);
  for (const it of copy.querySelectorAll("svg, [hidden]")) it.remove();
  return copy.textContent.trim().replaceAll(/\s+/g, " ");
}

/** Returns rows of a table as [{ name, cells }], with the name of the arm in its line. The first row is the head. Facts below an arm are left out. */
function rowsOf(table, isWanted) {
  const isShown = (column) => !table.classList.contains(`without-${column}`);
  const columns = [...table.querySelectorAll("thead [data-column]")].map((it) => it.dataset.column).filter(isShown);
  const rows = [...table.rows].filter((row) => !row.matches(".details") && (row.closest("thead") || isWanted(row)));
  return rows.map((row) => {
    const reason = $("[data-column=reason]", row);
    const first = [row.cells[0], reason].filter((it) => it?.textContent).map(wordsOf).join(": ");
    const cellOf = (column) => $(`[data-column=${column}]`, row);
    const name = $(".arm > :is(.fold, .whose):not([hidden])", row);
    return { name: name === null ? "" : wordsOf(name), cells: [first, ...columns.map((column) => (cellOf(column) ? wordsOf(cellOf(column)) : ""))] };
  });
}

/** Copies selected rows as tab-separated text and as a plain table. The browser would break lines within cells. */
export function startCopying() {
  document.addEventListener("copy", (event) => {
    const selection = getSelection();
    const within = selection.rangeCount > 0 ? selection.getRangeAt(0).commonAncestorContainer : null;
    const table = (within instanceof Element ? within : within?.parentElement)?.closest(".lifts");
    const rows = table ? rowsOf(table, (row) => selection.containsNode(row, true)) : [];
    if (rows.length < 3 || selection.isCollapsed) return;
    const plain = document.createElement("table");
    for (const { cells } of rows) {
      const row = plain.insertRow();
      for (const words of cells) text(row.insertCell(), words);
    }
    event.clipboardData.setData("text/plain", rows.map(({ cells }) => cells.join("\t")).join("\n"));
    event.clipboardData.setData("text/html", plain.outerHTML);
    event.preventDefault();
  });
}

/** Makes a button copy the visible results of an experiment in `section`. `shown()` returns the experiment. */
export function copyBy(button, section, shown) {
  const name = button.textContent;
  button.addEventListener("click", async () => {
    const isCopied = await write(markdownOf(shown(), section));
    text(button, isCopied ? "copied" : "copying is not allowed here");
    setTimeout(() => text(button, name), THANKS_MS);
  });
}

/** Writes to the clipboard. On pages without TLS, only the second way works. */
async function write(words) {
  try {
    await navigator.clipboard.writeText(words);
    return true;
  } catch {
    const area = document.body.appendChild(document.createElement("textarea"));
    area.value = words;
    area.select();
    const isCopied = document.execCommand("copy");
    area.remove();
    return isCopied;
  }
}

/** Names are untrusted: none may become markup. */
const escaped = (words) => words.replaceAll(/[!#&*<>@[\\\]_`{|}~]/g, "\\$&");

const bold = (words) => (words === "" ? "" : `**${escaped(words)}**`);

function markdownOf({ name, verdict, looks }, section) {
  const part = (it) => (typeof it === "string" ? it : bold(visible(it.name)));
  const rows = section.querySelectorAll(".lifts:not([hidden])");
  const [head, ...body] = [...rows].flatMap((table) => rowsOf(table, () => true));
  const line = (cells) => `| ${cells.join(" | ")} |`;
  const lineOf = ({ name, cells: [first, ...rest] }) => line([bold(name) + escaped(first.slice(name.length)), ...rest.map(escaped)]);
  const table = head === undefined ? [] : [lineOf(head), line(head.cells.map((_, i) => (i === 0 ? "---" : "---:"))), ...body.map(lineOf), ""];
  const asOf = looks?.as_of == null ? "" : `Analysis of ${new Date(looks.as_of).toISOString().slice(0, 16).replace("T", " ")} UTC, `;
  return [`### ${escaped(visible(name))}: ${verdict.label}`, "", verdict.parts.map(part).join(""), "", ...table, `${asOf}<${sharedAddress(name, looks?.as_of ?? undefined)}>`, ""].join("\n");
}
