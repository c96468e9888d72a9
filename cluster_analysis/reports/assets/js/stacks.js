// Bars of stacked parts of a step, whatever a bar stands for: a rank, a step, or a run.

const PARTS = ["compute_only", "overlapped", "exposed_only", "bubble", "free", "preparing"];

const stackTotal = (run, valueOf) => PARTS.filter((part) => run.metrics[part]).reduce((sum, part) => sum + Math.max(0, zero(valueOf(part))), 0);

// `n` bars; `shownOf(column)` says which bar a pixel column shows where there are more bars than pixels.
// → {frame: what a line across it needs, parts}
function drawStacks(run, holder, { n, valueOf, totals, title, axis, shownOf, isMarked, nameOf, textOf, zoom, click }) {
  const width = Math.max(320, holder.clientWidth), height = 304, left = 78, bottom = 46, upper = 12;
  const { canvas, paint } = canvasFor(holder, width, height, title);
  const parts = PARTS.filter((part) => run.metrics[part]);
  const most = totals.reduce((a, b) => Math.max(a, b), 0) * 1.04 || 1;
  const y = (us) => upper + (1 - us / most) * (height - bottom - upper);
  const frame = { paint, left, width, y };
  timeLines(frame, most);
  const pitch = (width - left) / Math.max(1, n);
  for (const column of pixelColumns(n, left, width - left)) {
    const i = shownOf(column);
    const thick = pitch > 4 ? Math.min(40, column.width * 0.82) : column.width;
    let base = 0;
    for (const part of parts) {
      const value = Math.max(0, zero(valueOf(part, i)));
      if (value <= 0) continue;
      paint.fillStyle = colour(part === "compute_only" ? "compute" : part === "exposed_only" ? "exposed" : part);
      paint.fillRect(column.x + (column.width - thick) / 2, y(base + value), thick, y(base) - y(base + value));
      base += value;
    }
    if (isMarked(i)) markBar(paint, left + (i + 0.5) * pitch, y(base) - 3);
  }
  labelBars(paint, n, nameOf, left, pitch, height - bottom + 18);
  axisTitle(paint, axis, left + (width - left) / 2, height - 8);
  axisTitle(paint, t("axis.time"), 12, upper + (height - bottom - upper) / 2, true);
  const index = (x) => Math.max(0, Math.min(n - 1, Math.floor((x - left) / pitch)));
  const parted = (i) => parts.map((part) => [part, valueOf(part, i)]).filter(([, us]) => us > 0).map(([part, us]) => `${t(`part.${part}`)} ${formatUs(us)}`);
  pointer(canvas, {
    cellAt: (x, py) => (x < left || py > height - bottom || !n ? null : index(x)),
    textOf: (i) => [...textOf(i), `${metricName("total")} ${formatUs(totals[i])}`, ...parted(i)].filter(Boolean).join("\n"),
    move: (i, dx) => Math.max(0, Math.min(n - 1, (i ?? -1) + dx)),
    place: (i) => [left + (i + 0.5) * pitch, y(totals[i])],
    click,
  });
  dragRange(canvas, { indexAt: (x) => [index(x), 0], choose: zoom, plot: { left, top: upper, width: width - left, height: height - bottom - upper } });
  asTable(holder, { title, heads: [axis, metricName("total"), ...parts.map((part) => t(`part.${part}`))],
    rows: () => Array.from({ length: n }, (_, i) => [nameOf(i), formatUs(totals[i]), ...parts.map((part) => formatUs(Math.max(0, zero(valueOf(part, i)))))]) });
  return { frame, parts };
}

// Lines across the picture at round times, with their times at the left.
function timeLines({ paint, left, width, y }, most) {
  paint.strokeStyle = colour("line");
  paint.textAlign = "right";
  for (const value of ticks(0, most)) {
    line(paint, left, Math.round(y(value)) + 0.5, width, Math.round(y(value)) + 0.5);
    paint.fillStyle = colour("muted");
    paint.fillText(formatUs(value), left - 10, y(value) + 4);
  }
}

function dashedLine({ paint, left, width, y }, us) {
  paint.strokeStyle = colour("ink");
  paint.lineWidth = 1.5;
  paint.setLineDash([5, 4]);
  line(paint, left, y(us), width, y(us));
  paint.setLineDash([]);
  paint.lineWidth = 1;
}

function markBar(paint, x, y) {
  paint.fillStyle = colour("degraded");
  paint.beginPath();
  paint.moveTo(x, y);
  paint.lineTo(x - 4.5, y - 7);
  paint.lineTo(x + 4.5, y - 7);
  paint.fill();
}

function labelBars(paint, n, nameOf, left, pitch, y) {
  paint.fillStyle = colour("muted");
  paint.textAlign = "center";
  // Powers of two: hosts and groups begin there.
  const each = 2 ** Math.max(0, Math.ceil(Math.log2(34 / pitch)));
  const right = left + n * pitch;
  for (let i = 0; i < n; i += each) {
    const x = left + (i + 0.5) * pitch, text = nameOf(i);
    if (x + paint.measureText(text).width / 2 <= right) paint.fillText(text, x, y);
  }
}

function stackLegend(holder, parts, lineText, isMarked, marked = t("ranks.marked")) {
  holder.querySelector(".legend")?.remove();
  holder.append(el("div", { class: "legend" },
    ...parts.map((part) => el("span", {}, el("i", { class: `part-${part}` }), t(`part.${part}`))),
    el("span", {}, el("i", { class: "line dashed" }), lineText),
    isMarked ? el("span", {}, el("i", { class: "triangle" }), marked) : null));
}
