// The answer to session.compact: looks up what the event hides, sends the session to the hook client, gets a plan
// back (ids and new texts) and answers with the new session. Where that is not worth it or would lose something, the
// session stays as it is while there is room; where something goes wrong, the built-in summary runs. One line says why.

import { contextOf, oneLine, root, run, tell } from "./client.mjs";
import {
  build,
  forTheWire,
  isExpected,
  isReplacement,
  mayStay,
  missingIn,
  placed,
  progressOf,
  shownIn,
  tidy,
} from "./messages.mjs";
import { hasRecall } from "./recall.mjs";

const VERSION = 1;
const TRIGGERS = ["manual", "auto", "plugin"];
const NOT_WORTH_IT = ["nothing-new", "nothing-to-remove", "too-little"];
const LEFT = "left to the built-in summary: ";
const WAY_OUT = "the session stays as it is; /compact with a word of instructions writes a summary";

// How far each loop (the session's, a sub-agent's) had come at its last replacement. Asked again at the same
// point there is nothing new to remove, and answering again would let the client go round in a circle.
const doneAt = new Map();

/** The session is not to be replaced, and nothing is wrong with lcc: it may stay as it is. */
class Reluctance extends Error {}

async function askForPlan($, event, options, session, messages) {
  const context = await contextOf($);
  const answer = await run($, "client.py", ["compact", "--plugin-root", root], {
    v: VERSION,
    trigger: event.trigger,
    instructions: event.instructions ?? null,
    session_id: session.id,
    cwd: session.cwd,
    transcript_path: session.transcript,
    agent_id: event.agentId ?? null,
    options,
    context_tokens: context?.tokens ?? null,
    window_tokens: context?.window ?? null,
    recall_tool: hasRecall(),
    messages: forTheWire(messages),
  });
  if (answer.v !== VERSION) throw new Error(`the hook client answered with version ${answer.v}`);
  if (answer.action !== "parts") return answer;
  const parts = [];
  for (const path of answer.parts) parts.push(await $.fs.read(path));
  return JSON.parse(parts.join(""));
}

function askForUnseen($, event, session, kept) {
  return run($, "unseen.py", [], {
    transcript: session.transcript,
    agent_id: event.agentId ?? null,
    ...shownIn(event.messages, kept),
  });
}

// Resolves to {say, messages}; throws a Reluctance where the session may stay, an Error where the summary must run.
async function compact($, event, options) {
  const begun = Date.now();
  if (!isExpected(event.messages)) throw new Error("messages of a shape that this version does not know");
  const [id, cwd, info] = await Promise.all([$.session.id(), $.session.cwd(), $.session.info()]);
  const session = { id, cwd, transcript: info.transcriptPath };
  const unseen = await askForUnseen($, event, session, tidy(event.messages));
  if (unseen.lost.length > 0) throw new Reluctance(`a replacement would lose ${unseen.lost[0]}`);
  const messages = tidy(event.messages, new Set(unseen.unsent));
  const loop = `${id} ${event.agentId ?? ""}`;
  const progress = progressOf(messages);
  if (doneAt.get(loop) === progress) throw new Reluctance("nothing new to remove since the last compaction");
  const answer = await askForPlan($, event, options, session, messages);
  if (answer.action === "hand-over" && typeof answer.say === "string") {
    const why = answer.say.startsWith(LEFT) ? answer.say.slice(LEFT.length) : answer.say;
    throw NOT_WORTH_IT.includes(answer.reason) ? new Reluctance(why) : new Error(why);
  }
  if (!isReplacement(answer)) throw new Error("the hook client's answer is no plan");
  const plan = {
    results: new Map(Object.entries(answer.results)),
    dropped: new Set(answer.dropped),
    inputs: new Map(Object.entries(answer.inputs ?? {})),
    lines: new Map(Object.entries(unseen.lines)),
    texts: placed(unseen.texts, event.messages, messages),
  };
  const built = build(messages, plan);
  const missing = missingIn(built, messages, plan);
  if (missing) throw new Reluctance(`a replacement would lose ${missing}`);
  doneAt.set(loop, progress);
  return { say: `${answer.say} in ${Date.now() - begun} ms`, messages: built };
}

/** What `session.compact` is answered: the new session, `{skip}`, or what `next` gives. */
export async function answerCompaction($, event, next, options) {
  if (options?.enabled === false || !TRIGGERS.includes(event.trigger)) return next(event);
  let outcome;
  try {
    outcome = await compact($, event, options);
  } catch (error) {
    if (error instanceof Reluctance && mayStay(event, (await contextOf($))?.percent)) {
      return { skip: oneLine(`${error.message}; ${WAY_OUT}`) };
    }
    outcome = { say: `${LEFT}${error.message}` };
  }
  await tell($, oneLine(outcome.say));
  return outcome.messages ? { messages: outcome.messages } : next(event);
}
