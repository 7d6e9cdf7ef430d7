// The list: only the rows in sight are in the page.
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
