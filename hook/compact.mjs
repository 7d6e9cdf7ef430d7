// The session.compact function hook: sends the session to the hook client, gets a plan back (ids and new texts)
// and answers with the new session. Whatever goes wrong, the built-in summary runs and one line says why.

import { build, forTheWire, isExpected, isReplacement, progressOf, shownIn, tidy } from "./messages.mjs";

const VERSION = 1;
const LIMIT_MS = 60_000;
const LINE_LIMIT = 400;
const TRIGGERS = ["manual", "auto"];
const PYTHON = ["python3", "-I", "-S", "-E"];

const root = decodeURIComponent(import.meta.url.replace(/^file:\/\//, "").replace(/\/hook\/[^/]*$/, ""));

// How far each loop (the session's, a sub-agent's) had come at its last replacement. Asked again at the same
// point there is nothing new to remove, and answering again would let the client go round in a circle.
const doneAt = new Map();

const run = async ($, program, words, input) => {
  const ran = await $.process.run([...PYTHON, `${root}/hook/lcc_hook/${program}`, ...words], {
    stdin: JSON.stringify(input),
    timeoutMs: LIMIT_MS,
  });
  if (ran.exitCode !== 0) throw new Error(ran.stderr.trim() || `${program} ended with ${ran.exitCode}`);
  if (ran.isStdoutTruncated) throw new Error(`the answer of ${program} was cut`);
  return JSON.parse(ran.stdout);
};

const askForPlan = async ($, event, options, session, messages) => {
  const answer = await run($, "client.py", ["compact", "--plugin-root", root], {
    v: VERSION,
    trigger: event.trigger,
    instructions: event.instructions ?? null,
    session_id: session.id,
    cwd: session.cwd,
    transcript_path: session.transcript,
    agent_id: event.agentId ?? null,
    options,
    messages: forTheWire(messages),
  });
  if (answer.v !== VERSION) throw new Error(`the hook client answered with version ${answer.v}`);
  if (answer.action !== "parts") return answer;
  const parts = [];
  for (const path of answer.parts) parts.push(await $.fs.read(path));
  return JSON.parse(parts.join(""));
};

const askForUnseen = ($, event, session, messages) =>
  run($, "unseen.py", [], {
    transcript: session.transcript,
    agent_id: event.agentId ?? null,
    ...shownIn(messages),
  });

const textsByPlace = (texts) => {
  const places = new Map();
  for (const { after, text } of texts) places.set(after, [...(places.get(after) ?? []), text]);
  return places;
};

// Resolves to {say, messages}; throws an Error with the reason where the built-in summary must run.
const compact = async ($, event, options) => {
  const begun = Date.now();
  if (!isExpected(event.messages)) throw new Error("messages of a shape that this version does not know");
  const messages = tidy(event.messages);
  const [id, cwd, info] = await Promise.all([$.session.id(), $.session.cwd(), $.session.info()]);
  const session = { id, cwd, transcript: info.transcriptPath };
  const loop = `${id} ${event.agentId ?? ""}`;
  const progress = progressOf(messages);
  if (doneAt.get(loop) === progress) throw new Error("nothing new to remove since the last compaction");
  const [answer, unseen] = await Promise.all([
    askForPlan($, event, options, session, messages),
    askForUnseen($, event, session, messages),
  ]);
  if (answer.action === "hand-over" && typeof answer.say === "string") return { say: answer.say };
  if (!isReplacement(answer)) throw new Error("the hook client's answer is no plan");
  if (unseen.lost.length > 0) throw new Error(`it would lose ${unseen.lost[0]}`);
  const built = build(messages, {
    results: new Map(Object.entries(answer.results)),
    dropped: new Set(answer.dropped),
    lines: new Map(Object.entries(unseen.lines)),
    texts: textsByPlace(unseen.texts),
  });
  doneAt.set(loop, progress);
  return { say: `${answer.say} in ${Date.now() - begun} ms`, messages: built };
};

// The client puts the plugin's name in front. The line stays in the scrollback, above the session that it draws
// anew after a compaction; the toast is there for the user to see it. Neither is worth a compaction.
const tell = async ($, line) => {
  try {
    await $.ui.log(line);
    await $.ui.toast(line);
  } catch {
    // a client without one of the two
  }
};

export const register = (on, options) => {
  on("session.compact", async ($, event, next) => {
    if (options?.enabled === false || !TRIGGERS.includes(event.trigger)) return next(event);
    let outcome;
    try {
      outcome = await compact($, event, options);
    } catch (error) {
      outcome = { say: `left to the built-in summary: ${error.message}` };
    }
    await tell($, outcome.say.replaceAll(/\s+/g, " ").slice(0, LINE_LIMIT));
    return outcome.messages ? { messages: outcome.messages } : next(event);
  }).catch(($, event, next) => next(event));
};
