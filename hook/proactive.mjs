// Before the wall: a session that rests is compacted between two turns, when that costs nothing (`cold`), or where it
// soon pays itself back or the window is as full as the user said (`early`). In the terminal only: there the client
// runs a command for a module.
//
// `/compact` is that command, so our own session.compact is asked, and what is typed in the prompt stays there. What
// it is asked for then never ends in a summary (`OWN_WILL`). Nothing is done while a turn or background work runs,
// while a text stands in the prompt, or twice for the same content.

import { contextOf, oneLine, runQuietly, tell } from "./client.mjs";
import { isExpected, pointOf, tidy } from "./messages.mjs";
import { OWN_WILL, isAt } from "./room.mjs";
import { VERSION, question } from "./session.mjs";

const SETTLED_MS = 1500;
const AGAIN_MS = 60_000;
const LOOK_MS = 1000;
const OVER = ["completed", "failed", "stopped", "killed", "cancelled", "done", "idle"];
const BEGAN = Date.now() / 1000;

let isTerminal = false;
// Counts what happens in the session: who waits since an earlier count has waited for nothing.
let count = 0;
// The content that was last decided about, of which session.
let decided = "";
// What the session's configuration says, by session.
let known = { session: "" };
// When `/lcc:lcc now` was last followed, or the module began.
let lastWish = Date.now();
// Our own compaction while it runs: {moment, saves, isAsked, line}.
let own;
// Our session.compact was not asked where it should have been: somebody else answers in its place.
let isOff = false;

/** `cold` or `early` where the compaction that is asked for is our own; it is taken note of that we were asked. */
export const ownMoment = () => {
  if (!own) return "";
  own.isAsked = true;
  return own.moment;
};

/** What our own compaction did: it is said, with what that saves, once the client has drawn the session anew. */
export const noteOwn = (line) => {
  own.line = line;
};

/** Whether this is a terminal, and the session rests from here. */
export const noteStart = (event) => {
  isTerminal = event.isInteractive === true && event.surface === "terminal";
  count += 1;
};

/** A turn begins: whoever waits gives up. */
export const noteTurn = () => {
  count += 1;
};

/**
 * The session rests: wait until it is worth it, and compact. After a turn the prompt cache lives for a while; of a
 * session that begins (`isStart`), as a resumed one, it may have run out long ago. Not to be awaited.
 */
export async function rest($, options, isStart) {
  count += 1;
  const mine = count;
  if (!isTerminal || isOff || options?.enabled === false) return;
  try {
    const settings = await settingsOf($, options);
    if (!settings) return;
    if (settings.status) await showStatus($, options);
    followWishes($, settings, mine);
    if (settings.proactive === "off") return;
    let delay = isStart ? SETTLED_MS : Math.max(settings.rest_ms, SETTLED_MS);
    while (delay !== undefined) {
      await $.clock.sleep(delay);
      if (mine !== count || isOff) return;
      delay = await act($, options, settings, mine);
    }
  } catch {
    // a client that has not what is needed for it
  }
}

// `/lcc:lcc now` leaves word in a file, since no hook of a command may start another one: it is as if /compact was typed.
async function followWishes($, settings, mine) {
  try {
    while (settings.now_file && mine === count) {
      await $.clock.sleep(LOOK_MS);
      const asked = await wishIn($, settings.now_file);
      if (asked <= lastWish || mine !== count) continue;
      lastWish = asked;
      await $.command.run({ command: "compact", args: "" });
    }
  } catch {
    // a client that runs no command for a module
  }
}

async function wishIn($, file) {
  try {
    return Number(await $.fs.read(file));
  } catch {
    return 0;
  }
}

// Compacts where it is worth it; after how many ms to look again, undefined: not for this content.
async function act($, options, settings, mine) {
  if (await isBusy($)) return AGAIN_MS;
  const context = await contextOf($);
  if (settings.proactive === "early" && !isAt(context, settings.early_share ?? 0)) return undefined;
  const messages = await messagesNow($);
  const point = messages && `${await $.session.id()} ${pointOf(messages)}`;
  if (!messages || point === decided) return undefined;
  const asked = await question($, options, messages, context, { since: BEGAN });
  const verdict = await runQuietly($, "client.py", ["between-turns"], asked);
  if (!verdict) return undefined;
  if (verdict.wait_ms) return verdict.wait_ms;
  if (mine !== count) return undefined;
  if (await isBusy($)) return AGAIN_MS;
  decided = point;
  if (verdict.act) await compactNow($, settings.proactive, verdict.saves);
  return undefined;
}

async function compactNow($, moment, saves) {
  const mine = { moment, saves, isAsked: false };
  own = mine;
  try {
    await $.command.run({ command: "compact", args: `${OWN_WILL} between turns` });
  } finally {
    own = undefined;
    isOff = !mine.isAsked;
  }
  if (mine.line) await tell($, oneLine(`${mine.line}; ${mine.saves}`), true);
  if (isOff) await tell($, "another plugin answers in lcc's place: lcc compacts only when it is asked from here on", true);
}

/** Whether the user is writing, or an agent works in the background. */
async function isBusy($) {
  const { text } = await $.prompt.read();
  if (text.trim()) return true;
  const agents = await $.agent.list();
  return agents.some(({ status }) => !OVER.includes(status));
}

/** The messages as session.compact would be given them now; undefined where there is nothing to look at. */
async function messagesNow($) {
  const found = await $.session.messages();
  return isExpected(found) ? tidy(found) : undefined;
}

async function settingsOf($, options) {
  const session = await $.session.id();
  if (known.session !== session) {
    const settings = await runQuietly($, "client.py", ["between-turns"], { v: VERSION, session_id: session, options, messages: [] });
    if (!settings?.proactive) return undefined;
    known = { session, ...settings };
  }
  return known;
}

async function showStatus($, options) {
  const [messages, context] = await Promise.all([messagesNow($), contextOf($)]);
  if (!messages || !isAt(context, 0)) return;
  const asked = await question($, options, messages, context, { status: true });
  const answer = await runQuietly($, "client.py", ["between-turns"], asked);
  if (!answer) return;
  const full = Math.round((100 * context.tokens) / context.window);
  await $.ui.status(`lcc ${full} % · ${Math.floor(100 * answer.can_go)} % can go`);
}
