// The plugin's module: what it answers, one registration each. What is done stands in a file of its own.
//
// The client follows `$` past an import into function declarations alone: `export async function name($, …) {}`.
// `claude plugin validate --strict --profile directory .` says what it refuses.

import { answerCompaction } from "./compact.mjs";

export const register = (on, options) => {
  on("session.compact", ($, event, next) => answerCompaction($, event, next, options)).catch(($, event, next) => next(event));
};
