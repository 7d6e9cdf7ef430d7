// The rounds of the session.
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
