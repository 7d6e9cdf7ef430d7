// Keys and pointers.
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
