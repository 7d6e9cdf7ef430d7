// What a compaction did, by the client's own figures: known once the next request was answered.

import { runQuietly, tell } from "./client.mjs";
import { cameDown } from "./room.mjs";

// The newest replacement: {session, before, report}, and the context behind it, `after`, once it is known.
let newest;

/** The session was replaced: what it held before, and where the report of it stands. */
export const awaitFigures = (session, before, report) => {
  newest = { session, before, report };
};

/** The context as the session's newest replacement left it; undefined where that is not known (yet). */
export const leftBy = (session) => (newest?.session === session ? newest.after : undefined);

/** The built-in summary comes behind it: what the replacement left says nothing any more. */
export const forgetFigures = () => {
  newest = undefined;
};

/** The client has measured the session anew: say what the replacement before did, and have it in the report. */
export async function noteFigures($, event) {
  if (!newest || newest.after || !(event.context?.tokens > 0)) return;
  if (newest.session !== (await $.session.id())) return;
  const { before, report } = newest;
  newest.after = event.context;
  const line = cameDown(before, event.context);
  if (!line) return;
  await tell($, line, true);
  const { tokens, window } = event.context;
  await runQuietly($, "client.py", ["measured"], { report, tokens, window });
}
