"use strict";
// All text from the report is put into the page as text, never as markup.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const [calls, reasons, fates] = [data.calls, data.reasons, data.fates];
  const byId = new Map(calls.map((call, index) => [call.id, index]));
  const $ = (id) => document.getElementById(id);
  const state = { words: [], fate: null, tool: "", reason: "", order: "freed", selected: -1, shown: [], fits: new Uint8Array(calls.length) };
  const format = new Intl.NumberFormat("en");
  const n = (value) => format.format(value);
  const percent = (part, whole) => (whole ? `${((100 * part) / whole).toFixed(1)} %` : "0 %");
  const clamp = (value, low, high) => Math.max(low, Math.min(high, value));
  const freed = (call) => call.before - call.after;

  const make = (tag, attributes = {}, ...children) => {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name === "style") node.style.cssText = value;
      else if (name === "click") node.addEventListener("click", value);
      else node.setAttribute(name, value);
    }
    node.append(...children.filter((child) => child !== null && child !== undefined));
    return node;
  };
  const dot = (fate) => make("span", { class: "dot", style: `background: var(--${fate})` });
  const option = (value, words) => make("option", { value }, words);

  // ---- head ------------------------------------------------------------------------------------------------
  const tile = (name, value, below, lead) =>
    make("div", lead ? { class: "lead" } : {}, make("dt", {}, name), make("dd", {}, value, make("small", {}, below)));

  const drawHead = () => {
    const facts = data.facts;
    $("goal").textContent = facts.objective || "A compacted session";
    $("from").textContent = data.from;
    const tiles = [tile("Removed", percent(facts.chars_before - facts.chars_after, facts.chars_before), data.verdict, true)];
    tiles.push(tile("Characters", n(facts.chars_after), `of ${n(facts.chars_before)} stay`));
    if (facts.tokens_before !== null && facts.tokens_after !== null)
      tiles.push(tile("Tokens", n(facts.tokens_after), `of ${n(facts.tokens_before)} stay (${facts.token_count_method || "counted"})`));
    const gone = calls.filter((call) => call.decision !== "keep").length;
    tiles.push(tile("Calls", n(calls.length), `${n(gone)} with less in context, ${n(calls.length - gone)} as they were`));
    tiles.push(tile("Guarantee", data.guarantee, data.by));
    $("tiles").append(...tiles);
    $("promise").textContent = data.promise + (data.cache ? ` Prompt cache: ${data.cache}.` : "");
    $("foot").textContent = data.foot;
    if (data.warnings.length) {
      $("warnings").hidden = false;
      $("warnings").append(...data.warnings.map((line) => make("li", {}, line)));
    }
  };

  // ---- colours ---------------------------------------------------------------------------------------------
  let colours = {};
  const readColours = () => {
    const style = getComputedStyle(document.documentElement);
    const names = [...Object.keys(fates), "ink", "muted", "line", "focus", "soft", "panel"];
    colours = Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
  };
  const setTheme = (theme) => {
    document.documentElement.dataset.theme = theme;
    readColours();
    draw();
  };

  // ---- timeline --------------------------------------------------------------------------------------------
  const HEIGHT = 232;
  const FOOT = 12;
  const LEFT = 52;
  const track = $("track");
  const bars = $("bars");
  const overview = $("overview");
  const largest = calls.reduce((most, call) => Math.max(most, call.before), 1);
  const tall = (chars, height) => (chars ? Math.max(1.5, Math.sqrt(chars / largest) * height) : 0);
  let step = 8;
  let pending = false;

  const prepare = (canvas, width, height) => {
    const ratio = window.devicePixelRatio || 1;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    const paint = canvas.getContext("2d");
    paint.setTransform(ratio, 0, 0, ratio, 0, 0);
    paint.clearRect(0, 0, width, height);
    return paint;
  };

  const drawScale = (paint, width, room) => {
    paint.font = "11px system-ui, sans-serif";
    paint.textBaseline = "middle";
    paint.textAlign = "right";
    for (const mark of [1000, 5000, 20000, 50000, 200000, 1000000]) {
      if (mark > largest) break;
      const y = Math.round(HEIGHT - FOOT - tall(mark, room)) + 0.5;
      if (HEIGHT - FOOT - y < 14) continue;
      paint.strokeStyle = colours.line;
      paint.beginPath();
      paint.moveTo(LEFT, y);
      paint.lineTo(width, y);
      paint.stroke();
      paint.fillStyle = colours.muted;
      paint.fillText(`${mark / 1000}k`, LEFT - 8, y);
    }
  };

  const drawBar = (paint, index, x, wide, room) => {
    const call = calls[index];
    const base = HEIGHT - FOOT;
    const [was, is] = [tall(call.before, room), tall(call.after, room)];
    const dim = state.fits[index] ? 1 : 0.16;
    paint.fillStyle = colours[call.fate];
    if (is < was) {
      paint.globalAlpha = 0.36 * dim;
      paint.fillRect(x, base - was, wide, was - is);
    }
    paint.globalAlpha = dim;
    paint.fillRect(x, base - is, wide, is);
    if (index === state.selected) {
      paint.globalAlpha = 1;
      paint.strokeStyle = colours.focus;
      paint.lineWidth = 2;
      paint.strokeRect(x - 1.5, base - Math.max(was, 4) - 1.5, wide + 3, Math.max(was, 4) + 3);
      paint.fillStyle = colours.focus;
      paint.fillRect(x + wide / 2 - 2, base + 5, 4, 4);
    }
    paint.globalAlpha = 1;
  };

  const drawBars = () => {
    const width = track.clientWidth;
    const scrolled = track.scrollLeft;
    const paint = prepare(bars, width, HEIGHT);
    const room = HEIGHT - FOOT - 18;
    const wide = Math.max(2, step - (step > 30 ? 8 : step > 9 ? 3 : 1));
    const first = clamp(Math.floor((scrolled - step) / step), 0, calls.length);
    const last = clamp(Math.ceil((scrolled + width - LEFT) / step) + 1, 0, calls.length);
    drawScale(paint, width, room);
    paint.save();
    paint.beginPath();
    paint.rect(LEFT - 3, 0, width, HEIGHT);
    paint.clip();
    for (let index = first; index < last; index += 1) drawBar(paint, index, LEFT + index * step - scrolled, wide, room);
    paint.restore();
  };

  const drawOverview = () => {
    if (overview.hidden) return;
    const width = overview.parentElement.clientWidth;
    const paint = prepare(overview, width, 34);
    const slot = width / calls.length;
    for (let index = 0; index < calls.length; index += 1) {
      const call = calls[index];
      paint.globalAlpha = state.fits[index] ? 0.85 : 0.15;
      paint.fillStyle = colours[call.fate];
      const high = tall(call.before, 26);
      paint.fillRect(index * slot, 32 - high, Math.max(0.8, slot), high);
    }
    const shown = (track.clientWidth - LEFT) / step;
    const from = (track.scrollLeft / step) * slot;
    paint.globalAlpha = 0.12;
    paint.fillStyle = colours.ink;
    paint.fillRect(from, 0, shown * slot, 34);
    paint.globalAlpha = 0.6;
    paint.strokeStyle = colours.ink;
    paint.strokeRect(from + 0.5, 0.5, Math.min(shown * slot, width - from) - 1, 33);
    paint.globalAlpha = 1;
  };

  const draw = () => {
    if (pending) return;
    pending = true;
    requestAnimationFrame(() => {
      pending = false;
      drawBars();
      drawOverview();
    });
  };

  const layOut = () => {
    const room = track.clientWidth - LEFT - 12;
    step = clamp(Math.floor(room / Math.max(1, calls.length)), 6, 52);
    $("inner").style.width = `${LEFT + step * calls.length + 12}px`;
    overview.hidden = step * calls.length <= room;
    draw();
  };

  const callAt = (event) => {
    const x = event.clientX - track.getBoundingClientRect().left + track.scrollLeft - LEFT;
    const index = Math.floor(x / step);
    return x >= 0 && index < calls.length ? index : -1;
  };

  const showTip = (event) => {
    const index = callAt(event);
    const tip = $("tip");
    tip.hidden = index < 0;
    if (index < 0) return;
    const call = calls[index];
    const size = call.before === call.after ? `${n(call.before)} characters` : `${n(call.before)} → ${n(call.after)} characters`;
    tip.replaceChildren(make("b", {}, call.tool), ` ${call.subject || ""}`, make("br"), `${size}: ${fates[call.fate]}`);
    tip.style.left = `${clamp(event.clientX + 14, 4, window.innerWidth - tip.offsetWidth - 8)}px`;
    tip.style.top = `${clamp(event.clientY + 16, 4, window.innerHeight - tip.offsetHeight - 8)}px`;
  };

  // ---- one call --------------------------------------------------------------------------------------------
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

  // ---- filter ----------------------------------------------------------------------------------------------
  const drawLegend = () => {
    const counts = {};
    for (const call of calls) counts[call.fate] = (counts[call.fate] || 0) + 1;
    for (const fate of Object.keys(fates)) {
      if (!counts[fate]) continue;
      const chip = make("button", { class: "chip", type: "button", "aria-pressed": "false", "data-fate": fate }, dot(fate), fates[fate], make("b", {}, n(counts[fate])));
      chip.addEventListener("click", () => {
        state.fate = state.fate === fate ? null : fate;
        filter();
      });
      $("legend").append(chip);
    }
  };

  const fillSelects = () => {
    $("tool").append(option("", "all tools"), ...data.tools.map((row) => option(row.tool, row.tool)));
    $("reason").append(option("", "all reasons"), ...reasons.map((reason, index) => option(String(index), reason.name)));
  };

  const filter = () => {
    state.words = $("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    state.tool = $("tool").value;
    state.reason = $("reason").value;
    state.order = $("order").value;
    calls.forEach((call, index) => {
      state.fits[index] =
        (!state.fate || call.fate === state.fate) && (!state.tool || call.tool === state.tool) &&
        (!state.reason || call.reason === Number(state.reason)) && state.words.every((word) => call.text.includes(word)) ? 1 : 0;
    });
    const shown = [];
    for (let index = 0; index < calls.length; index += 1) if (state.fits[index]) shown.push(index);
    const by = { freed: (call) => freed(call), after: (call) => call.after }[state.order];
    if (by) shown.sort((a, b) => by(calls[b]) - by(calls[a]) || a - b);
    state.shown = shown;
    for (const chip of document.querySelectorAll("[data-fate]")) chip.setAttribute("aria-pressed", String(chip.dataset.fate === state.fate));
    for (const button of document.querySelectorAll("[data-reason]")) button.setAttribute("aria-pressed", String(button.dataset.reason === state.reason));
    const all = shown.length === calls.length;
    const gone = shown.reduce((sum, index) => sum + freed(calls[index]), 0);
    $("found").textContent = all ? "" : `${n(shown.length)} of ${n(calls.length)} calls, ${n(gone)} characters freed`;
    $("list").scrollTop = 0;
    draw();
    drawRows();
  };

  const clear = () => {
    $("search").value = "";
    $("tool").value = "";
    $("reason").value = "";
    state.fate = null;
    filter();
  };

  // ---- list: only the rows in sight are in the page -----------------------------------------------------------
  const ROW = 34;
  const list = $("list");
  const rowOf = (position) => {
    const index = state.shown[position];
    const call = calls[index];
    return make("div", { class: "row", role: "option", id: `row-${index}`, "aria-selected": String(index === state.selected), "aria-posinset": position + 1, "aria-setsize": state.shown.length, style: `top: ${position * ROW}px`, click: () => select(index, list.parentElement) },
      make("span", { class: "muted" }, n(index + 1)),
      make("span", { title: call.tool }, call.tool),
      make("span", { title: call.subject || "" }, call.subject || call.id),
      make("span", { class: "fate" }, dot(call.fate), fates[call.fate]),
      make("span", { class: "num" }, n(call.before)),
      make("span", { class: "num" }, call.after === call.before ? "" : n(call.after)));
  };

  const drawRows = () => {
    $("rows").style.height = `${state.shown.length * ROW}px`;
    $("none").hidden = state.shown.length > 0;
    list.hidden = state.shown.length === 0;
    const first = clamp(Math.floor(list.scrollTop / ROW) - 4, 0, state.shown.length);
    const last = clamp(Math.ceil((list.scrollTop + list.clientHeight) / ROW) + 4, 0, state.shown.length);
    const rows = [];
    for (let position = first; position < last; position += 1) rows.push(rowOf(position));
    $("rows").replaceChildren(...rows);
    const present = rows.some((row) => row.id === `row-${state.selected}`);
    if (present) list.setAttribute("aria-activedescendant", `row-${state.selected}`);
    else list.removeAttribute("aria-activedescendant");
  };

  const revealRow = (index) => {
    const position = state.shown.indexOf(index);
    if (position < 0) return;
    const top = position * ROW;
    if (top < list.scrollTop) list.scrollTop = top;
    else if (top + ROW > list.scrollTop + list.clientHeight) list.scrollTop = top + ROW - list.clientHeight;
  };

  const moveInList = (by) => {
    const position = state.shown.indexOf(state.selected);
    const next = position < 0 ? (by > 0 ? 0 : state.shown.length - 1) : clamp(position + by, 0, state.shown.length - 1);
    if (state.shown.length) select(state.shown[next], list.parentElement);
  };

  // ---- rounds ----------------------------------------------------------------------------------------------
  const drawn = (tag, attributes, words) => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    if (words) node.textContent = words;
    return node;
  };

  const drawChart = () => {
    const rounds = data.rounds;
    if (!rounds) return;
    const box = $("rounds-chart");
    const [width, height, top, foot] = [box.clientWidth || 800, box.clientHeight || 196, 22, 26];
    const points = rounds.contexts;
    const highest = Math.max(...points, rounds.full > 1.6 * Math.max(...points) ? 0 : rounds.full);
    const across = (at) => LEFT + (at / points.length) * (width - LEFT - 16);
    const up = (tokens) => height - foot - (tokens / highest) * (height - top - foot);
    const svg = drawn("svg", { viewBox: `0 0 ${width} ${height}` });
    const line = points.map((tokens, at) => `${across(at).toFixed(1)},${up(tokens).toFixed(1)} ${across(at + 1).toFixed(1)},${up(tokens).toFixed(1)}`).join(" ");
    for (const tokens of [highest / 2, highest]) {
      svg.append(drawn("line", { class: "axis", x1: LEFT, x2: width - 16, y1: up(tokens), y2: up(tokens) }));
      svg.append(drawn("text", { x: LEFT - 8, y: up(tokens) + 4, "text-anchor": "end" }, `${n(Math.round(tokens / 1000))}k`));
    }
    svg.append(drawn("polygon", { class: "area", points: `${LEFT},${up(0)} ${line} ${across(points.length)},${up(0)}` }));
    svg.append(drawn("polyline", { class: "edge", points: line }));
    svg.append(drawn("line", { class: "axis", x1: LEFT, x2: width - 16, y1: up(0), y2: up(0) }));
    $("rounds-next").textContent = `${rounds.next}${rounds.full <= highest ? " (dashed)" : ""}.`;
    if (rounds.full <= highest) svg.append(drawn("line", { class: "full", x1: LEFT, x2: width - 16, y1: up(rounds.full), y2: up(rounds.full) }));
    for (const at of rounds.marks) svg.append(drawn("line", { class: "mark", x1: across(at), x2: across(at), y1: top - 8, y2: up(0) }));
    svg.append(drawn("text", { x: LEFT, y: height - 8 }, "first request"));
    svg.append(drawn("text", { x: width - 16, y: height - 8, "text-anchor": "end" }, `request ${n(rounds.requests)}`));
    box.replaceChildren(svg);
  };

  const drawRounds = () => {
    const rounds = data.rounds;
    if (!rounds) return;
    $("rounds").hidden = false;
    const most = Math.max(...rounds.contexts);
    $("rounds-sum").textContent = `Tokens in the context at each of ${n(rounds.requests)} requests, at most ${n(most)}; a line is a compaction`;
    $("rounds-chart").setAttribute("aria-label", `The context grew to ${n(most)} tokens in ${n(rounds.requests)} requests, with ${rounds.marks.length} compactions.`);
    const cost = rounds.cost;
    const parts = [[cost.new, "new at 1"], [cost.read, "read from the cache at 0.1"], [cost.written, "written to it at 1.25"], [cost.written_hour, "written for an hour at 2"]];
    const sum = parts.filter(([tokens]) => tokens).map(([tokens, name]) => `${n(tokens)} ${name}`).join(" + ");
    const saved = rounds.saved === null ? "" : ` The same requests with nothing removed: about ${n(rounds.without)}, an estimate. ${rounds.saved < 0 ? "Cost so far" : "Saved"}: about ${n(Math.abs(rounds.saved))}, ${percent(Math.abs(rounds.saved), rounds.without)} of that.`;
    $("rounds-cost").textContent = `Input: ${sum} = ${n(cost.sum)} tokens at the plain input price, measured from the session's own usage.${saved}`;
    if (!rounds.rows.length) return;
    $("rounds-table").hidden = false;
    const cells = (tag, values) => make("tr", {}, ...values.map((value) => make(tag, {}, value)));
    const rows = rounds.rows.map((row) => cells("td", [row.kind, n(row.before), `${n(row.freed)} (${percent(row.freed, row.before)})`,
      n(row.requests), row.requests ? `${n(row.first)} → ${n(row.last)}` : "–", n(row.recalls), row.saved === null ? "–" : `~${n(row.saved)}`]));
    $("rounds-table").append(make("table", {}, make("thead", {}, cells("th", ["", "Context", "Freed", "Requests since", "Context since", "Had back", "Saved (estimated)"])), make("tbody", {}, ...rows)));
  };

  // ---- keys ------------------------------------------------------------------------------------------------
  const keysOf = (target, actions) => target.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey || !actions[event.key]) return;
    event.preventDefault();
    actions[event.key](event);
  });

  const listen = () => {
    keysOf(track, {
      ArrowRight: (event) => move(1, event.shiftKey), ArrowLeft: (event) => move(-1, event.shiftKey),
      Home: () => edge(1), End: () => edge(-1),
    });
    keysOf(list, {
      ArrowDown: () => moveInList(1), ArrowUp: () => moveInList(-1), PageDown: () => moveInList(12), PageUp: () => moveInList(-12),
      Home: () => moveInList(-state.shown.length), End: () => moveInList(state.shown.length),
    });
    document.addEventListener("keydown", (event) => {
      const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
      if (event.key === "/" && !typing) { event.preventDefault(); $("search").focus(); }
      if (event.key === "Escape") { clear(); if (typing) track.focus(); }
    });
    for (const id of ["search", "tool", "reason", "order"]) $(id).addEventListener("input", filter);
    for (const button of [$("clear"), ...document.querySelectorAll("[data-clear]")]) button.addEventListener("click", clear);
    $("theme").addEventListener("click", () => setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
    track.addEventListener("scroll", draw, { passive: true });
    track.addEventListener("mousemove", showTip);
    track.addEventListener("mouseleave", () => { $("tip").hidden = true; });
    track.addEventListener("click", (event) => { const index = callAt(event); if (index >= 0) select(index, track.parentElement); });
    list.addEventListener("scroll", drawRows, { passive: true });
    const seek = (event) => {
      const share = (event.clientX - overview.getBoundingClientRect().left) / overview.clientWidth;
      track.scrollLeft = share * calls.length * step - (track.clientWidth - LEFT) / 2;
    };
    overview.addEventListener("pointerdown", (event) => { overview.setPointerCapture(event.pointerId); seek(event); });
    overview.addEventListener("pointermove", (event) => { if (event.buttons) seek(event); });
    window.addEventListener("resize", () => { layOut(); drawRows(); drawChart(); });
  };

  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  for (const call of calls) call.text = `${call.tool} ${call.subject || ""} ${call.id} ${call.note || ""} ${reasons[call.reason].name} ${fates[call.fate]}`.toLowerCase();
  track.setAttribute("aria-valuemax", calls.length);
  drawHead();
  drawLegend();
  fillSelects();
  drawTools();
  drawRounds();
  drawWhy($("went"), data.went, (group) => group.before - group.after, "freed", (group) => group.fate);
  drawWhy($("stayed"), data.stayed, (group) => group.before, "stay", (group) => group.fate);
  listen();
  setTheme(dark.matches ? "dark" : "light");
  dark.addEventListener("change", (event) => setTheme(event.matches ? "dark" : "light"));
  filter();
  layOut();
  drawChart();
})();
