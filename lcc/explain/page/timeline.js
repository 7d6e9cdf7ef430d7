// The timeline: a bar for each call.
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
