// Stacked bars of the parts of a step, one bar a rank; sortable, with a true top N.

const PARTS = ["compute_only", "overlapped", "exposed_only", "bubble", "free", "preparing"];
const TOPS = [16, 32, 64, 128, 256, 512];

function barsWidget(run) {
  const holder = byId("bars"), [sort, top, step, stage] = ["sort", "top", "step", "stage"].map((one) => byId(`bars-${one}`));
  const draw = () => {
    const stages = [...new Set(run.ranks.map((rank) => run.stage(rank)))].filter((one) => one !== null).sort((a, b) => a - b);
    fillChoice(sort, [["rank", t("ranks.byrank")], ...["total", ...PARTS, "wait", "gap"].filter((one) => run.metrics[one]).map((one) => [one, metricName(one)])]);
    fillChoice(top, [["0", t("ranks.all")], ...TOPS.filter((n) => n < run.ranks.length).map((n) => [`${n}`, t("ranks.topn", { n })])]);
    fillChoice(step, [["", t("ranks.allsteps")], ...run.bins.map((steps, bin) => [`${steps[0]}`, run.binName(bin)])], presetStep(run));
    fillChoice(stage, [["", t("ranks.allstages")], ...stages.map((one) => [`${one}`, t("map.stage", { stage: one })])]);
    const bin = step.value === "" ? -1 : run.bin(Number(step.value));
    const ordered = orderedRanks(run, sort.value, Number(top.value), bin, stage.value);
    const [from, to] = chosenRange("bars-zoom", ordered.length) ?? [0, ordered.length];
    drawBars(run, holder, ordered.slice(from, to), bin, ([low, high]) => { choose("bars-zoom", `${from + low}-${from + high}`); draw(); });
    resetButton(holder, to - from < ordered.length, () => { choose("bars-zoom", null); draw(); });
  };
  const changed = () => { choose("bars-zoom", null); draw(); };
  [sort, top, step, stage].forEach((select) => select.addEventListener("change", changed));
  onRedraw(holder, draw);
}

// The first step of the costliest finding, where it holds in some steps only.
function presetStep(run) {
  const isBrief = run.top && run.top.pattern !== "persistent" && run.top.steps.length && run.top.steps.length < run.document.run.steps.length;
  const bin = isBrief ? run.bin(run.top.steps[0]) : -1;
  return bin < 0 ? null : run.bins[bin][0];
}

// Sort first, cut then: the top N are the N largest, not the first N sorted.
function orderedRanks(run, sort, top, bin, stage) {
  const chosen = stage === "" ? [...run.ranks] : run.ranks.filter((rank) => `${run.stage(rank)}` === stage);
  if (sort === "rank" || !sort) return top ? chosen.slice(0, top) : chosen;
  const key = new Map(chosen.map((rank) => [rank, zero(run.value(sort, rank, bin))]));
  chosen.sort((a, b) => key.get(b) - key.get(a) || a - b);
  return top ? chosen.slice(0, top) : chosen;
}

function drawBars(run, holder, ranks, bin, zoom) {
  const width = Math.max(320, holder.clientWidth), height = 304, left = 78, bottom = 46, upper = 12;
  const { canvas, paint } = canvasFor(holder, width, height, t("ranks.title"));
  const parts = PARTS.filter((part) => run.metrics[part]);
  const totals = ranks.map((rank) => parts.reduce((sum, part) => sum + Math.max(0, zero(run.value(part, rank, bin))), 0));
  const most = totals.reduce((a, b) => Math.max(a, b), 0) * 1.04 || 1;
  const y = (us) => upper + (1 - us / most) * (height - bottom - upper);
  paint.strokeStyle = colour("line");
  paint.textAlign = "right";
  for (const value of ticks(0, most)) {
    line(paint, left, Math.round(y(value)) + 0.5, width, Math.round(y(value)) + 0.5);
    paint.fillStyle = colour("muted");
    paint.fillText(formatUs(value), left - 10, y(value) + 4);
  }
  const pitch = (width - left) / Math.max(1, ranks.length), middle = median(totals);
  for (const column of pixelColumns(ranks.length, left, width - left)) {
    const i = mostUnusual(run, ranks, totals, middle, column), rank = ranks[i];
    const thick = pitch > 4 ? Math.min(40, column.width * 0.82) : column.width;
    let base = 0;
    for (const part of parts) {
      const value = Math.max(0, zero(run.value(part, rank, bin)));
      if (value <= 0) continue;
      paint.fillStyle = colour(part === "compute_only" ? "compute" : part === "exposed_only" ? "exposed" : part);
      paint.fillRect(column.x + (column.width - thick) / 2, y(base + value), thick, y(base) - y(base + value));
      base += value;
    }
    if (run.blamed.has(rank)) markBar(paint, left + (i + 0.5) * pitch, y(base) - 3);
  }
  labelBars(paint, ranks, left, pitch, height - bottom + 18);
  axisTitle(paint, t("axis.rank"), left + (width - left) / 2, height - 8);
  axisTitle(paint, t("axis.time"), 12, upper + (height - bottom - upper) / 2, true);
  paint.strokeStyle = colour("ink");
  paint.lineWidth = 1.5;
  paint.setLineDash([5, 4]);
  line(paint, left, y(middle), width, y(middle));
  paint.setLineDash([]);
  paint.lineWidth = 1;
  const index = (x) => Math.max(0, Math.min(ranks.length - 1, Math.floor((x - left) / pitch)));
  pointer(canvas, {
    cellAt: (x, py) => (x < left || py > height - bottom || !ranks.length ? null : index(x)),
    textOf: (i) => barText(run, ranks[i], parts, totals[i], bin),
    move: (i, dx) => Math.max(0, Math.min(ranks.length - 1, (i ?? -1) + dx)),
    place: (i) => [left + (i + 0.5) * pitch, y(totals[i])],
    click: (i) => showPanel("rank", ranks[i], bin < 0 ? null : run.bins[bin][0]),
  });
  dragRange(canvas, { indexAt: (x) => [index(x), 0], choose: zoom, plot: { left, top: upper, width: width - left, height: height - bottom - upper } });
  legendBars(holder, parts, middle, ranks.some((rank) => run.blamed.has(rank)));
}

// Which rank a pixel column shows: one that a finding names, else the one furthest from the median.
function mostUnusual(run, ranks, totals, middle, { from, to }) {
  let best = from;
  for (let i = from; i < to; i++) {
    if (run.blamed.has(ranks[i])) return i;
    if (Math.abs(totals[i] - middle) > Math.abs(totals[best] - middle)) best = i;
  }
  return best;
}

function markBar(paint, x, y) {
  paint.fillStyle = colour("degraded");
  paint.beginPath();
  paint.moveTo(x, y);
  paint.lineTo(x - 4.5, y - 7);
  paint.lineTo(x + 4.5, y - 7);
  paint.fill();
}

function labelBars(paint, ranks, left, pitch, y) {
  paint.fillStyle = colour("muted");
  paint.textAlign = "center";
  // Powers of two: hosts and groups begin there.
  const each = 2 ** Math.max(0, Math.ceil(Math.log2(34 / pitch)));
  const right = left + ranks.length * pitch;
  ranks.forEach((rank, i) => {
    const x = left + (i + 0.5) * pitch, text = `${rank}`;
    if (i % each === 0 && x + paint.measureText(text).width / 2 <= right) paint.fillText(text, x, y);
  });
}

function barText(run, rank, parts, total, bin) {
  const lines = parts.map((part) => [part, run.value(part, rank, bin)]).filter(([, us]) => us > 0);
  return [run.locator(rank), run.stageName(rank), `${metricName("total")} ${formatUs(total)}`,
    ...lines.map(([part, us]) => `${t(`part.${part}`)} ${formatUs(us)}`)].filter(Boolean).join("\n");
}

function legendBars(holder, parts, middle, isMarked) {
  holder.querySelector(".legend")?.remove();
  holder.append(el("div", { class: "legend" },
    ...parts.map((part) => el("span", {}, el("i", { class: `part-${part}` }), t(`part.${part}`))),
    el("span", {}, el("i", { class: "line dashed" }), t("ranks.medianline", { value: formatUs(middle) })),
    isMarked ? el("span", {}, el("i", { class: "triangle" }), t("ranks.marked")) : null));
}
