// What a compaction did, by the client's own figures: known once the next request was answered.

import { runQuietly, tell } from "./client.mjs";
import { cameDown } from "./room.mjs";

// The newest replacement whose figures are still to come: {before, report}.
let awaited;
// The context right after the newest replacement, once it is known.
let after;

/** The session was replaced: what it held before, and where the report of it stands. */
export const awaitFigures = (before, report) => {
  awaited = { before, report };
  after = undefined;
};

/** The context as the newest replacement left it; undefined where that is not known (yet). */
export const leftBy = () => after;

/** The built-in summary comes behind it: what the replacement left says nothing any more. */
export const forgetFigures = () => {
  awaited = undefined;
  after = undefined;
};

/** The client has measured the session anew: say what the replacement before did, and have it in the report. */
export async function noteFigures($, event) {
  if (!awaited || !(event.context?.tokens > 0)) return;
  const { before, report } = awaited;
  awaited = undefined;
  after = event.context;
  const line = cameDown(before, after);
  if (!line) return;
  await tell($, line, true);
  const { tokens, window } = after;
  await runQuietly($, "client.py", ["measured"], { report, tokens, window });
}
