// The answer to session.compact: looks up what the event hides, sends the session to the hook client, gets a plan
// back (ids and new texts) and answers with the new session. Where that is not worth it, would lose something or finds
// a full disk, the session stays as it is while there is room; where lcc goes wrong, the built-in summary runs. One
// line says why.

import { contextOf, oneLine, root, run, tell } from "./client.mjs";
import { awaitFigures, forgetFigures, leftBy, noteFigures } from "./figures.mjs";
import {
  build,
  isExpected,
  isReplacement,
  missingIn,
  placed,
  pointOf,
  shownIn,
  tidy,
} from "./messages.mjs";
import { noteOwn, ownMoment } from "./proactive.mjs";
import { Answered, hasRoom, isOwnWill, mayStay, used } from "./room.mjs";
import { VERSION, question } from "./session.mjs";

const TRIGGERS = ["manual", "auto", "plugin"];
// What stands against a replacement where lcc itself works: nothing to gain, or what its user can mend and ask again.
const WAITS = ["nothing-new", "nothing-to-remove", "too-little", "config", "parts", "runtime-folder"];
const LEFT = "left to the built-in summary: ";
const WAY_OUT = "the session stays as it is; /compact with a word of instructions writes a summary";

const answered = new Answered();

/** The session is not to be replaced, and nothing is wrong with lcc: it may stay as it is. */
class Reluctance extends Error {}

async function askForPlan($, event, options, messages, context) {
  const isOwn = isOwnWill(event);
  const asked = {
    trigger: event.trigger,
    instructions: isOwn ? null : (event.instructions ?? null),
    agent_id: event.agentId ?? null,
    moment: isOwn ? ownMoment() : null,
  };
  const input = await question($, options, messages, context, asked);
  const answer = await run($, "client.py", ["compact", "--plugin-root", root], input);
  if (answer.v !== VERSION) throw new Error(`the hook client answered with version ${answer.v}`);
  if (answer.action !== "parts") return answer;
  const parts = [];
  for (const path of answer.parts) parts.push(await $.fs.read(path));
  return JSON.parse(parts.join(""));
}

async function askForUnseen($, event, kept) {
  const { transcriptPath } = await $.session.info();
  return run($, "unseen.py", [], {
    transcript: transcriptPath,
    agent_id: event.agentId ?? null,
    ...shownIn(event.messages, kept),
  });
}

// Resolves to {say, messages}; throws a Reluctance where the session may stay, an Error where the summary must run.
async function compact($, event, options, id, loop, context) {
  const begun = Date.now();
  const unseen = await askForUnseen($, event, tidy(event.messages));
  if (unseen.lost.length > 0) throw new Reluctance(`a replacement would lose ${unseen.lost[0]}`);
  const messages = tidy(event.messages, new Set(unseen.unsent));
  const answer = await askForPlan($, event, options, messages, context);
  if (answer.action === "hand-over" && typeof answer.say === "string") {
    const why = answer.say.startsWith(LEFT) ? answer.say.slice(LEFT.length) : answer.say;
    throw WAITS.includes(answer.reason) ? new Reluctance(why) : new Error(why);
  }
  if (!isReplacement(answer)) throw new Error("the hook client's answer is no plan");
  if (event.trigger === "auto" && hasRoom({ ...context, tokens: answer.tokens_after }) === false) {
    throw new Error(`what can be removed leaves too little room: ${answer.say}`);
  }
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
  answered.replaced(loop, pointOf(tidy(built)));
  if (context) awaitFigures(id, context, answer.report);
  return { say: `${answer.say} in ${Date.now() - begun} ms`, messages: built };
}

// The same, where it was not answered before; what keeps the session as it is becomes `{skip}`, with the line for it.
async function decide($, event, options) {
  const id = await $.session.id();
  // A sub-agent's context is another one than the session's, which is what the client gives figures of.
  const context = event.agentId ? undefined : await contextOf($);
  if (context) await noteFigures($, { context });
  if (!isExpected(event.messages)) {
    return { why: "messages of a shape that this version does not know", stays: isOwnWill(event) };
  }
  const loop = `${id} ${event.agentId ?? ""}`;
  const point = pointOf(tidy(event.messages));
  const stays = mayStay(event, context);
  let why = answered.again(loop, { ...event, stays }, point, context, Date.now());
  const isAgain = why !== undefined;
  try {
    if (!isAgain && event.trigger === "auto" && !event.agentId && hasRoom(leftBy(id)) === false) {
      return { why: `the last compaction left too little room: ${used(leftBy(id))}` };
    }
    if (!isAgain) return await compact($, event, options, id, loop, context);
  } catch (error) {
    why = error.message;
    if (!(error instanceof Reluctance)) return { why, context, stays: isOwnWill(event) };
    if (stays) answered.skipped(loop, point, why, context, Date.now());
  }
  return { why, context, stays, isAgain };
}

/** What `session.compact` is answered: the new session, `{skip}`, or what `next` gives. */
export async function answerCompaction($, event, next, options) {
  if (options?.enabled === false || !TRIGGERS.includes(event.trigger)) return next(event);
  const moment = isOwnWill(event) ? ownMoment() : "";
  const { messages, say, why, context, stays, isAgain } = await decide($, event, options);
  if (messages) {
    if (moment) noteOwn(say);
    else await tell($, oneLine(say));
    return { messages };
  }
  const reason = [why, used(context)].filter(Boolean).join("; ");
  if (!stays) {
    await tell($, oneLine(`${LEFT}${reason}`));
    if (!event.agentId) forgetFigures();
    return next(event);
  }
  const skip = oneLine(`${reason}; ${WAY_OUT}`);
  // By hand the client says it in its own words. By itself it asks before each request: one quiet line, the first time.
  if (event.trigger === "auto" && !isAgain) await tell($, skip, true);
  return { skip };
}
