// Runs the plugin's module outside of the client: what it answers to one compaction, as one line of JSON.
//
//     node module_host.mjs PLUGIN < EVENT

import { spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { pathToFileURL } from "node:url";

const read = async (stream) => {
  const pieces = [];
  for await (const piece of stream) pieces.push(piece);
  return Buffer.concat(pieces).toString();
};

const event = JSON.parse(await read(process.stdin));

const run = (words, { stdin }) =>
  new Promise((resolve, reject) => {
    const child = spawn(words[0], words.slice(1));
    child.on("error", reject);
    child.stdin.on("error", () => {});
    child.stdin.end(stdin);
    const ended = new Promise((done) => child.on("close", (code) => done(code ?? 1)));
    Promise.all([ended, read(child.stdout), read(child.stderr)]).then(
      ([exitCode, stdout, stderr]) => resolve({ exitCode, stdout, stderr, isStdoutTruncated: false }),
      reject,
    );
  });

let line = "";
const $ = {
  process: { run },
  session: {
    id: async () => event.session_id,
    cwd: async () => event.cwd,
    info: async () => ({ transcriptPath: event.transcript_path }),
    usage: async () => ({}),
  },
  fs: { read: (path) => readFile(path, "utf8") },
  ui: { log: async (said) => (line = said), toast: async () => {} },
};

const handlers = {};
const on = (name, ...words) => {
  handlers[name] = words.at(-1);
  return { catch: () => {} };
};
const { register } = await import(pathToFileURL(`${process.argv[2]}/hook/main.mjs`));
register(on, {});
const summary = Symbol("summary");
const answer = await handlers["session.compact"]($, { ...event, agentId: null }, () => summary);
const results = {};
for (const message of answer.messages ?? [])
  for (const result of message.toolResults ?? []) results[result.tool_use_id] = result.text;
const outcome = answer === summary ? "summary" : answer.skip ? "skip" : "replaced";
console.log(JSON.stringify({ outcome, results, line: answer.skip ?? line }));
