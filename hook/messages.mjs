// What happens to the messages of a session.compact event, without any call to the client: pure functions.
//
// A message: {role, text, toolUses: [{tool_use_id, tool, input}], toolResults?: [{tool_use_id, text, isError}],
// handle?}. A handle is the uuid of the entry's line in the session file. It is kept on user prompts only:
// there it brings images and attachments back, while on calls or results a resume would undo the compaction.

export const CLOSING_NOTE =
  "[lcc] The context was compacted in the middle of this turn. The results above stand as far as they are shown.";
export const GO_ON = "[lcc] Go on with the task from here.";

const REMINDER = "<system-reminder>";

const isPrompt = (message) => message.role === "user" && !message.toolResults;

const isOurs = (message) =>
  message.toolUses.length === 0 &&
  ((message.role === "assistant" && message.text === CLOSING_NOTE) ||
    (isPrompt(message) && message.text === GO_ON));

const isCall = (use) =>
  typeof use === "object" && use !== null && typeof use.tool_use_id === "string" && typeof use.tool === "string";

const isResult = (result) =>
  typeof result === "object" &&
  result !== null &&
  typeof result.tool_use_id === "string" &&
  typeof result.text === "string";

const isMessage = (message) =>
  typeof message === "object" &&
  message !== null &&
  (message.role === "user" || message.role === "assistant") &&
  typeof message.text === "string" &&
  Array.isArray(message.toolUses) &&
  message.toolUses.every(isCall) &&
  (message.toolResults === undefined ||
    (message.role === "user" && Array.isArray(message.toolResults) && message.toolResults.every(isResult)));

/** Whether the messages have the shape that this module knows. Anything else is left to the client. */
export const isExpected = (messages) =>
  Array.isArray(messages) && messages.length > 0 && messages.every(isMessage);

/**
 * The messages without the two closing entries of earlier compactions, without calls listed twice and without those
 * that the client never sends (their handles).
 */
export const tidy = (messages, unsent = new Set()) => {
  const calls = new Set();
  const results = new Set();
  const once = (seen, id) => !seen.has(id) && seen.add(id) !== undefined;
  const kept = [];
  for (const message of messages) {
    if (isOurs(message) || unsent.has(message.handle)) continue;
    const toolUses = message.toolUses.filter((use) => once(calls, use.tool_use_id));
    const toolResults = message.toolResults?.filter((result) => once(results, result.tool_use_id));
    const isRepeat =
      (message.toolUses.length > 0 && toolUses.length === 0 && !message.text) ||
      (message.toolResults?.length > 0 && toolResults.length === 0 && !message.text);
    if (isRepeat) continue;
    const isWhole =
      toolUses.length === message.toolUses.length && toolResults?.length === message.toolResults?.length;
    kept.push(isWhole ? message : { ...message, toolUses, toolResults });
  }
  return kept;
};

const isTextById = (value) =>
  typeof value === "object" &&
  value !== null &&
  !Array.isArray(value) &&
  Object.values(value).every((text) => typeof text === "string");

const isChange = (change) =>
  Array.isArray(change) && change.length === 2 && Array.isArray(change[0]) && typeof change[1] === "string";

const isInputs = (inputs) =>
  inputs === undefined ||
  (typeof inputs === "object" &&
    inputs !== null &&
    Object.values(inputs).every((changes) => Array.isArray(changes) && changes.every(isChange)));

/** Whether an answer is a plan that can be carried out. */
export const isReplacement = (answer) =>
  isInputs(answer.inputs) &&
  answer.action === "replace" &&
  typeof answer.say === "string" &&
  isTextById(answer.results) &&
  Array.isArray(answer.dropped) &&
  answer.dropped.every((id) => typeof id === "string");

/** What the compaction is sent: the messages without a second copy of each result and without metadata. */
export const forTheWire = (messages) =>
  messages.map((message) => {
    const sent = { role: message.role, text: message.text };
    if (message.toolUses.length > 0) {
      sent.toolUses = message.toolUses.map(({ tool_use_id, tool, input }) => ({ tool_use_id, tool, input }));
    }
    if (message.toolResults) {
      sent.toolResults = message.toolResults.map(({ tool_use_id, text, isError }) => ({
        tool_use_id,
        text,
        isError: isError === true,
      }));
    }
    return sent;
  });

/**
 * What the search of the session file is asked: which entries the event shows and what of them, which of them are kept
 * as they are, and which files were read.
 */
export const shownIn = (messages, kept) => {
  const stays = new Set(kept.filter(isPrompt));
  const shown = { prompts: [], others: [], first: "", last: "", worded: [], calls: [], results: [], reads: {} };
  for (const message of messages) {
    if (message.handle) {
      (stays.has(message) ? shown.prompts : shown.others).push(message.handle);
      shown.first ||= message.handle;
      shown.last = message.handle;
      if (message.text && !stays.has(message)) shown.worded.push(message.handle);
    }
    for (const { tool_use_id, tool, input } of message.toolUses) {
      shown.calls.push(tool_use_id);
      if (tool === "Read" && typeof input?.file_path === "string") shown.reads[tool_use_id] = input.file_path;
    }
    for (const { tool_use_id } of message.toolResults ?? []) shown.results.push(tool_use_id);
  }
  return shown;
};

/** The texts that belong behind each kept message, by its handle; "" is the front. Behind one that goes: its place. */
export const placed = (texts, messages, kept) => {
  const there = new Set(kept.map((message) => message.handle));
  const places = new Map();
  const anchors = new Map();
  let last = "";
  for (const { handle } of messages) {
    if (handle && there.has(handle)) last = handle;
    anchors.set(handle, last);
  }
  for (const { after, text } of texts) {
    const place = anchors.get(after) ?? "";
    places.set(place, [...(places.get(place) ?? []), text]);
  }
  return places;
};

// A call's input with a new string at a path. A path that leads to no string is no plan that can be carried out.
const withString = (value, path, text) => {
  if (path.length === 0) {
    if (typeof value !== "string") throw new Error("the plan changes what is no string of a call's input");
    return text;
  }
  const [step, ...rest] = path;
  if (typeof value !== "object" || value === null || !Object.hasOwn(value, step)) {
    throw new Error("the plan names a place that a call's input does not have");
  }
  const copy = Array.isArray(value) ? [...value] : { ...value };
  copy[step] = withString(value[step], rest, text);
  return copy;
};

const inputOf = ({ tool_use_id, input }, plan) =>
  (plan.inputs.get(tool_use_id) ?? []).reduce((value, [path, text]) => withString(value, path, text), input);

const freshResults = (toolResults, plan) =>
  toolResults
    .filter((result) => !plan.dropped.has(result.tool_use_id))
    .map(({ tool_use_id, text, isError }) => ({
      tool_use_id,
      isError: isError === true,
      text: [plan.results.get(tool_use_id) ?? text, plan.lines.get(tool_use_id)].filter(Boolean).join("\n"),
    }));

// The entries of a session that is being put together, and where its calls stand.
class Session {
  constructor(messages, plan) {
    this.out = [];
    this.plan = plan;
    this.callers = new Map(); // call id to the entry that makes the call
    this.open = new Set(); // calls of the newest such entry whose results are still to come
    this.group = undefined; // that entry
    this.answered = new Set(messages.flatMap(({ toolResults }) => toolResults ?? []).map((result) => result.tool_use_id));
  }

  // A result stands directly behind the entry with its call, whatever came in between. No answer goes on behind a prompt.
  addUser(message) {
    if (isPrompt(message)) {
      this.out.push(message);
      this.open.clear();
      return;
    }
    for (const result of freshResults(message.toolResults, this.plan)) {
      this.open.delete(result.tool_use_id);
      const caller = this.callers.get(result.tool_use_id);
      let place = caller ? this.out.lastIndexOf(caller) + 1 : this.out.length;
      if (!caller) while (place > 0 && this.out[place - 1].role === "user") place -= 1;
      if (this.out[place]?.toolResults) this.out[place].toolResults.push(result);
      else this.out.splice(place, 0, { role: "user", text: "", toolUses: [], toolResults: [result] });
    }
    if (message.text) this.out.push({ role: "user", text: message.text, toolUses: [] });
  }

  // The blocks of one API message arrive as one entry each, and results of its first calls may come ahead of its last
  // ones; returned apart, parallel calls lose their results. So the calls of one run of assistant entries, and of one
  // whose calls are still open, go into one entry, behind its texts.
  addAssistant(message) {
    const toolUses = message.toolUses
      .filter((use) => !this.plan.dropped.has(use.tool_use_id))
      .map((use) => ({ tool_use_id: use.tool_use_id, tool: use.tool, input: inputOf(use, this.plan) }));
    const newest = this.out[this.out.length - 1];
    let entry = this.open.size > 0 ? this.group : newest?.role === "assistant" ? newest : undefined;
    if (message.text && entry?.toolUses.length > 0) {
      if (entry.text) this.out.splice(this.out.lastIndexOf(entry), 0, { role: "assistant", text: entry.text, toolUses: [] });
      entry.text = message.text;
    } else if (message.text || (!entry && toolUses.length > 0)) {
      entry = { role: "assistant", text: message.text, toolUses: [] };
      this.out.push(entry);
    }
    if (toolUses.length === 0) return;
    if (entry !== this.group) this.open.clear();
    this.group = entry;
    for (const use of toolUses) {
      entry.toolUses.push(use);
      this.callers.set(use.tool_use_id, entry);
      if (this.answered.has(use.tool_use_id)) this.open.add(use.tool_use_id);
    }
  }

  // Words stand behind what they belong to, and never between a call and its result.
  say(words) {
    const newest = this.out[this.out.length - 1];
    if (newest?.role === "assistant" && newest.toolUses.length > 0) return;
    this.out.push(...words.splice(0).map((text) => ({ role: "user", text, toolUses: [] })));
  }
}

/**
 * The new session: prompts as they are, everything else fresh, merged, and with the plan's texts.
 * plan: {results: Map id to text, dropped: Set of ids, inputs: Map id to [path, text] pairs, lines: Map id to line,
 * texts: Map handle to texts}.
 */
export const build = (messages, plan) => {
  const session = new Session(messages, plan);
  const waiting = [...(plan.texts.get("") ?? [])];
  for (const message of messages) {
    if (message.role === "assistant") {
      session.say(waiting);
      session.addAssistant(message);
    } else {
      if (isPrompt(message)) session.say(waiting);
      session.addUser(message);
    }
    waiting.push(...(plan.texts.get(message.handle) ?? []));
  }
  session.say(waiting);
  return closeTurn(session.out);
};

/** No call may stay open at the end: its thinking is gone, and the API refuses an open call without it. */
export const closeTurn = (messages) => {
  let last = messages.length - 1;
  while (last >= 0 && isPrompt(messages[last])) last -= 1;
  if (last < 0 || !messages[last].toolResults) return messages;
  const isUnanswered = messages.slice(last + 1).some((message) => !message.text.startsWith(REMINDER));
  messages.splice(last + 1, 0, { role: "assistant", text: CLOSING_NOTE, toolUses: [] });
  if (!isUnanswered) messages.push({ role: "user", text: GO_ON, toolUses: [] });
  return messages;
};

const asText = (values) => JSON.stringify(values);

/**
 * What of the messages and the plan did not arrive in the new session, in words; "" where everything did. It is looked
 * at what goes out, and not at how it was made.
 */
export const missingIn = (built, messages, plan) => {
  const there = new Set(built);
  if (messages.some((message) => isPrompt(message) && !there.has(message))) return "a prompt";
  const fresh = built.filter((message) => !isOurs(message));
  const said = (all) => all.filter(({ role, text }) => role === "assistant" && text).map(({ text }) => text);
  if (asText(said(fresh)) !== asText(said(messages))) return "a text of the assistant";
  const calls = (all) => all.flatMap((message) => message.toolUses.map(({ tool_use_id }) => tool_use_id));
  const stays = (id) => !plan.dropped.has(id);
  if (asText(calls(fresh)) !== asText(calls(messages).filter(stays))) return "a call";
  const inputs = new Map(fresh.flatMap(({ toolUses }) => toolUses).map(({ tool_use_id, input }) => [tool_use_id, input]));
  const isInput = (use) => asText(inputs.get(use.tool_use_id)) === asText(inputOf(use, plan));
  const uses = messages.flatMap(({ toolUses }) => toolUses).filter(({ tool_use_id }) => stays(tool_use_id));
  if (!uses.every(isInput)) return "a call's input";
  const results = new Map(
    fresh.flatMap((message) => message.toolResults ?? []).map(({ tool_use_id, text }) => [tool_use_id, text]),
  );
  const came = messages.flatMap((message) => message.toolResults ?? []).filter(({ tool_use_id }) => stays(tool_use_id));
  const isThere = ({ tool_use_id, text }) => results.get(tool_use_id)?.startsWith(plan.results.get(tool_use_id) ?? text);
  if (results.size !== came.length || !came.every(isThere)) return "a result";
  const isAnswered = ({ toolUses }, place) =>
    toolUses.every(({ tool_use_id: id }) => {
      return !results.has(id) || built[place + 1]?.toolResults?.some((result) => result.tool_use_id === id);
    });
  if (!built.every(isAnswered)) return "a result at its call";
  if (![...plan.lines].every(([id, line]) => !stays(id) || results.get(id)?.endsWith(line))) return "a part of a result";
  const words = new Map();
  for (const { role, text } of fresh) if (role === "user" && text) words.set(text, (words.get(text) ?? 0) + 1);
  const added = [
    ...messages.filter((message) => message.role === "user" && message.text).map(({ text }) => text),
    ...[...plan.texts.values()].flat(),
  ];
  for (const text of added) {
    if (!words.get(text)) return "words beside the messages";
    words.set(text, words.get(text) - 1);
  }
  return "";
};

/**
 * Where the session stands: how far the assistant has come, and how much its results hold. Equal to where a replacement
 * left it means that nothing new can be removed; where another plugin threw that replacement away, it is not equal.
 */
export const pointOf = (messages) => {
  const results = messages.flatMap(({ toolResults }) => toolResults ?? []);
  return `${progressOf(messages)}/${results.reduce((sum, { text }) => sum + text.length, 0)}`;
};

/** How far the assistant has come: the same before and after a replacement. */
export const progressOf = (messages) => {
  let calls = 0;
  let letters = 0;
  for (const message of messages) {
    calls += message.toolUses.length;
    if (message.role === "assistant") letters += message.text.replaceAll("\n", "").length;
  }
  return `${calls}/${letters}`;
};
