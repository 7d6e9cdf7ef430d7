// When a session may stay as it is, and that it is answered the same when it is asked again. Run by test_messages.py.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Answered, GROWTH, OWN_WILL, SKIP_LIFE_MS, cameDown, hasRoom, isAt, mayStay, used } from "../../hook/room.mjs";

const at = (tokens, window = 200_000) => ({ tokens, window });
const MANUAL = { trigger: "manual" };
const AUTO = { trigger: "auto", stays: true };

for (const [name, context, room] of [
  ["little in use", at(20_000), true],
  ["one token under four fifths", at(159_999), true],
  ["four fifths", at(160_000), false],
  ["a small window, less than what the next turns need", at(60_001, 100_000), false],
  ["nothing known", undefined, undefined],
  ["no request since the last replacement", { window: 200_000 }, undefined],
]) {
  test(`room: ${name}`, () => assert.equal(hasRoom(context), room));
}

for (const [name, event, context, stays] of [
  ["by hand, with room", MANUAL, at(80_000), true],
  ["by a plugin, with room", { trigger: "plugin" }, at(80_000), true],
  ["by hand, with empty instructions", { ...MANUAL, instructions: " " }, at(80_000), true],
  ["by hand, where the client does not say", MANUAL, undefined, true],
  ["by hand, with a word of instructions", { ...MANUAL, instructions: "yes" }, at(80_000), false],
  ["by this plugin's own will, nearly full", { ...MANUAL, instructions: `${OWN_WILL} cold` }, at(190_000), true],
  ["by hand, nearly full", MANUAL, at(170_000), false],
  ["by the client itself, with room", AUTO, at(80_000), true],
  ["by the client itself, nearly full", AUTO, at(167_000), false],
  ["by the client itself, which does not say", AUTO, undefined, false],
]) {
  test(`a session ${stays ? "may" : "may not"} stay as it is: asked ${name}`, () =>
    assert.equal(mayStay(event, context), stays));
}

test("the figures in words", () => {
  assert.equal(used(at(70_400, 1_000_000)), "70k of 1000k tokens in use (7 %)");
  assert.equal(used({ window: 5 }), "");
  assert.equal(
    cameDown(at(70_400), at(9_600)),
    "the context is at 9600 of 200k tokens (5 %); before the compaction it was at 70k (35 %)",
  );
  assert.equal(cameDown(undefined, at(9_600)), "");
});

test("asked again at the same point, the answer is the same, by hand for a minute", () => {
  const answered = new Answered();
  answered.skipped("s", "1/2", "too little", at(80_000), 1000);
  assert.equal(answered.again("s", MANUAL, "1/2", at(80_000), 1001), "too little");
  assert.equal(answered.again("s", MANUAL, "1/2", at(80_000), 1000 + SKIP_LIFE_MS), undefined);
  assert.equal(answered.again("s", AUTO, "1/2", at(80_000), 1000 + SKIP_LIFE_MS), "too little");
  assert.equal(answered.again("s", MANUAL, "1/3", at(80_000), 1001), undefined);
  assert.equal(answered.again("s agent", MANUAL, "1/2", at(80_000), 1001), undefined);
});

test("the client's own question is not worth a pass until the context has grown", () => {
  const answered = new Answered();
  answered.skipped("s", "1/2", "too little", at(80_000), 0);
  const grown = 80_000 + GROWTH * 200_000;
  assert.equal(answered.again("s", AUTO, "2/9", at(grown - 1), 1), "too little");
  assert.equal(answered.again("s", AUTO, "2/9", at(grown), 1), undefined);
  assert.equal(answered.again("s", AUTO, "2/9", undefined, 1), undefined);
  assert.equal(answered.again("s", { ...AUTO, stays: false }, "2/9", at(grown - 1), 1), undefined);
  assert.equal(answered.again("s", { ...AUTO, stays: false }, "1/2", at(80_000), 1), "too little");
});

test("after a replacement nothing new can be removed at the same point, and growth is looked at", () => {
  const answered = new Answered();
  answered.replaced("s", "1/2");
  assert.match(answered.again("s", MANUAL, "1/2", at(1), 10 * SKIP_LIFE_MS), /^nothing new/);
  assert.equal(answered.again("s", AUTO, "2/2", at(1), 1), undefined);
});

for (const [name, context, share, is] of [
  ["at the share", at(120_000), 0.6, true],
  ["one token under it", at(119_999), 0.6, false],
  ["nothing known", undefined, 0, false],
  ["no request since the last replacement", { window: 200_000 }, 0, false],
]) {
  test(`early: ${name}`, () => assert.equal(isAt(context, share), is));
}
