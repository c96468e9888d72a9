// Memory by rank: the peak of a component as a bar, the capacity of the device as a line above it.

function memoryWidget(run) {
  const holder = byId("memory"), choice = byId("memory-component");
  const draw = () => {
    const most = (component) => Math.max(...memoryRows(run, component).map((row) => row.peak));
    const known = run.memoryComponents.map((_, i) => i).sort((a, b) => most(b) - most(a));
    fillChoice(choice, known.map((i) => [`${i}`, run.memoryComponents[i]]));
    const rows = memoryRows(run, Number(choice.value));
    const [from, to] = chosenRange("memory-zoom", rows.length) ?? [0, rows.length];
    drawMemory(run, holder, rows.slice(from, to), ([low, high]) => { choose("memory-zoom", `${from + low}-${from + high}`); draw(); });
    resetButton(holder, to - from < rows.length, () => { choose("memory-zoom", null); draw(); });
  };
  choice.addEventListener("change", () => { choose("memory-zoom", null); draw(); });
  onRedraw(holder, draw);
}

// What is reserved is what the device must hold; some files know only what is allocated of it.
function memoryRows(run, component) {
  const of = (name) => run.columns[`memory.${name}`], rows = [];
  for (let i = 0; i < of("rank").length; i++) {
    if (of("component")[i] !== component) continue;
    const peak = Number.isNaN(of("reserved")[i]) ? of("allocated")[i] : of("reserved")[i];
    const capacity = of("capacity")[i], isFull = peak >= run.limits.full * capacity;
    if (!Number.isNaN(peak)) rows.push({ rank: of("rank")[i], peak, capacity, isFull });
  }
  return rows.sort((a, b) => a.rank - b.rank);
}

function drawMemory(run, holder, rows, zoom) {
  const width = Math.max(320, holder.clientWidth), height = 220, left = 78, bottom = 46, upper = 12, tall = height - bottom - upper;
  const { canvas, paint } = canvasFor(holder, width, height, t("memory.title"));
  const most = rows.reduce((top, row) => Math.max(top, row.peak, zero(row.capacity)), 0) * 1.06 || 1;
  const y = (bytes) => upper + (1 - bytes / most) * tall, pitch = (width - left) / Math.max(1, rows.length);
  paint.textAlign = "right";
  for (const value of ticks(0, most, 4)) {
    paint.strokeStyle = colour("line");
    line(paint, left, Math.round(y(value)) + 0.5, width, Math.round(y(value)) + 0.5);
    paint.fillStyle = colour("muted");
    paint.fillText(formatBytes(value), left - 10, y(value) + 4);
  }
  for (const { x, width: wide, from, to } of pixelColumns(rows.length, left, width - left)) {
    // Of several ranks in a pixel the fullest.
    const row = rows.slice(from, to).reduce((a, b) => (b.peak > a.peak ? b : a)), thick = pitch > 4 ? Math.min(40, wide * 0.82) : wide;
    paint.fillStyle = colour(row.isFull ? "critical" : "compute");
    paint.fillRect(x + (wide - thick) / 2, y(row.peak), thick, y(0) - y(row.peak));
    if (row.isFull) markBar(paint, x + wide / 2, y(row.peak) - 3);
    paint.fillStyle = colour("ink");
    if (row.capacity > 0) paint.fillRect(x, y(row.capacity) - 1, wide, 2);
  }
  labelBars(paint, rows.length, (i) => `${rows[i].rank}`, left, pitch, height - bottom + 18);
  axisTitle(paint, t("axis.rank"), left + (width - left) / 2, height - 8);
  axisTitle(paint, t("panel.peak"), 12, upper + tall / 2, true);
  const index = (px) => Math.max(0, Math.min(rows.length - 1, Math.floor((px - left) / pitch)));
  const share = (row) => (row.capacity > 0 ? `${((100 * row.peak) / row.capacity).toFixed(0)}\u00a0%` : "–");
  pointer(canvas, {
    cellAt: (px, py) => (px < left || py > height - bottom || !rows.length ? null : index(px)),
    textOf: (i) => [run.locator(rows[i].rank), `${t("panel.peak")} ${formatBytes(rows[i].peak)}`, rows[i].capacity > 0 ? `${t("panel.capacity")} ${formatBytes(rows[i].capacity)} (${share(rows[i])})` : ""].filter(Boolean).join("\n"),
    move: (i, dx) => Math.max(0, Math.min(rows.length - 1, (i ?? -1) + dx)),
    place: (i) => [left + (i + 0.5) * pitch, y(rows[i].peak)],
    click: (i) => showPanel("rank", rows[i].rank),
  });
  dragRange(canvas, { indexAt: (px) => [index(px), 0], choose: zoom, plot: { left, top: upper, width: width - left, height: tall } });
  holder.querySelector(".legend")?.remove();
  holder.append(el("div", { class: "legend" }, el("span", {}, el("i", { class: "part-compute_only" }), t("panel.peak")),
    rows.some((row) => row.capacity > 0) ? el("span", {}, el("i", { class: "line" }), t("panel.capacity")) : null,
    rows.some((row) => row.isFull) ? el("span", {}, el("i", { style: { background: colour("critical") } }), t("memory.full")) : null));
  asTable(holder, { title: t("memory.title"), heads: [t("axis.rank"), t("panel.peak"), t("panel.capacity"), "%"],
    rows: () => rows.map((row) => [`${row.rank}`, formatBytes(row.peak), row.capacity > 0 ? formatBytes(row.capacity) : "–", share(row)]) });
}
