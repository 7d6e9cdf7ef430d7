// How full the window is, by the client's own figures, and what was answered before: pure functions.
//
// A context is what `$.session.usage()` says: {tokens, window}. Right after a replacement there are no tokens in it
// until the next request was answered.

/** The share of the window from which on a compaction that removes too little cannot be waited for. */
export const NEARLY_FULL = 0.8;
/** Tokens that the next turns need at least. The client keeps about 23,000 of the window for itself. */
export const LEAST_ROOM = 40_000;

const isKnown = (context) => context?.tokens > 0 && context.window > 0;

/** Whether there is room for the next turns; undefined where the client does not say. */
export const hasRoom = (context) =>
  isKnown(context)
    ? context.tokens < NEARLY_FULL * context.window && context.window - context.tokens >= LEAST_ROOM
    : undefined;

/** Whether the context has come to `share` of the window; no, where the client does not say. */
export const isAt = (context, share) => isKnown(context) && context.tokens >= share * context.window;

/** How instructions begin with which this plugin asks for a compaction by its own will. */
export const OWN_WILL = "[lcc]";

/** Whether this plugin itself asks: then nothing is ever summarised for it, whatever happens. */
export const isOwnWill = ({ instructions }) => instructions?.startsWith(OWN_WILL) === true;

/**
 * Whether a session that cannot be compacted well may stay as it is: nobody asked for a summary (one word of
 * instructions does), and there is room. Where the client does not say, there is none if it asks by itself (auto).
 */
export const mayStay = ({ trigger, instructions }, context) =>
  isOwnWill({ instructions }) || (!instructions?.trim() && (hasRoom(context) ?? trigger !== "auto"));

const thousands = (tokens) => (tokens < 10_000 ? `${tokens}` : `${Math.round(tokens / 1000)}k`);
const share = ({ tokens, window }) => `${Math.round((100 * tokens) / window)} %`;

/** The context in words: what is in use of the window, and its share. Empty where the client does not say. */
export const used = (context) =>
  isKnown(context) ? `${thousands(context.tokens)} of ${thousands(context.window)} tokens in use (${share(context)})` : "";

/** What a compaction did to the context, by the client's own figures. Empty where it does not say. */
export const cameDown = (before, after) =>
  isKnown(before) && isKnown(after)
    ? `the context is at ${thousands(after.tokens)} of ${thousands(after.window)} tokens (${share(after)}); ` +
      `before the compaction it was at ${thousands(before.tokens)} (${share(before)})`
    : "";

/** A skip that was answered by hand is asked for anew after so long: files and configuration may have changed. */
export const SKIP_LIFE_MS = 60_000;
/** What the context must have grown by, as a share of the window, for the client's own question to be worth a pass. */
export const GROWTH = 0.02;
const LOOPS_KEPT = 200;

/**
 * What each loop (the session's, a sub-agent's) was answered last. Asked again at the same point, the answer is the
 * same and costs nothing, and the client cannot go round in a circle.
 */
export class Answered {
  constructor() {
    this.last = new Map();
  }

  keep(loop, answer) {
    this.last.delete(loop);
    this.last.set(loop, answer);
    if (this.last.size > LOOPS_KEPT) this.last.delete(this.last.keys().next().value);
  }

  /** The session was left as it is at `point` (how far the assistant had come) and `at` (ms), for `why`. */
  skipped(loop, point, why, context, at) {
    this.keep(loop, { point, why, tokens: context?.tokens, at });
  }

  /** The session was replaced: at the same point nothing new can be removed. */
  replaced(loop, point) {
    this.keep(loop, { point, why: "nothing new to remove since the last compaction", isDone: true });
  }

  /**
   * Why the session stays as it is this time too; undefined where a pass must find out. Where it cannot stay
   * (`stays`), a pass has its last try ahead of a summary, unless nothing has changed at all.
   */
  again(loop, { trigger, stays }, point, context, at) {
    const last = this.last.get(loop);
    if (!last) return undefined;
    const isByItself = trigger === "auto";
    if (last.point === point && (last.isDone || isByItself || at - last.at < SKIP_LIFE_MS)) return last.why;
    const hasHardlyGrown = isKnown(context) && context.tokens < last.tokens + GROWTH * context.window;
    return isByItself && stays && !last.isDone && hasHardlyGrown ? last.why : undefined;
  }
}
