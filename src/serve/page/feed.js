// Follows a view on the daemon: by server-sent events, or by polling if there is no stream.
//
//   follow(query) ─▶ stream ──▶ answers, beats ─▶ onAnswer
//                     │ error, or nothing for a while
//                     ├─ refused (full, or a proxy in between): ask once, and try the stream again later
//                     └─ gone: onSilence, try again after 1 s, 2 s, 4 s … 30 s, with jitter
//
// A hidden tab follows nothing.

/** Relative to the page, so that it works behind a proxy's path prefix. */
const PATH = "api/v1/view";
const VERSION = 1;
/** The daemon sends something at least every five seconds. */
const SILENCE_MS = 15_000;
const PATIENCE_MS = 10_000;
const ASK_MS = 5_000;
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 30_000;

export class Feed {
  #on;
  #query = "";
  #source = null;
  #asking = null;
  #timer;
  #watchdog;
  #failures = 0;

  /** Calls `onAnswer(answer, { asked })`, and `onSilence(reason)` after each failed attempt. */
  constructor(on) {
    this.#on = on;
    document.addEventListener("visibilitychange", () => (document.hidden ? this.#stop() : this.#start()));
    addEventListener("online", () => this.#start());
  }

  /** Follows this view from now on, instead of the previous one. */
  follow(query) {
    this.#query = query;
    this.#start();
  }

  #start() {
    this.#stop();
    if (document.hidden) return;
    const source = new EventSource(`${PATH}/stream?${this.#query}`);
    this.#source = source;
    source.addEventListener("message", ({ data }) => this.#heard(JSON.parse(data), { asked: false }));
    source.addEventListener("beat", () => this.#watch());
    source.addEventListener("error", () => {
      // The browser closes a refused stream. It would reopen a broken one immediately, on all pages at once, so we close that one too.
      const refused = source.readyState === EventSource.CLOSED;
      this.#stop();
      if (refused) this.#ask();
      else this.#failed("no connection");
    });
    this.#watch();
  }

  #stop() {
    clearTimeout(this.#timer);
    clearTimeout(this.#watchdog);
    this.#source?.close();
    this.#asking?.abort();
  }

  #watch() {
    clearTimeout(this.#watchdog);
    this.#watchdog = setTimeout(() => {
      this.#stop();
      this.#failed(`no data for ${SILENCE_MS / 1000} s`);
    }, SILENCE_MS);
  }

  #heard(answer, how) {
    this.#watch();
    if (answer.version !== VERSION) {
      this.#stop();
      this.#failed(`it sends format ${answer.version}, but this page reads ${VERSION}: reload the page`);
      return;
    }
    this.#failures = 0;
    this.#on.onAnswer(answer, how);
  }

  async #ask() {
    const mine = (this.#asking = new AbortController());
    try {
      const signal = AbortSignal.any([mine.signal, AbortSignal.timeout(PATIENCE_MS)]);
      const response = await fetch(`${PATH}?${this.#query}`, { signal, cache: "no-store" });
      if (!response.ok) throw new Error(response.status === 401 ? "it requires credentials: reload the page" : `HTTP ${response.status}`);
      const answer = await response.json();
      if (mine.signal.aborted) return;
      this.#heard(answer, { asked: true });
      clearTimeout(this.#watchdog);
      this.#again(ASK_MS);
    } catch (error) {
      if (!mine.signal.aborted) this.#failed(reasonOf(error));
    }
  }

  #failed(reason) {
    this.#on.onSilence(reason);
    this.#again(Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** this.#failures));
    this.#failures += 1;
  }

  /** Adds jitter, so that pages which lost the daemon together do not reconnect together. */
  #again(pauseMs) {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#start(), pauseMs * (0.75 + Math.random() / 2));
  }
}

function reasonOf(error) {
  if (error instanceof TypeError) return "no connection";
  return error.name === "TimeoutError" ? `no answer in ${PATIENCE_MS / 1000} s` : error.message;
}
