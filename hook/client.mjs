// What every part of the module uses: the processes that it runs, the client's figures, and the line for the user.

const LIMIT_MS = 60_000;
const LINE_LIMIT = 400;
const PYTHON = ["python3", "-I", "-S", "-E"];

/** The plugin's folder. */
export const root = decodeURIComponent(import.meta.url.replace(/^file:\/\//, "").replace(/\/hook\/[^/]*$/, ""));

/** A program of `lcc_hook` with `input` as JSON on stdin; what it printed, read as JSON. Throws where it failed. */
export async function run($, program, words, input) {
  const ran = await started($, program, words, input);
  if (ran.isStdoutTruncated) throw new Error(`the answer of ${program} was cut`);
  if (ran.exitCode !== 0 || !ran.stdout) throw new Error(ran.stderr.trim() || `${program} ended with ${ran.exitCode}`);
  return JSON.parse(ran.stdout);
}

/** The same: null where it printed nothing and said nothing, undefined where it failed. */
export async function runQuietly($, program, words, input) {
  try {
    const ran = await started($, program, words, input);
    if (ran.exitCode !== 0 || ran.stderr.trim()) return undefined;
    return ran.stdout ? JSON.parse(ran.stdout) : null;
  } catch {
    return undefined;
  }
}

function started($, program, words, input) {
  return $.process.run([...PYTHON, `${root}/hook/lcc_hook/${program}`, ...words], {
    stdin: JSON.stringify(input),
    timeoutMs: LIMIT_MS,
  });
}

/** What the client says of the window: {tokens, window, percent}; undefined where it does not say. */
export async function contextOf($) {
  try {
    return (await $.session.usage()).context;
  } catch {
    return undefined;
  }
}

/** A text as the one line that the user reads. */
export const oneLine = (text) => text.replaceAll(/\s+/g, " ").slice(0, LINE_LIMIT);

/**
 * Tell the user one line; a quiet one is a line of the scrollback alone. The client puts the plugin's name in front. The
 * line stays in the scrollback, above the session that it draws anew after a compaction; the toast is there for the user
 * to see it. Neither is worth a failure.
 */
export async function tell($, line, isQuiet = false) {
  try {
    await $.ui.log(line);
    if (!isQuiet) await $.ui.toast(line);
  } catch {
    // a client without one of the two
  }
}
