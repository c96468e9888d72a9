// Ranks × steps. Where there are more of them than pixels, a pixel shows what deviates most.

const HEAT_METRICS = ["computing", "exposed", "wait", "transfer", "gap", "bubble", "free", "preparing", "total"];

// For these, more is not worse: they are what the others spend on a late rank.
const WAITING_METRICS = ["wait", "exposed"];

function metricOptions(run) {
  return HEAT_METRICS.filter((metric) => run.metrics[metric]).map((metric) => [metric, metricName(metric)]);
}

// What the costliest finding rests on is what the charts show first.
function presetMetric(run) {
  return run.top && !run.top.links.length ? metricOf(run, run.top) : null;
}

function heatWidget(run) {
  const holder = byId("heat"), metric = byId("heat-metric"), scale = byId("heat-scale");
  const draw = () => {
    fillChoice(metric, metricOptions(run), presetMetric(run));
    fillChoice(scale);
    const [from, to] = chosenRange("heat-zoom", run.ranks.length) ?? [0, run.ranks.length];
    drawHeat(run, holder, { metric: metric.value, kind: scale.value, ranks: run.ranks.slice(from, to),
      zoom: ([low, high]) => { choose("heat-zoom", `${from + low}-${from + high}`); draw(); } });
    resetButton(holder, to - from < run.ranks.length, () => { choose("heat-zoom", null); draw(); });
  };
  [metric, scale].forEach((select) => select.addEventListener("change", draw));
  onRedraw(holder, draw);
}

function heatCells(run, ranks, metric, kind) {
  const cells = new Float32Array(ranks.length * run.nBins);
  ranks.forEach((rank, i) => {
    for (let bin = 0; bin < run.nBins; bin++) {
      cells[i * run.nBins + bin] = kind === "deviation" ? run.deviation(metric, rank, bin) : run.value(metric, rank, bin);
    }
  });
  return cells;
}

function drawHeat(run, holder, { metric, kind, ranks, zoom }) {
  const left = 78, bottom = 46, width = Math.max(320, holder.clientWidth);
  const plot = width - left, nBins = run.nBins, rowHeight = Math.min(26, 420 / nBins), tall = nBins * rowHeight;
  const height = Math.ceil(tall) + bottom;
  const { canvas, paint } = canvasFor(holder, width, height, t("heat.title"));
  if (!ranks.length || !metric) return;
  const cells = heatCells(run, ranks, metric, kind);
  const scale = metricScale(run, metric, kind);
  const pitch = plot / ranks.length, columns = pixelColumns(ranks.length, left, plot), rows = pixelColumns(nBins, 0, tall);
  const gap = pitch > 5 ? 1 : 0, rowGap = rowHeight > 5 ? 1 : 0;
  const shown = (column, row) => mostDeviating(cells, column, row, nBins, kind);
  for (const column of columns) {
    for (const row of rows) {
      const [i, bin] = shown(column, row), value = cells[i * nBins + bin], place = [column.x, row.x, column.width - gap, row.width - rowGap];
      if (Number.isNaN(value)) { hollowCell(paint, ...place); continue; }
      paint.fillStyle = css(scale.at(value));
      paint.fillRect(...place);
    }
  }
  labelHeat(run, paint, { ranks, left, pitch, rowHeight, y: height - bottom + 18 });
  axisTitle(paint, t("axis.rank"), left + plot / 2, height - 8);
  axisTitle(paint, t("axis.step"), 12, (height - bottom) / 2, true);
  const index = (x) => Math.max(0, Math.min(ranks.length - 1, Math.floor((x - left) / pitch)));
  pointer(canvas, {
    cellAt: (x, y) => (x < left || y >= tall ? null : shown(columnAt(columns, (x - left) / plot), columnAt(rows, y / tall))),
    textOf: ([i, bin]) => cellText(run, metric, ranks[i], bin),
    move: (cell, dx, dy) => { const [i, bin] = cell ?? [-dx, -dy];
      return [Math.max(0, Math.min(ranks.length - 1, i + dx)), Math.max(0, Math.min(nBins - 1, bin + dy))]; },
    place: ([i, bin]) => [left + (i + 0.5) * pitch, (bin + 0.5) * rowHeight],
    click: ([i, bin]) => showPanel("rank", ranks[i], run.bins[bin][0]),
  });
  dragRange(canvas, { indexAt: (x) => [index(x), 0], choose: zoom, plot: { left, top: 0, width: plot, height: height - bottom } });
  const isBinned = columns.length < ranks.length || rows.length < nBins, isMarked = ranks.some((rank) => run.blamed.has(rank));
  legendHeat(holder, { scale, kind, metric, isBinned, isMarked }, run);
}

// → [rank, step] by position
function mostDeviating(cells, column, row, nBins, kind) {
  let best = NaN, found = [];
  for (let i = column.from; i < column.to; i++) {
    for (let bin = row.from; bin < row.to; bin++) {
      const value = cells[i * nBins + bin];
      if (Number.isNaN(best) || (kind === "deviation" ? Math.abs(value) > Math.abs(best) : value > best)) [best, found] = [value, [i, bin]];
    }
  }
  return found;
}

function labelHeat(run, paint, { ranks, left, pitch, rowHeight, y }) {
  paint.fillStyle = colour("muted");
  const eachRow = Math.max(1, Math.ceil(14 / rowHeight));
  for (let bin = 0; bin < run.nBins; bin += eachRow) labelRow(paint, run.binName(bin), left - 10, (bin + 0.5) * rowHeight);
  labelBars(paint, ranks.length, (i) => `${ranks[i]}`, left, pitch, y);
  // A rank of the finding is marked below its column; colour alone would be lost among a thousand columns.
  ranks.forEach((rank, i) => { if (run.blamed.has(rank)) { paint.fillStyle = colour("degraded"); paint.fillRect(left + (i + 0.5) * pitch - 2, y - 16, 4, 4); } });
}

function cellText(run, metric, rank, bin) {
  return [run.locator(rank), run.stageName(rank), bin >= 0 ? run.stepsText(bin) : t("ranks.allsteps"),
    `${metricName(metric)} ${formatUs(run.value(metric, rank, bin))}`,
    `${t("peermedian", { value: formatUs(run.peerMedian(metric, rank, bin)) })}${bracketed(formatShare(zero(run.deviation(metric, rank, bin))))}`,
  ].filter(Boolean).join("\n");
}

function legendHeat(holder, { scale, kind, metric, isBinned, isMarked }, run) {
  holder.querySelectorAll(".legend, .binned").forEach((old) => old.remove());
  const words = kind === "deviation" ? [t("heat.less"), t("heat.more")] : ["", ""];
  const legend = scaleLegend(scale, kind === "deviation" ? formatShare : formatUs, words);
  if (isMarked) legend.append(el("span", {}, el("i", { class: "dot" }), t("ranks.marked")));
  holder.append(legend);
  const notes = [];
  if (isBinned) notes.push(t("heat.binned"));
  if (run.bins.some((steps) => steps.length > 1)) notes.push(t("heat.binnedsteps", { n: run.bins[0].length }));
  if (kind === "deviation" && WAITING_METRICS.includes(metric)) notes.push(t("heat.waiting"));
  if (notes.length) holder.append(el("p", { class: "note binned" }, notes.join(" ")));
}
