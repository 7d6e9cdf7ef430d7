// The tool `recall`, which the client has from this module: no server process, and no permission is asked. It is answered
// by the daemon, and where none can be had by a program that reads the stash itself.

import { run, runQuietly } from "./client.mjs";

const NAME = "mcp__lcc__recall";
const NOT_GIVEN = "lcc: the output could not be had back";
const PROGRAMS = ["client.py", "alone.py"];

const TOOL = {
  name: "recall",
  description:
    'Get back the exact output behind a note "[removed: 812 tokens · lcc recall 0123456789ab]": lcc moved it out of ' +
    "this conversation to free context, byte for byte. Ask for a part (grep, lines) when you know what you need: it " +
    "costs less context than the whole. Long outputs come in pages.",
  isDeferred: false,
  inputSchema: {
    type: "object",
    properties: {
      id: { type: "string", description: "The 12 hex digits of the note." },
      lines: { type: "string", description: 'Only these lines, counted from 1: "120-180", "120-" or "120".' },
      grep: {
        type: "string",
        description: "Only lines that hold this text or match this regular expression, each as number:line.",
      },
      offset: { type: "integer", description: "Begin at this character; the previous page named it." },
      limit: { type: "integer", description: "Characters at most: 16000 if not given, never over 30000." },
    },
    required: ["id"],
    additionalProperties: false,
  },
};

/** Whether this session has the tool: a rule of the user's may withhold it. */
export async function hasRecall($) {
  try {
    return (await $.tool.list()).some(({ name }) => name === NAME);
  } catch {
    return false;
  }
}

/** Give the session the tool. A client that cannot is left as it is: `lcc recall` in the shell does the same. */
export async function registerRecall($, options) {
  if (options?.enabled === false) return;
  try {
    await $.tool.register(TOOL);
  } catch {
    // a client without such tools, or another server of that name
  }
}

/** Our own tool runs without asking, where no rule of the user's is about it and the configuration does not forbid it. */
export async function checkRecall($, event, next, options) {
  const decided = await next(event);
  if (decided.decision !== "ask" || decided.rule) return decided;
  const question = { session_id: await $.session.id(), tool_name: event.tool, tool_input: event.input, options };
  for (const program of PROGRAMS) {
    const said = await runQuietly($, program, ["allow-recall"], question);
    if (said === undefined) continue;
    const isAllowed = said?.hookSpecificOutput?.permissionDecision === "allow";
    return isAllowed ? { decision: "allow" } : decided;
  }
  return decided;
}

/** What the tool answers: blocks of the Messages API, or a text that says what to ask for instead. */
export async function runRecall($, event) {
  const { tool, tool_use_id, ...asked } = event;
  const question = { session_id: await $.session.id(), asked };
  let problem = "";
  for (const program of PROGRAMS) {
    try {
      const { result } = await run($, program, ["recall"], question);
      if (result !== undefined) return { result };
    } catch (error) {
      problem = `: ${error.message}`;
    }
  }
  return { result: `${NOT_GIVEN}${problem}. Try lcc recall ${asked.id ?? "ID"} in the shell.` };
}
