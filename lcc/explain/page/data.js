// The report's data, and what all parts of the page use. All text from the report is put into the page as text, never as markup.
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
