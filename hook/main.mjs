// The plugin's module: what it answers, one registration each. What is done stands in a file of its own.
//
// The client follows `$` past an import into function declarations alone: `export async function name($, …) {}`.
// `claude plugin validate --strict --profile directory .` says what it refuses.

import { answerCompaction } from "./compact.mjs";
import { noteFigures } from "./figures.mjs";
import { noteStart, noteTurn, rest } from "./proactive.mjs";
import { checkRecall, registerRecall, runRecall } from "./recall.mjs";

export const register = (on, options) => {
  on("session.start", async ($, event, next) => {
    noteStart(event);
    await registerRecall($, options);
    const begun = await next(event);
    rest($, options, true);
    return begun;
  }).catch(($, event, next) => next(event));
  on("turn.start", ($, event, next) => {
    noteTurn();
    return next(event);
  }).catch(($, event, next) => next(event));
  on("turn.complete", async ($, event, next) => {
    const ended = await next(event);
    rest($, options, false);
    return ended;
  }).catch(($, event, next) => next(event));
  on("tool.check", { tool: "mcp__lcc__recall" }, ($, event, next) => checkRecall($, event, next, options)).catch(($, event, next) => next(event));
  on("tool.run", { tool: "mcp__lcc__recall" }, ($, event) => runRecall($, event)).catch(($, event, next) => next(event));
  on("session.measure", async ($, event, next) => {
    await noteFigures($, event);
    return next(event);
  }).catch(($, event, next) => next(event));
  on("session.compact", ($, event, next) => answerCompaction($, event, next, options)).catch(($, event, next) => next(event));
};
