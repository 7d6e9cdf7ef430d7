// Draws everything, once all parts are there.
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
