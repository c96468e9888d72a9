// Canvas helpers: sharp canvases, colour ramps, a cursor for mouse and keyboard.

function canvasFor(holder, width, height, label) {
  let canvas = holder.querySelector("canvas");
  if (!canvas) {
    canvas = el("canvas", { tabindex: 0, role: "img" });
    holder.append(canvas);
  }
  const ratio = Math.max(1, Math.min(3, devicePixelRatio || 1));
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  canvas.setAttribute("aria-label", label);
  const paint = canvas.getContext("2d");
  paint.setTransform(ratio, 0, 0, ratio, 0, 0);
  paint.clearRect(0, 0, width, height);
  paint.font = `12px ${getComputedStyle(document.body).fontFamily}`;
  return { canvas, paint };
}

function parseColour(text) {
  const hex = text.replace("#", "");
  return [0, 2, 4].map((i) => parseInt(hex.slice(i, i + 2), 16));
}

function mix(stops, share) {
  const place = Math.max(0, Math.min(1, share)) * (stops.length - 1);
  const low = Math.min(stops.length - 2, Math.floor(place)), part = place - low;
  return stops[low].map((value, i) => Math.round(value + part * (stops[low + 1][i] - value)));
}

const DIVERGING = ["low-3", "low-2", "low-1", "mid", "high-1", "high-2", "high-3"];
const SEQUENTIAL = ["mid", "low-1", "low-2", "low-3"];

const css = ([r, g, b]) => `rgb(${r} ${g} ${b})`;
const rampCss = (names) => `linear-gradient(90deg, ${names.map(colour).join(", ")})`;

// Less than this from the peers is as usual: in a healthy job nothing stands out.
const LEAST_DEVIATION = 0.05;

// A colour scale that one outlier cannot wash out: it ends at the 2nd and 98th percentile.
// kind "deviation" is symmetric around 0, "value" runs from low to high; neither is narrower than 5 % to each side.
function scaleFor(values, kind, atLeast = LEAST_DEVIATION, names = { deviation: DIVERGING, value: SEQUENTIAL }) {
  const ordered = sorted(values);
  const low = quantile(ordered, 0.02), high = quantile(ordered, 0.98);
  if (kind === "deviation") {
    // What stands out must show even when fewer than 2 % do: at least a third of the extreme.
    const extreme = ordered.length ? Math.max(Math.abs(ordered[0]), Math.abs(ordered[ordered.length - 1])) : 0;
    const end = Math.max(Math.abs(zero(low)), Math.abs(zero(high)), extreme / 3, atLeast);
    const stops = names.deviation.map((name) => parseColour(colour(name)));
    return { names: names.deviation, ends: [-end, end], at: (value) => mix(stops, 0.5 + value / (2 * end)) };
  }
  const stops = names.value.map((name) => parseColour(colour(name)));
  const missing = Math.max(0, 2 * atLeast * Math.abs(zero(quantile(ordered, 0.5))) - (zero(high) - zero(low))) / 2;
  const [from, to] = [Math.max(Math.min(0, zero(low)), zero(low) - missing), zero(high) + missing];
  return { names: names.value, ends: [from, to], at: (value) => mix(stops, (value - from) / (to - from || 1)) };
}

// The scale of a metric is one for all charts of the page: the same colour means the same everywhere.
const scaleCache = new Map();
function metricScale(run, metric, kind) {
  const key = `${metric}/${kind}/${root.dataset.theme}`;
  if (!scaleCache.has(key)) scaleCache.set(key, scaleFor(heatCells(run, run.ranks, metric, kind), kind));
  return scaleCache.get(key);
}

// The legend of a scale. `format` writes its ends.
function scaleLegend(scale, format, words = ["", ""], missing = t("heat.missing")) {
  const [low, high] = scale.ends;
  return el("div", { class: "legend" },
    el("span", {}, `${words[0]} ${format(low)}`.trim(), el("i", { class: "ramp", style: { background: rampCss(scale.names) } }), `${format(high)} ${words[1]}`.trim()),
    el("span", {}, el("i", { class: "hollow" }), missing));
}

// Mouse and arrow keys over a canvas. cellAt(x, y) → cell or null; textOf(cell) → tooltip;
// move(cell, dx, dy) → neighbouring cell; place(cell) → [x, y]; click(cell).
function pointer(canvas, { cellAt, textOf, move, place, click }) {
  hint(canvas, { click: Boolean(click), keys: Boolean(move), drag: false });
  canvas.handlers?.abort();
  canvas.handlers = new AbortController();
  const signal = canvas.handlers.signal;
  let current = null;
  const at = (event) => {
    const box = canvas.getBoundingClientRect();
    return cellAt(event.clientX - box.left, event.clientY - box.top);
  };
  canvas.addEventListener("mousemove", (event) => {
    const cell = at(event);
    canvas.classList.toggle("pointed", cell !== null);
    canvas.classList.toggle("opens", cell !== null && Boolean(click));
    tip(cell === null ? "" : textOf(cell), event.clientX, event.clientY);
  }, { signal });
  canvas.addEventListener("mouseleave", () => tip(""), { signal });
  canvas.addEventListener("blur", () => tip(""), { signal });
  canvas.addEventListener("touchend", () => tip(""), { signal });
  if (click) canvas.addEventListener("click", (event) => {
    const cell = at(event);
    // The end of a drag is no click.
    if (cell !== null && !canvas.wasDragged) { tip(""); click(cell); }
  }, { signal });
  if (!move) return;
  const keys = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  canvas.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && click && current !== null) { tip(""); click(current); return; }
    if (event.key === "Escape") { current = null; tip(""); return; }
    if (!keys[event.key]) return;
    event.preventDefault();
    current = move(current, ...keys[event.key]);
    const [x, y] = place(current), box = canvas.getBoundingClientRect();
    tip(textOf(current), box.left + x, box.top + y);
  }, { signal });
}

// What a picture answers to, below it in words.
function hint(canvas, answers) {
  Object.assign(canvas.answers ??= {}, answers);
  const own = ["click", "drag", "keys"].filter((one) => canvas.answers[one]).map((one) => t(`chart.${one}`));
  if (!canvas.closest("section")) return;
  let below = canvas.nextElementSibling;
  if (!below?.classList.contains("hint")) { below = el("p", { class: "hint" }); canvas.after(below); }
  below.textContent = own.join(" · ");
}

// Drag over a canvas chooses a range of its x axis, or of both axes; what is chosen is drawn meanwhile.
// indexAt(x, y) → [column, row]; choose([from, to], [from, to]) with ends that are not included.
function dragRange(canvas, { indexAt, choose: chosenCells, isBoth = false, plot }) {
  hint(canvas, { drag: true });
  canvas.dragging?.abort();
  canvas.dragging = new AbortController();
  const signal = canvas.dragging.signal;
  let from = null, box = null;
  const here = (event) => { const edge = canvas.getBoundingClientRect(); return [event.clientX - edge.left, event.clientY - edge.top]; };
  const end = () => { from = null; box?.remove(); box = null; };
  canvas.addEventListener("mousedown", (event) => {
    canvas.wasDragged = false;
    if (event.button === 0) from = here(event);
  }, { signal });
  addEventListener("mousemove", (event) => {
    if (from === null) return;
    const to = here(event);
    if (!box && Math.hypot(to[0] - from[0], isBoth ? to[1] - from[1] : 0) < 4) return;
    canvas.wasDragged = true;
    tip("");
    if (!box) { box = el("div", { class: "selection" }); canvas.parentElement.append(box); }
    const [x1, x2] = inside([from[0], to[0]], plot.left, plot.left + plot.width);
    const [y1, y2] = isBoth ? inside([from[1], to[1]], plot.top, plot.top + plot.height) : [plot.top, plot.top + plot.height];
    Object.assign(box.style, { left: `${canvas.offsetLeft + x1}px`, top: `${canvas.offsetTop + y1}px`, width: `${x2 - x1}px`, height: `${y2 - y1}px` });
  }, { signal });
  addEventListener("mouseup", (event) => {
    if (from === null) return;
    const [first, last] = [indexAt(...from), indexAt(...here(event))], isDrag = box !== null;
    end();
    const range = (i) => [Math.min(first[i], last[i]), Math.max(first[i], last[i]) + 1];
    const [across, down] = [range(0), range(1)];
    if (isDrag && (across[1] - across[0] > 2 || (isBoth && down[1] - down[0] > 2))) chosenCells(across, down);
  }, { signal });
  addEventListener("keydown", (event) => { if (event.key === "Escape") end(); }, { signal });
}

const inside = (values, low, high) => values.map((one) => Math.max(low, Math.min(high, one))).sort((a, b) => a - b);

// With more items than pixels a column stands for several. → [{x, width, from, to}], on whole pixels.
function pixelColumns(n, left, width) {
  const n_columns = Math.min(n, Math.floor(width)), columns = [];
  for (let i = 0; i < n_columns; i++) {
    const from = Math.floor((i * n) / n_columns), to = Math.floor(((i + 1) * n) / n_columns);
    const x = Math.round(left + (i * width) / n_columns), next = Math.round(left + ((i + 1) * width) / n_columns);
    columns.push({ x, width: Math.max(1, next - x), from, to });
  }
  return columns;
}

// The column or row at a share of the picture.
const columnAt = (columns, share) => columns[Math.max(0, Math.min(columns.length - 1, Math.floor(share * columns.length)))];

// The name of a row at its left, on the canvas also where rows are lower than letters.
function labelRow(paint, text, right, y) {
  paint.textAlign = "right";
  paint.fillText(text, right, Math.max(9, y + 4));
}

// A text with an ellipsis where it is too wide.
function fitted(paint, text, width) {
  let shown = text;
  while (shown && paint.measureText(shown).width > width) shown = `${shown.replace(/…$/, "").slice(0, -1)}…`;
  return shown;
}

function resetButton(holder, isZoomed, reset) {
  holder.querySelector(".reset")?.remove();
  if (isZoomed) holder.append(el("button", { type: "button", class: "reset", onclick: reset }, t("zoom.reset")));
}

// Round numbers for an axis from 0 or low to high.
function ticks(low, high, wanted = 5) {
  const rough = (high - low) / wanted || 1, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= rough);
  const found = [];
  for (let value = Math.ceil(low / step) * step; value <= high * (1 + 1e-9) + 1e-12; value += step) found.push(value);
  return found;
}

// What an axis shows: below its middle, or, turned, beside it.
function axisTitle(paint, text, x, y, isTurned = false) {
  paint.save();
  paint.fillStyle = colour("muted");
  paint.textAlign = "center";
  paint.translate(x, y);
  if (isTurned) paint.rotate(-Math.PI / 2);
  paint.fillText(text, 0, 0);
  paint.restore();
}

// A cell without a measurement is a ring, not one more grey.
function hollowCell(paint, x, y, width, height) {
  if (Math.min(width, height) < 5) { paint.fillStyle = colour("missing"); paint.fillRect(x, y, width, height); return; }
  paint.strokeStyle = colour("missing");
  paint.strokeRect(x + 0.5, y + 0.5, width - 1, height - 1);
}
