// Search in the book: the page search.html shows what sections hold all words that are asked for.
//
// A book is opened from files too, where a browser lets a page read no other file, nor start a worker, as the search of MkDocs does.
// So `.ci/book` writes the index as a script, which this one puts into the page.
(() => {
  "use strict";

  const results = document.getElementById("mkdocs-search-results");
  if (!results) return;
  const field = document.getElementById("mkdocs-search-query");
  const AT_MOST = 50;
  const AROUND = 80;

  const wordsOf = (query) => query.toLowerCase().split(/\s+/).filter(Boolean);

  /** 0 where a word is missing; a word in the title of a section weighs as much as ten in its text. */
  function score(section, words) {
    let sum = 0;
    for (const word of words) {
      const inText = section.lowText.split(word).length - 1;
      const found = Math.min(inText, 10) + (section.lowTitle.includes(word) ? 10 : 0);
      if (!found) return 0;
      sum += found;
    }
    return sum;
  }

  /** The text around the first word that stands in it. */
  function excerpt(section, words) {
    const places = words.map((word) => section.lowText.indexOf(word)).filter((place) => place >= 0);
    const place = places.length ? Math.min(...places) : 0;
    const from = Math.max(0, place - AROUND);
    const to = Math.min(section.text.length, place + 2 * AROUND);
    return (from > 0 ? "…" : "") + section.text.slice(from, to) + (to < section.text.length ? "…" : "");
  }

  function element(name, text, ...children) {
    const made = document.createElement(name);
    made.append(...(text ? [text] : []), ...children);
    return made;
  }

  function show(sections) {
    const words = wordsOf(field.value);
    const found = sections
      .map((section) => ({ section, score: words.length ? score(section, words) : 0 }))
      .filter(({ score }) => score > 0)
      .sort((a, b) => b.score - a.score);
    const shown = found.slice(0, AT_MOST).map(({ section }) => {
      const link = element("a", section.title);
      link.href = section.location;
      const of = section.page === section.title ? "" : ` (${section.page})`;
      return element("article", "", element("h3", "", link, of), element("p", excerpt(section, words)));
    });
    const many = `${found.length} ${found.length === 1 ? "section" : "sections"}`;
    results.replaceChildren(element("p", words.length ? many : "Type a word."), ...shown);
  }

  window.bookIndex = ({ docs }) => {
    const titles = new Map(docs.filter(({ location }) => !location.includes("#")).map((page) => [page.location, page.title]));
    const sections = docs.map((section) => ({
      ...section,
      page: titles.get(section.location.split("#")[0]),
      lowText: section.text.toLowerCase(),
      lowTitle: section.title.toLowerCase(),
    }));
    field.value = new URLSearchParams(location.search).get("q") ?? "";
    field.addEventListener("input", () => show(sections));
    field.form.addEventListener("submit", (event) => event.preventDefault());
    show(sections);
  };
  const script = document.createElement("script");
  script.src = "search/search_index.js";
  document.body.append(script);
})();
