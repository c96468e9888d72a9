// A grid of cells: who waits for whom, and messages of a pipeline. Rows and columns have names, and both zoom.

// cells: [{row, column, value}] by position; `rows` and `columns` are their names. A cell that is not there stays empty.
function gridWidget(holder, name, { rows, columns, cells, title, axes, format, textOf, open, isMarked }) {
  const at = new Map(cells.map((cell) => [`${cell.row}/${cell.column}`, cell]));
  const draw = () => {
    const down = chosenRange(`${name}-down`, rows.length) ?? [0, rows.length], across = chosenRange(`${name}-across`, columns.length) ?? [0, columns.length];
    const keep = (which, [low, high], from) => choose(`${name}-${which}`, `${from + low}-${from + high}`);
    const scale = scaleFor(cells.map((cell) => cell.value), "value", LEAST_DEVIATION, { value: ["mid", "high-1", "high-2", "high-3"] });
    drawGrid(holder, { down, across, rows, columns, at, scale, title: title(), axes: axes(), textOf, open, isMarked,
      zoom: (x, y) => { keep("across", x, across[0]); keep("down", y, down[0]); draw(); } });
    const isZoomed = down[1] - down[0] < rows.length || across[1] - across[0] < columns.length;
    resetButton(holder, isZoomed, () => { choose(`${name}-down`, null); choose(`${name}-across`, null); draw(); });
    holder.querySelector(".legend")?.remove();
    const legend = scaleLegend(scale, format, ["", ""], t("chart.none"));
    if (rows.some((_, row) => isMarked?.(row))) legend.append(el("span", {}, el("i", { class: "dot" }), t("ranks.marked")));
    holder.append(legend);
    const longest = [...cells].sort((a, b) => b.value - a.value).slice(0, 200);
    asTable(holder, { title: title(), heads: [axes()[1], axes()[0], t("axis.time")], rows: () => longest.map((cell) => [rows[cell.row], columns[cell.column], format(cell.value)]) });
  };
  onRedraw(holder, draw);
}

function drawGrid(holder, { down, across, rows, columns, at, scale, title, axes, textOf, open, isMarked, zoom }) {
  const [nRows, nColumns] = [down[1] - down[0], across[1] - across[0]];
  const left = 78, bottom = 46, width = Math.max(320, holder.clientWidth);
  const pitch = Math.min(64, (width - left) / nColumns), tall = Math.min(26, 560 / nRows);
  const { canvas, paint } = canvasFor(holder, left + nColumns * pitch, Math.ceil(nRows * tall) + bottom, title);
  for (let row = 0; row < nRows; row++) {
    for (let column = 0; column < nColumns; column++) {
      const cell = at.get(`${down[0] + row}/${across[0] + column}`);
      if (!cell) continue;
      paint.fillStyle = css(scale.at(cell.value));
      paint.fillRect(left + column * pitch, row * tall, Math.max(1, pitch - (pitch > 5 ? 1 : 0)), Math.max(1, tall - (tall > 5 ? 1 : 0)));
    }
  }
  paint.strokeStyle = colour("line");
  paint.strokeRect(left - 0.5, 0.5, nColumns * pitch, nRows * tall);
  const plotHeight = nRows * tall;
  labelGrid(paint, { down, across, rows, columns, left, pitch, tall, plotHeight, isMarked });
  axisTitle(paint, axes[0], left + (nColumns * pitch) / 2, plotHeight + bottom - 8);
  axisTitle(paint, axes[1], 12, plotHeight / 2, true);
  const index = (x, y) => [Math.floor((x - left) / pitch), Math.floor(y / tall)].map((one, i) => Math.max(0, Math.min([nColumns, nRows][i] - 1, one)));
  const clamp = (value, n) => Math.max(0, Math.min(n - 1, value));
  pointer(canvas, {
    cellAt: (x, y) => (x < left || y >= plotHeight ? null : index(x, y)),
    textOf: ([column, row]) => textOf(down[0] + row, across[0] + column, at.get(`${down[0] + row}/${across[0] + column}`)),
    move: (cell, dx, dy) => (cell ? [clamp(cell[0] + dx, nColumns), clamp(cell[1] + dy, nRows)] : [0, 0]),
    place: ([column, row]) => [left + (column + 0.5) * pitch, (row + 0.5) * tall],
    click: open && (([column, row]) => open(down[0] + row, across[0] + column)),
  });
  dragRange(canvas, { indexAt: index, choose: zoom, isBoth: true, plot: { left, top: 0, width: nColumns * pitch, height: plotHeight } });
}

function labelGrid(paint, { down, across, rows, columns, left, pitch, tall, plotHeight, isMarked }) {
  const each = Math.max(1, Math.ceil(14 / tall)), n = down[1] - down[0];
  const marked = Array.from({ length: n }, (_, row) => row).filter((row) => isMarked?.(down[0] + row));
  for (let row = 0; row < n; row++) {
    const isNamed = marked.includes(row), y = (row + 0.5) * tall;
    if (!isNamed && (row % each || marked.some((other) => Math.abs(other - row) < each))) continue;
    paint.fillStyle = colour(isNamed ? "mark" : "muted");
    if (isNamed) paint.fillRect(left - 8, y - 2, 5, 5);
    labelRow(paint, `${rows[down[0] + row]}`, left - 12, y);
  }
  labelBars(paint, across[1] - across[0], (i) => `${columns[across[0] + i]}`, left, pitch, plotHeight + 18);
}
