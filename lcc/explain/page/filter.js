// The filter.
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
