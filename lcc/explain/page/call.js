// One call; the groups by tool and by reason.
const copyButton = (text) => {
  const button = make("button", { class: "quiet", type: "button" }, "Copy");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Copying is not allowed here";
    }
  });
  return button;
};

const wayBack = (call) => {
  if (!call.back) return null;
  if (call.kept_at && byId.has(call.kept_at)) {
    const jump = make("button", { class: "link", type: "button", click: () => select(byId.get(call.kept_at), $("detail").previousElementSibling) }, `call ${byId.get(call.kept_at) + 1}`);
    return make("dd", {}, "the same output stands at ", jump, " ", make("code", {}, call.kept_at));
  }
  return make("dd", {}, make("code", {}, call.back), " ", copyButton(call.back));
};

const drawDetail = (beside) => {
  const box = $("detail");
  if (beside && box.previousElementSibling !== beside) beside.after(box);
  box.hidden = state.selected < 0;
  if (box.hidden) return;
  const call = calls[state.selected];
  box.style.setProperty("--edge", `var(--${call.fate})`);
  const list = make("dl");
  const add = (name, value) => value && list.append(make("dt", {}, name), value.nodeName ? value : make("dd", {}, value));
  const removed = call.before - call.after;
  add("Size", removed ? `${n(call.before)} characters before, ${n(call.after)} after: ${n(removed)} freed` : `${n(call.before)} characters`);
  add("Fate", make("dd", {}, make("span", { class: "fate" }, dot(call.fate), fates[call.fate])));
  add("Because", make("dd", {}, reasons[call.reason].because, " ", make("code", {}, call.detail ? `${reasons[call.reason].name}:${call.detail}` : reasons[call.reason].name)));
  add("Needed again", call.why);
  add("To have it back", wayBack(call));
  add("Note", call.note && make("dd", {}, make("code", {}, call.note)));
  add("Call", make("dd", {}, make("code", {}, call.id), call.message === null ? "" : ` in message ${n(call.message + 1)}`));
  box.replaceChildren(make("h3", {}, `${n(state.selected + 1)} · ${call.tool}`), make("p", { class: "sub muted" }, call.subject || ""), list);
};

const select = (index, beside) => {
  state.selected = index;
  const call = calls[index];
  track.setAttribute("aria-valuenow", index + 1);
  track.setAttribute("aria-valuetext", `call ${index + 1} of ${calls.length}, ${call.tool} ${call.subject || ""}, ${n(call.before)} characters, ${fates[call.fate]}`);
  if (beside) {
    const x = index * step;
    const room = track.clientWidth - LEFT;
    if (x < track.scrollLeft || x > track.scrollLeft + room - 2 * step) track.scrollLeft = x - room / 2;
    revealRow(index);
  }
  draw();
  drawDetail(beside);
  drawRows();
};

const move = (by, removalsOnly) => {
  const ok = (index) => state.fits[index] && (!removalsOnly || calls[index].decision !== "keep");
  let index = state.selected < 0 ? (by > 0 ? -1 : calls.length) : state.selected;
  do index += by; while (index >= 0 && index < calls.length && !ok(index));
  if (index >= 0 && index < calls.length) select(index, track.parentElement);
};

const edge = (by) => {
  state.selected = -1;
  move(by, false);
};

// ---- by tool, and why ------------------------------------------------------------------------------------
const drawTools = () => {
  const box = $("bytool");
  const most = data.tools.reduce((high, row) => Math.max(high, row.before), data.words) || 1;
  const meter = (before, after, plain) =>
    make("div", { class: "meter", role: "presentation" },
      plain ? null : make("i", { class: "was", style: `width: ${(100 * before) / most}%` }),
      make("i", { class: plain ? "words" : "is", style: `width: ${(100 * after) / most}%` }));
  box.append(make("span", { class: "name" }, "Words of user and assistant"), meter(data.words, data.words, true), make("span", { class: "figures muted num" }, `${n(data.words)}, never touched`));
  for (const row of data.tools) {
    const gone = row.before - row.after;
    const figures = gone ? `${n(row.before)} → ${n(row.after)}, ${percent(gone, row.before)} freed` : `${n(row.before)}, all stays`;
    const pick = () => { $("tool").value = row.tool; filter(); track.scrollIntoView({ block: "center" }); };
    box.append(make("button", { class: "name", type: "button", title: row.tool, click: pick }, row.tool), meter(row.before, row.after), make("span", { class: "figures muted num" }, figures));
  }
};

const drawWhy = (target, groups, amount, unit, colour) => {
  const total = groups.reduce((sum, group) => sum + amount(group), 0) || 1;
  for (const group of groups) {
    const pick = () => {
      $("reason").value = state.reason === String(group.reason) ? "" : String(group.reason);
      filter();
    };
    const button = make("button", { type: "button", "aria-pressed": "false", "data-reason": group.reason, click: pick },
      make("span", { class: "name" }, reasons[group.reason].because),
      make("span", { class: "num" }, n(amount(group))),
      make("span", { class: "muted" }, `${n(group.calls)} ${group.calls === 1 ? "call" : "calls"} · ${reasons[group.reason].name}`),
      make("span", { class: "muted num" }, unit),
      make("span", { class: "meter" }, make("i", { style: `width: ${(100 * amount(group)) / total}%; background: var(--${colour(group)})` })));
    target.append(make("li", {}, button));
  }
  if (!groups.length) target.append(make("li", { class: "muted" }, "Nothing."));
};
