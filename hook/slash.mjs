// `/lcc`: what it says is made by the daemon, which knows the session's report, its configuration and its wishes.

import { run } from "./client.mjs";
import { eventNow, forgetSettings } from "./proactive.mjs";

const COMMAND = {
  name: "lcc",
  description: "What this session holds, what can go, and what went: now, explain, keep PATH, off, on",
  argumentHint: "[now|explain|keep PATH|off|on]",
};
const SOON_MS = 50;
const NO_SESSION = "This session has nothing that lcc can read yet.";

/** Give the session the command; a client that cannot is left as it is. */
export async function registerSlash($, options) {
  try {
    await $.command.register(COMMAND);
  } catch {
    // a client without such commands, or another one of that name
  }
}

/** What `/lcc` and the words behind it are answered. */
export async function runSlash($, event, options) {
  try {
    const session = await eventNow($, options);
    if (!session) return { text: NO_SESSION };
    const answer = await run($, "client.py", ["session"], { ...session, words: event.args ?? "" });
    forgetSettings();
    if (answer.now) compactSoon($);
    return { text: answer.text };
  } catch (error) {
    return { text: `That failed: ${error.message}` };
  }
}

// Behind the answer: a command runs when the one before it has ended.
async function compactSoon($) {
  await $.clock.sleep(SOON_MS);
  await $.command.run({ command: "compact", args: "" });
}
