// What hook/messages.mjs makes of an event, message by message. Run by test_messages.py, or: node --test <this file>

import assert from "node:assert/strict";
import { test } from "node:test";

import {
  build,
  CLOSING_NOTE,
  forTheWire,
  GO_ON,
  isExpected,
  isReplacement,
  missingIn,
  placed,
  pointOf,
  progressOf,
  shownIn,
  tidy,
} from "../../hook/messages.mjs";

let rows = 0;
const handle = () => `handle-${(rows += 1)}`;
const user = (text) => ({ role: "user", text, toolUses: [], handle: handle() });
const assistant = (text, ...ids) => ({
  role: "assistant",
  text,
  toolUses: ids.map((id) => ({ tool_use_id: id, tool: "Bash", input: { command: id }, result: {}, text: `out ${id}` })),
  handle: handle(),
});
const result = (id, isError = false) => ({
  role: "user",
  text: "",
  toolUses: [],
  toolResults: [{ tool_use_id: id, text: `out ${id}`, isError, result: { stdout: "" } }],
  handle: handle(),
});
const nothing = () => ({ results: new Map(), dropped: new Set(), inputs: new Map(), lines: new Map(), texts: new Map() });

// One line for each message: role, text, ids; a handle is marked with *.
const sketch = (messages) =>
  messages.map((m) =>
    [
      `${m.role[0]}${m.handle ? "*" : ""}`,
      m.text,
      ...m.toolUses.map((use) => use.tool_use_id),
      ...(m.toolResults ?? []).map((r) => `${r.tool_use_id}=${r.text}${r.isError ? "!" : ""}`),
    ]
      .filter(Boolean)
      .join(" "),
  );

const built = (messages, plan = nothing()) => {
  const made = build(tidy(messages), plan);
  assert.equal(missingIn(made, tidy(messages), plan), "");
  return sketch(made);
};

const CASES = {
  "a finished turn: prompts keep their handle, all else is fresh": [
    [user("hello"), assistant("reading", "A"), result("A"), assistant("done")],
    ["u* hello", "a reading A", "u A=out A", "a done"],
  ],
  "parallel calls become one entry, and so do their results, in the order they ended": [
    [user("go"), assistant("", "A"), assistant("", "B"), result("B"), result("A", true), assistant("done")],
    ["u* go", "a A B", "u B=out B A=out A!", "a done"],
  ],
  "texts of one answer stay apart, the calls go behind the last": [
    [user("go"), assistant("one"), assistant("two"), assistant("", "A"), result("A"), assistant("done")],
    ["u* go", "a one", "a two A", "u A=out A", "a done"],
  ],
  "a text between two parallel calls goes in front of them": [
    [user("go"), assistant("", "A"), assistant("between"), assistant("", "B"), result("A"), result("B"), assistant("x")],
    ["u* go", "a between A B", "u A=out A B=out B", "a x"],
  ],
  "texts around a call stay in order": [
    [user("go"), assistant("one"), assistant("", "A"), assistant("two"), assistant("", "B"), result("A"), result("B")],
    ["u* go", "a one", "a two A B", "u A=out A B=out B", `a ${CLOSING_NOTE}`, `u ${GO_ON}`],
  ],
  "thinking entries go": [
    [user("go"), assistant(""), assistant("", "A"), result("A"), assistant(""), assistant("done")],
    ["u* go", "a A", "u A=out A", "a done"],
  ],
  "a prompt between two results of one batch does not part a result from its call": [
    [user("go"), assistant("", "A", "B"), result("A"), user("wait"), result("B"), assistant("done")],
    ["u* go", "a A B", "u A=out A B=out B", "u* wait", "a done"],
  ],
  "a result that comes behind the next call of its answer goes to its call": [
    [
      user("go"),
      assistant("", "A"),
      assistant("", "B"),
      result("A"),
      assistant("", "C"),
      result("B"),
      result("C"),
      assistant("done"),
    ],
    ["u* go", "a A B C", "u A=out A B=out B C=out C", "a done"],
  ],
  "results and texts of one answer that come mixed": [
    [
      user("go"),
      assistant("one", "A"),
      assistant("", "B"),
      result("B"),
      assistant("two"),
      assistant("", "C"),
      result("C"),
      result("A"),
      assistant("done"),
    ],
    ["u* go", "a one", "a two A B C", "u B=out B C=out C A=out A", "a done"],
  ],
  "a call that is never answered keeps nothing open": [
    [user("go"), assistant("", "A", "B"), result("B"), assistant("", "C"), result("C"), assistant("done")],
    ["u* go", "a A B", "u B=out B", "a C", "u C=out C", "a done"],
  ],
  "a result that comes late goes to its call, and what was said meanwhile stays behind it": [
    [user("go"), assistant("", "A"), user("wait"), assistant("waiting", "B"), result("A"), result("B"), assistant("x")],
    ["u* go", "a A", "u A=out A", "u* wait", "a waiting B", "u B=out B", "a x"],
  ],
  "an answered call and the next are two steps": [
    [user("go"), assistant("", "A"), result("A"), assistant("", "B"), result("B"), assistant("done")],
    ["u* go", "a A", "u A=out A", "a B", "u B=out B", "a done"],
  ],
  "an unfinished turn is closed and told to go on": [
    [user("go"), assistant("", "A"), result("A")],
    ["u* go", "a A", "u A=out A", `a ${CLOSING_NOTE}`, `u ${GO_ON}`],
  ],
  "an interrupted turn is closed ahead of what the user said next": [
    [user("go"), assistant("", "A"), result("A", true), user("[Request interrupted by user]"), user("other")],
    ["u* go", "a A", "u A=out A!", `a ${CLOSING_NOTE}`, "u* [Request interrupted by user]", "u* other"],
  ],
  "our closing entries of an earlier compaction go": [
    [user("go"), assistant("", "A"), result("A"), assistant(CLOSING_NOTE), user(GO_ON), assistant("done")],
    ["u* go", "a A", "u A=out A", "a done"],
  ],
  "words that only quote our closing entries stay": [
    [user(`what is "${GO_ON}"?`), assistant(`it is ${CLOSING_NOTE}`)],
    [`u* what is "${GO_ON}"?`, `a it is ${CLOSING_NOTE}`],
  ],
  "calls that are listed twice are listed once": [
    [user("go"), assistant("", "A"), result("A"), assistant("", "A"), result("A"), assistant("done")],
    ["u* go", "a A", "u A=out A", "a done"],
  ],
};

for (const [name, [messages, expected]] of Object.entries(CASES)) {
  test(name, () => assert.deepEqual(built(messages), expected));
  test(`${name}: the same again over its own output`, () => {
    const once = build(tidy(messages), nothing());
    const again = build(tidy(once.map((m) => ({ ...m, handle: handle() }))), nothing());
    assert.deepEqual(sketch(again).map(withoutHandle), sketch(once).map(withoutHandle));
  });
}

const withoutHandle = (line) => line.replace(/^(.)\*/, "$1");

test("the plan's texts, lines and drops are carried out", () => {
  const messages = [
    user("go"),
    assistant("text", "A", "B"),
    result("A"),
    result("B"),
    assistant("", "C"),
    result("C"),
    assistant("", "D"),
    result("D"),
    assistant("end"),
  ];
  const plan = {
    ...nothing(),
    results: new Map([["A", "[note]"]]),
    dropped: new Set(["B", "C"]),
    lines: new Map([["D", "[line]"]]),
  };
  assert.deepEqual(built(messages, plan), ["u* go", "a text A", "u A=[note]", "a D", "u D=out D\n[line]", "a end"]);
});

test("an empty result stays empty, and a line stands alone in one", () => {
  const messages = [user("go"), assistant("", "A", "B"), result("A"), result("B"), assistant("end")];
  for (const message of messages) for (const each of message.toolResults ?? []) each.text = "";
  const plan = { ...nothing(), lines: new Map([["B", "[line]"]]) };
  assert.deepEqual(built(messages, plan), ["u* go", "a A B", "u A= B=[line]", "a end"]);
});

test("unseen words stand behind what they hang on, and never between a call and its result", () => {
  const call = assistant("", "A");
  const other = assistant("", "B");
  const first = result("A");
  const last = result("B");
  const end = assistant("end");
  const plan = {
    ...nothing(),
    texts: new Map([
      [call.handle, ["on the call"]],
      [first.handle, ["on the result", "twice"]],
      [end.handle, ["on the end"]],
    ]),
  };
  const messages = [user("go"), call, other, first, last, user("prompt"), assistant("more"), end];
  assert.deepEqual(built(messages, plan), [
    "u* go",
    "a A B",
    "u A=out A B=out B",
    "u on the call",
    "u on the result",
    "u twice",
    "u* prompt",
    "a more",
    "a end",
    "u on the end",
  ]);
});

test("unseen words at the end of an unfinished turn come last, behind the closing note", () => {
  const open = result("A");
  const plan = { ...nothing(), texts: new Map([[open.handle, ["stop there"]]]) };
  assert.deepEqual(built([user("go"), assistant("", "A"), open], plan), [
    "u* go",
    "a A",
    "u A=out A",
    `a ${CLOSING_NOTE}`,
    "u stop there",
  ]);
});

test("a reminder at the end of an unfinished turn is no word of the user: it is told to go on", () => {
  const open = result("A");
  const reminder = "<system-reminder>\nanother hook's context\n</system-reminder>";
  const plan = { ...nothing(), texts: new Map([[open.handle, [reminder]]]) };
  assert.deepEqual(built([user("go"), assistant("", "A"), open], plan).slice(3), [
    `a ${CLOSING_NOTE}`,
    `u ${reminder}`,
    `u ${GO_ON}`,
  ]);
});

test("a prompt is returned as the very object that came", () => {
  const prompt = user("go");
  assert.equal(build(tidy([prompt, assistant("done")]), nothing())[0], prompt);
});

test("nothing that came is changed", () => {
  const messages = [user("go"), assistant("one", "A"), assistant("", "B"), result("A"), result("B"), assistant("end")];
  const before = structuredClone(messages);
  built(messages, { ...nothing(), results: new Map([["A", "[note]"]]) });
  assert.deepEqual(messages, before);
});

test("the wire carries each text once and no metadata", () => {
  const sent = forTheWire([user("go"), assistant("", "A"), result("A", true)]);
  assert.deepEqual(sent, [
    { role: "user", text: "go" },
    { role: "assistant", text: "", toolUses: [{ tool_use_id: "A", tool: "Bash", input: { command: "A" } }] },
    { role: "user", text: "", toolResults: [{ tool_use_id: "A", text: "out A", isError: true }] },
  ]);
});

test("the search is told which entries are shown, what they show, and which files were read", () => {
  const reading = assistant("");
  reading.toolUses = [{ tool_use_id: "A", tool: "Read", input: { file_path: "/p/a.png" } }];
  const messages = [user("go"), reading, result("A"), assistant("words"), user(GO_ON), user("next")];
  const [go, call, output, words, goOn, next] = messages.map((message) => message.handle);
  assert.deepEqual(shownIn(messages, tidy(messages)), {
    prompts: [go, next],
    others: [call, output, words, goOn],
    first: go,
    last: next,
    worded: [words, goOn],
    calls: ["A"],
    results: ["A"],
    reads: { A: "/p/a.png" },
  });
});

test("what the client never sends is no message of the session", () => {
  const error = assistant("You have hit your limit");
  const messages = [user("go"), assistant("one"), error, user("again"), assistant("two")];
  const kept = tidy(messages, new Set([error.handle]));
  assert.deepEqual(sketch(build(kept, nothing())), ["u* go", "a one", "u* again", "a two"]);
  assert.deepEqual(
    forTheWire(kept).map(({ text }) => text),
    ["go", "one", "again", "two"],
  );
});

test("words behind a message that goes stand where it stood, and those of the front at the front", () => {
  const error = assistant("You have hit your limit");
  const goOn = user(GO_ON);
  const messages = [error, user("go"), assistant("one"), goOn, assistant("two")];
  const kept = tidy(messages, new Set([error.handle]));
  const texts = placed(
    [
      { after: error.handle, text: "behind the error" },
      { after: "", text: "front" },
      { after: goOn.handle, text: "behind our own" },
    ],
    messages,
    kept,
  );
  assert.deepEqual(built(kept, { ...nothing(), texts }), [
    "u behind the error",
    "u front",
    "u* go",
    "a one",
    "u behind our own",
    "a two",
  ]);
});

const whole = () => {
  const messages = [user("go"), assistant("one", "A", "B"), result("A"), result("B"), assistant("end")];
  const plan = {
    ...nothing(),
    results: new Map([["A", "[note]"]]),
    lines: new Map([["B", "[line]"]]),
    texts: new Map([[messages[3].handle, ["words", "words"]]]),
  };
  return [build(messages, plan), messages, plan];
};
test("a whole session misses nothing", () => assert.equal(missingIn(...whole()), ""));
for (const [name, damage] of Object.entries({
  "a prompt": (made) => made.splice(0, 1, { ...made[0] }),
  "a text of the assistant": (made) => (made[1].text = "on"),
  "a call": (made) => made[1].toolUses.pop(),
  "a result": (made) => made[2].toolResults.shift(),
  "a result at its call": (made) => made.splice(2, 0, { role: "user", text: "", toolUses: [] }),
  "a part of a result": (made) => (made[2].toolResults[1].text = "out B"),
  "words beside the messages": (made) => made.splice(3, 1),
})) {
  test(`that ${name} is missing is seen`, () => {
    const [made, messages, plan] = whole();
    damage(made);
    assert.equal(missingIn(made, messages, plan), name);
  });
}

test("progress is the same before and after a replacement, and moves with the assistant's work", () => {
  const messages = [user("go"), assistant("one"), assistant("two"), assistant("", "A"), result("A"), assistant("end")];
  const before = progressOf(tidy(messages));
  assert.equal(progressOf(tidy(build(tidy(messages), nothing()))), before);
  assert.notEqual(progressOf([...messages, assistant("more")]), before);
  assert.notEqual(progressOf([...messages, assistant("", "B")]), before);
});

test("a point is one of the session as it was left: not where a replacement did not come about", () => {
  const messages = [user("go"), assistant("", "A"), result("A"), assistant("end")];
  const built = tidy(build(tidy(messages), { ...nothing(), results: new Map([["A", "[note]"]]) }));
  assert.equal(pointOf(tidy(structuredClone(built))), pointOf(built));
  assert.notEqual(pointOf(built), pointOf(messages));
});

const STRANGE = {
  "no list": undefined,
  "no messages": [],
  "no object": [null],
  "another role": [{ role: "system", text: "", toolUses: [] }],
  "no text": [{ role: "user", toolUses: [] }],
  "no calls": [{ role: "user", text: "" }],
  "a call without an id": [{ role: "assistant", text: "", toolUses: [{ tool: "Bash" }] }],
  "a result without a text": [{ role: "user", text: "", toolUses: [], toolResults: [{ tool_use_id: "A" }] }],
  "a result of the assistant": [
    { role: "assistant", text: "", toolUses: [], toolResults: [{ tool_use_id: "A", text: "" }] },
  ],
};
for (const [name, messages] of Object.entries(STRANGE)) {
  test(`an event with ${name} is not taken`, () => assert.equal(isExpected(messages), false));
}

const PLAN = { action: "replace", say: "done", results: { A: "[note]" }, dropped: ["B"] };
test("a whole plan is taken", () => assert.equal(isReplacement(PLAN), true));
for (const [key, values] of Object.entries({
  action: [undefined, "melt"],
  say: [undefined, 5],
  results: [undefined, null, [], { A: 5 }],
  dropped: [undefined, {}, [5]],
})) {
  for (const value of values) {
    test(`a plan whose ${key} is ${JSON.stringify(value)} is not taken`, () =>
      assert.equal(isReplacement({ ...PLAN, [key]: value }), false));
  }
}

test("an input changes where the plan says, and nowhere else", () => {
  const input = { file_path: "/p/a.py", edits: [{ old_string: "long", new_string: "new", all: true }], n: 3 };
  const messages = [
    { role: "user", text: "go", toolUses: [], handle: "u1" },
    { role: "assistant", text: "", handle: "a1", toolUses: [{ tool_use_id: "A", tool: "MultiEdit", input, text: "ok" }] },
    { role: "user", text: "", handle: "r1", toolUses: [], toolResults: [{ tool_use_id: "A", text: "ok", isError: false }] },
    { role: "assistant", text: "done", handle: "a2", toolUses: [] },
  ];
  const plan = { ...nothing(), inputs: new Map([["A", [[["edits", 0, "old_string"], "[note]"]]]]) };

  const built = build(messages, plan);

  const sent = built.flatMap(({ toolUses }) => toolUses)[0].input;
  assert.deepEqual(sent, { ...input, edits: [{ old_string: "[note]", new_string: "new", all: true }] });
  assert.deepEqual(Object.keys(sent), Object.keys(input));
  assert.equal(input.edits[0].old_string, "long");
  assert.equal(missingIn(built, messages, plan), "");
  assert.equal(missingIn(built, messages, nothing()), "a call's input");
});

for (const path of [["n"], ["edits"], ["edits", 7], ["none"], ["file_path", "length"], ["__proto__", "x"]]) {
  test(`a plan that changes the input at ${JSON.stringify(path)} is not carried out`, () => {
    const input = { file_path: "/p/a.py", edits: ["x"], n: 3 };
    const use = { tool_use_id: "A", tool: "MultiEdit", input };
    const messages = [{ role: "assistant", text: "", handle: "a1", toolUses: [use] }];
    assert.throws(() => build(messages, { ...nothing(), inputs: new Map([["A", [[path, "[note]"]]]]) }));
  });
}

for (const inputs of [5, { A: 5 }, { A: [5] }, { A: [["content", "x"]] }, { A: [[["content"], 5]] }, null]) {
  test(`a plan whose inputs are ${JSON.stringify(inputs)} is not taken`, () => {
    assert.equal(isReplacement({ action: "replace", say: "", results: {}, dropped: [], inputs }), false);
  });
}
