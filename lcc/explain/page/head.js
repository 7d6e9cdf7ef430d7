// The head of the page, and its colours.
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
