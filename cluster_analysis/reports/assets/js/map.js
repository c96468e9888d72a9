// The cluster: one square a device, arranged as hosts × devices or as pipeline × data × tensor.

function mapWidget(run) {
  const holder = byId("map"), arrange = byId("map-arrange"), metric = byId("map-metric"), scale = byId("map-scale");
  const draw = () => {
    fillChoice(arrange);
    fillChoice(scale);
    fillChoice(metric, metricOptions(run), presetMetric(run));
    drawMap(run, holder, arrange.value === "grid" ? gridBlocks(run) : hostBlocks(run), metric.value, scale.value, arrange.value);
  };
  [arrange, metric, scale].forEach((select) => select.addEventListener("change", draw));
  onRedraw(holder, draw);
}

// A block: {name, cells: [[rank, column, row]], columns, rows}.
function hostBlocks(run) {
  const byHost = new Map();
  for (const rank of run.ranks) {
    const host = run.places.get(rank)?.host ?? "";
    if (!byHost.has(host)) byHost.set(host, []);
    byHost.get(host).push(rank);
  }
  const order = [...run.hosts, ""].filter((host) => byHost.has(host));
  return order.map((host) => {
    const ranks = byHost.get(host);
    const cells = ranks.map((rank, i) => [rank, host === "" ? i % 16 : run.places.get(rank).device ?? i, host === "" ? Math.floor(i / 16) : 0]);
    // A few hosts stand under their names; of many, in rows, the number is enough.
    const name = order.length > 12 && !run.addresses[host] ? host : run.hostName(host);
    return block(host === "" ? t("map.unplaced") : name, cells);
  });
}

function gridBlocks(run) {
  const byStage = new Map();
  for (const rank of run.ranks) {
    const place = run.places.get(rank);
    if (!place || [place.stage, place.tp, place.dp].some((one) => one === null || one === undefined)) continue;
    if (!byStage.has(place.stage)) byStage.set(place.stage, []);
    byStage.get(place.stage).push([rank, place.tp, place.dp]);
  }
  return [...byStage].sort((a, b) => a[0] - b[0]).map(([stage, cells]) => block(t("map.stage", { stage }), cells));
}

function block(name, cells) {
  const columns = Math.max(...cells.map((cell) => cell[1])) + 1, rows = Math.max(...cells.map((cell) => cell[2])) + 1;
  return { name, cells, columns, rows };
}

function drawMap(run, holder, blocks, metric, kind, arrange) {
  holder.querySelectorAll(".legend, .empty, .binned").forEach((old) => old.remove());
  if (!blocks.length) {
    holder.querySelector("canvas")?.remove();
    holder.append(el("p", { class: "empty" }, t(arrange === "grid" ? "map.nogrid" : "map.unplaced")));
    return;
  }
  const nRanks = run.ranks.length;
  const size = nRanks <= 64 ? 30 : nRanks <= 1500 ? 17 : 9;
  const width = Math.max(320, holder.clientWidth);
  const placed = layOut(blocks, width, size);
  const { canvas, paint } = canvasFor(holder, width, placed.height, t("map.title"));
  const values = new Map(run.ranks.map((rank) => [rank, kind === "deviation" ? run.deviation(metric, rank) : run.value(metric, rank)]));
  const scale = metricScale(run, metric, kind);
  paint.textAlign = "left";
  paint.fillStyle = colour("muted");
  for (const { text, x, y, wide } of placed.names) paint.fillText(fitted(paint, text, wide), x, y);
  for (const { rank, x, y } of placed.cells) {
    const value = values.get(rank);
    if (Number.isNaN(value)) hollowCell(paint, x, y, size - 2, size - 2);
    else { paint.fillStyle = css(scale.at(value)); paint.fillRect(x, y, size - 2, size - 2); }
    if (size >= 30) labelCell(paint, rank, x, y, size, Number.isNaN(value) ? null : scale.at(value));
    if (run.blamed.has(rank)) {
      paint.strokeStyle = colour("ink");
      paint.lineWidth = 2;
      paint.strokeRect(x - 1, y - 1, size, size);
      paint.lineWidth = 1;
    }
  }
  const at = (x, y) =>
    placed.cells.find((cell) => x >= cell.x && x < cell.x + size && y >= cell.y && y < cell.y + size) ?? null;
  pointer(canvas, {
    cellAt: at,
    textOf: (cell) => cellText(run, metric, cell.rank, -1),
    move: (cell, dx, dy) => moveIn(placed.cells, cell, dx, dy),
    place: (cell) => [cell.x + size / 2, cell.y + size / 2],
    click: (cell) => showPanel("rank", cell.rank),
  });
  const legend = scaleLegend(scale, kind === "deviation" ? formatShare : formatUs, kind === "deviation" ? [t("heat.less"), t("heat.more")] : ["", ""]);
  if (run.blamed.size) legend.append(el("span", {}, el("i", { class: "ring" }), t("ranks.marked")));
  holder.append(legend);
  if (kind === "deviation" && WAITING_METRICS.includes(metric)) holder.append(el("p", { class: "note binned" }, t("heat.waiting")));
  holder.append(el("p", { class: "note binned" }, t(arrange === "grid" ? "map.axes" : "map.hostaxes")));
}

function labelCell(paint, rank, x, y, size, rgb) {
  const [r, g, b] = rgb ?? parseColour(colour("paper"));
  paint.fillStyle = 0.299 * r + 0.587 * g + 0.114 * b > 140 ? "#1d2226" : "#ffffff";
  paint.textAlign = "center";
  paint.fillText(`${rank}`, x + size / 2 - 1, y + size / 2 + 3);
  paint.textAlign = "left";
}

// Blocks flow like words: as many as fit in a line, names above.
function layOut(blocks, width, size) {
  // Many hosts of one row of devices each: the name stands before the row, not above it.
  if (blocks.length > 12 && blocks.every((one) => one.rows === 1)) return layOutRows(blocks, width, size);
  const gap = 16, name = 18, cells = [], names = [];
  let x = 0, y = 0, lineHeight = 0;
  for (const { name: text, cells: inside, columns, rows } of blocks) {
    const wide = Math.max(columns * size, 24), tall = rows * size + name + 12;
    if (x > 0 && x + wide > width) { x = 0; y += lineHeight; lineHeight = 0; }
    names.push({ text, x, y: y + 13, wide: wide + gap - 6 });
    for (const [rank, column, row] of inside) cells.push({ rank, x: x + column * size, y: y + name + row * size });
    lineHeight = Math.max(lineHeight, tall);
    x += wide + gap;
  }
  return { cells, names, height: y + lineHeight };
}

function layOutRows(blocks, width, size) {
  const letters = Math.min(18, Math.max(...blocks.map((one) => one.name.length)));
  const name = letters * 7 + 8, gap = 22, cells = [], names = [];
  const wide = name + Math.max(...blocks.map((one) => one.columns)) * size + gap;
  const perLine = Math.max(1, Math.floor((width + gap) / wide)), pitch = Math.max(size + 4, 14);
  blocks.forEach(({ name: text, cells: inside }, i) => {
    const x = (i % perLine) * wide, y = Math.floor(i / perLine) * pitch;
    names.push({ text, x, y: y + size / 2 + 4, wide: name - 6 });
    for (const [rank, column] of inside) cells.push({ rank, x: x + name + column * size, y: y + 1 });
  });
  return { cells, names, height: Math.ceil(blocks.length / perLine) * pitch + 4 };
}

// The nearest cell in the direction of an arrow key.
function moveIn(cells, from, dx, dy) {
  if (!from) return cells[0];
  let best = from, distance = Infinity;
  for (const cell of cells) {
    const along = (cell.x - from.x) * dx + (cell.y - from.y) * dy;
    const across = Math.abs((cell.x - from.x) * dy) + Math.abs((cell.y - from.y) * dx);
    if (along > 0 && along + 3 * across < distance) { best = cell; distance = along + 3 * across; }
  }
  return best;
}
