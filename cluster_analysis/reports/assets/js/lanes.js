// One step as lanes: ranks × time from the replay, with the critical path. A pixel row shows one rank; where there are more
// ranks than rows, ranks of findings and of the path are drawn over their neighbours.

const LANE_KINDS = ["ended", "work", "wait", "transfer"];
const LANE_COLOURS = ["surface", "compute", "mid", "exposed"];

function lanesWidget(run) {
  const holder = byId("lanes");
  const { ranks } = run.lanes, nCells = run.columns["lanes.cells"].length / ranks.length;
  const draw = () => {
    const rows = chosenRange("lanes-ranks", ranks.length) ?? [0, ranks.length];
    const cells = chosenRange("lanes-time", nCells) ?? [0, nCells];
    const keep = (name, range, whole, offset) => choose(name, range[1] - range[0] >= whole ? null : `${offset + range[0]}-${offset + range[1]}`);
    drawLanes(run, holder, { rows, cells, nCells, zoom: (time, down) => {
      keep("lanes-time", time, nCells, cells[0]);
      keep("lanes-ranks", down, ranks.length, rows[0]);
      draw();
    } });
    resetButton(holder, rows[1] - rows[0] < ranks.length || cells[1] - cells[0] < nCells,
      () => { choose("lanes-time", null); choose("lanes-ranks", null); draw(); });
  };
  onRedraw(holder, draw);
}

function drawLanes(run, holder, { rows, cells, nCells, zoom }) {
  const left = 78, bottom = 46, width = Math.max(320, holder.clientWidth), plot = width - left;
  const nRows = rows[1] - rows[0], nShown = cells[1] - cells[0];
  const tall = Math.max(Math.min(14 * nRows, 480), 14), height = Math.ceil(tall) + bottom;
  const { canvas, paint } = canvasFor(holder, width, height, t("lanes.title"));
  const { ranks, cell_us: cellUs, step } = run.lanes, all = run.columns["lanes.cells"];
  const at = (row, cell) => all[(rows[0] + row) * nCells + cells[0] + cell];
  paint.imageSmoothingEnabled = false;
  paint.drawImage(laneImage(at, nShown, nRows), left, 0, plot, tall);
  const x = (us) => left + ((us / cellUs - cells[0]) / nShown) * plot;
  const y = (row) => ((row + 0.5) / nRows) * tall;
  drawLanePath(run, paint, { x, y, rows, plot: [left, left + plot] });
  labelLanes(run, paint, { rows, y, left, nRows, tall });
  paint.fillStyle = colour("muted");
  paint.textAlign = "center";
  for (const us of ticks(cells[0] * cellUs, cells[1] * cellUs)) paint.fillText(formatUs(us), Math.min(x(us), width - 24), tall + 18);
  axisTitle(paint, t("lanes.axis", { step }), left + plot / 2, height - 8);
  axisTitle(paint, t("axis.rank"), 12, tall / 2, true);
  const whole = (value, n) => Math.max(0, Math.min(n - 1, Math.floor(value)));
  const column = (px) => whole(((px - left) / plot) * nShown, nShown), line = (py) => whole((py / tall) * nRows, nRows);
  pointer(canvas, {
    cellAt: (px, py) => (px < left || py >= tall ? null : [line(py), column(px)]),
    textOf: ([row, cell]) => laneText(run, ranks[rows[0] + row], rows[0] + row, cells[0] + cell, nCells),
    move: (cell, dx, dy) => { const [row, time] = cell ?? [0, 0]; return [whole(row + dy, nRows), whole(time + dx * Math.max(1, nShown >> 6), nShown)]; },
    place: ([row, cell]) => [left + ((cell + 0.5) / nShown) * plot, y(row)],
    click: ([row]) => showPanel("rank", ranks[rows[0] + row], step),
  });
  dragRange(canvas, { indexAt: (px, py) => [column(px), line(py)], choose: zoom, isBoth: true, plot: { left, top: 0, width: plot, height: tall } });
  holder.querySelector(".legend")?.remove();
  holder.append(lanesLegend(run));
}

// The cells as a picture of a pixel each; the browser scales it.
function laneImage(at, width, height) {
  const image = new ImageData(width, height), inks = LANE_COLOURS.map((name) => parseColour(colour(name)));
  for (let row = 0, to = 0; row < height; row++) {
    for (let cell = 0; cell < width; cell++, to += 4) {
      const [r, g, b] = inks[at(row, cell)];
      image.data[to] = r; image.data[to + 1] = g; image.data[to + 2] = b; image.data[to + 3] = 255;
    }
  }
  const canvas = el("canvas", {});
  [canvas.width, canvas.height] = [width, height];
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas;
}

function drawLanePath(run, paint, { x, y, rows, plot }) {
  const place = new Map(run.lanes.ranks.map((rank, i) => [rank, i - rows[0]]));
  paint.save();
  paint.beginPath();
  paint.rect(plot[0], 0, plot[1] - plot[0], 1e5);
  paint.clip();
  let before = null;
  for (const [rank, begin, end, isWork] of run.lanes.path) {
    const row = place.get(rank);
    if (row < 0 || row >= rows[1] - rows[0]) { before = null; continue; }
    const isBlamed = isWork && run.blamed.has(rank);
    paint.strokeStyle = colour(isBlamed ? "critical" : "ink");
    paint.lineWidth = isBlamed ? 4 : 1.5;
    paint.beginPath();
    if (before) { paint.moveTo(...before); paint.lineTo(x(begin), y(row)); } else paint.moveTo(x(begin), y(row));
    paint.lineTo(x(end), y(row));
    paint.stroke();
    before = [x(end), y(row)];
  }
  paint.restore();
}

function labelLanes(run, paint, { rows, y, left, nRows, tall }) {
  const each = Math.max(1, Math.ceil((14 * nRows) / tall));
  const blamedRows = run.lanes.ranks.flatMap((rank, i) => (run.blamed.has(rank) ? [i - rows[0]] : []));
  const isCrowded = (row) => blamedRows.some((other) => other !== row && Math.abs(y(other) - y(row)) < 13);
  for (let row = 0; row < nRows; row++) {
    const rank = run.lanes.ranks[rows[0] + row], isBlamed = run.blamed.has(rank);
    if (!isBlamed && row % each) continue;
    paint.fillStyle = colour(isBlamed ? "degraded" : "muted");
    if (isBlamed) paint.fillRect(left - 8, y(row) - 2, 5, 5);
    if (isBlamed || !isCrowded(row)) labelRow(paint, `${rank}`, left - 12, y(row));
  }
}

// What a rank does at a moment, and how it spends the step.
function laneText(run, rank, row, cell, nCells) {
  const own = run.columns["lanes.cells"].subarray(row * nCells, (row + 1) * nCells), counts = [0, 0, 0, 0];
  for (const kind of own) counts[kind]++;
  return [run.locator(rank), run.stageName(rank),
    `${formatUs((cell + 0.5) * run.lanes.cell_us)}: ${t(`lanes.${LANE_KINDS[own[cell]]}`)}`,
    ...[1, 2, 3].map((kind) => t("lanes.share", { part: t(`lanes.${LANE_KINDS[kind]}`), share: `${((100 * counts[kind]) / nCells).toFixed(0)}\u00a0%` })),
  ].filter(Boolean).join("\n");
}

function lanesLegend(run) {
  const legend = el("div", { class: "legend" });
  for (const kind of [1, 2, 3]) legend.append(el("span", {}, el("i", { style: { background: `var(--${LANE_COLOURS[kind]})` } }), t(`lanes.${LANE_KINDS[kind]}`)));
  legend.append(el("span", {}, el("i", { class: "line" }), t("lanes.path")));
  if (run.lanes.path.some(([rank, , , isWork]) => isWork && run.blamed.has(rank))) legend.append(el("span", {}, el("i", { class: "line blamed" }), t("lanes.blamed")));
  return legend;
}
