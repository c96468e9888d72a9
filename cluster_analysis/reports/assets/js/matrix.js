// Communication matrix: hosts first, ranks on demand. Links lie in columns `link.*`, pairs of hosts in `pair.*`.

function linkRows(run) {
  const column = (name) => run.columns[`link.${name}`] ?? [];
  const names = ["src", "dst", "transport", "op", "size", "time", "gbps", "class_gbps", "excess"];
  return { n: column("src").length, ...Object.fromEntries(names.map((name) => [name, column(name)])) };
}

const SIZES = [0, 1e3, 1e5, 1e6, 1e7, 1e8];

function matrixWidget(run) {
  const holder = byId("matrix");
  const select = Object.fromEntries(["metric", "level", "transport", "op", "size"].map((one) => [one, byId(`matrix-${one}`)]));
  const draw = () => {
    fillChoice(select.metric);
    fillChoice(select.level, null, run.hosts.length < 2 || run.ranks.length <= 64 ? "ranks" : "hosts");
    fillChoice(select.transport, [["", t("matrix.all")], ...run.transports.map((name, i) => [`${i}`, name])]);
    fillChoice(select.op, [["", t("matrix.all")], ...run.opTypes.map((name, i) => [`${i}`, name])]);
    fillChoice(select.size, SIZES.map((size) => [`${size}`, size ? formatBytes(size) : t("matrix.all")]));
    const filter = { transport: select.transport.value, op: select.op.value, size: Number(select.size.value) };
    const pair = chosenPair(run), byHost = select.level.value === "hosts" && !pair;
    const found = byHost ? hostPairs(run, filter) : rankPairs(run, filter, pair);
    const across = chosenRange("matrix-across", found.sources.length), down = chosenRange("matrix-down", found.destinations.length);
    const zoom = (name, from, [low, high]) => choose(name, `${from + low}-${from + high}`);
    drawMatrix(run, holder, zoomed(found, across, down), {
      metric: select.metric.value, byHost, pair, isZoomed: Boolean(across || down),
      open: (src, dst) => { forgetZoom(); choose("matrix-pair", `${src}>${dst}`, true); draw(); },
      close: () => { forgetZoom(); choose("matrix-pair", null); draw(); },
      zoom: (x, y) => { zoom("matrix-across", across?.[0] ?? 0, x); zoom("matrix-down", down?.[0] ?? 0, y); draw(); },
      reset: () => { forgetZoom(); draw(); },
    });
    drawSlowLinks(run, filter);
  };
  const changed = ({ target }) => { if (target === select.level) { forgetZoom(); choose("matrix-pair", null); } draw(); };
  Object.values(select).forEach((one) => one.addEventListener("change", changed));
  onRedraw(holder, draw);
}

function forgetZoom() { choose("matrix-across", null); choose("matrix-down", null); }

// The hosts whose ranks are shown alone: `1>2`.
function chosenPair(run) {
  const ends = (chosen("matrix-pair") ?? "").split(">");
  return ends.length === 2 && ends.every((host) => run.hosts.includes(host)) ? ends : null;
}

function zoomed({ pairs, sources, destinations }, across, down) {
  const [from, to] = [across ? sources.slice(...across) : sources, down ? destinations.slice(...down) : destinations];
  const [left, right] = [new Set(from), new Set(to)];
  return { pairs: pairs.filter((pair) => left.has(pair.src) && right.has(pair.dst)), sources: from, destinations: to };
}

const passes = (filter, transport, op, size) =>
  (filter.transport === "" || transport === Number(filter.transport)) && (filter.op === "" || op === Number(filter.op)) && size >= filter.size;

// Sum links that join the same two ends. → {pairs: [{src, dst, size, time, gbps, excess, transport}], ends}
function summed(rows) {
  const pairs = new Map();
  for (const row of rows) {
    const key = `${row.src}>${row.dst}`;
    const pair = pairs.get(key) ?? { src: row.src, dst: row.dst, size: 0, time: 0, excess: NaN, most: -1, transport: 0 };
    pair.size += row.size;
    pair.time += row.time;
    if (!(row.excess <= pair.excess) && !Number.isNaN(row.excess)) pair.excess = row.excess;
    if (row.size > pair.most) { pair.most = row.size; pair.transport = row.transport; }
    pairs.set(key, pair);
  }
  for (const pair of pairs.values()) pair.gbps = pair.time > 0 ? pair.size / pair.time / 1000 : NaN;
  return [...pairs.values()];
}

function hostPairs(run, filter) {
  const column = (name) => run.columns[`pair.${name}`] ?? [];
  const rows = [];
  for (let i = 0; i < column("src").length; i++) {
    const [transport, op, size] = [column("transport")[i], column("op")[i], column("size")[i]];
    if (passes(filter, transport, op, size)) {
      rows.push({ src: column("src")[i], dst: column("dst")[i], transport, size, time: column("time")[i], excess: column("excess")[i] });
    }
  }
  return { pairs: summed(rows), sources: run.hosts.map((_, i) => i), destinations: run.hosts.map((_, i) => i) };
}

function rankPairs(run, filter, zoom) {
  const link = linkRows(run), rows = [];
  const hostOf = (rank) => run.places.get(rank)?.host;
  for (let i = 0; i < link.n; i++) {
    if (!passes(filter, link.transport[i], link.op[i], link.size[i])) continue;
    if (zoom && (hostOf(link.src[i]) !== zoom[0] || hostOf(link.dst[i]) !== zoom[1])) continue;
    rows.push({ src: link.src[i], dst: link.dst[i], transport: link.transport[i], size: link.size[i], time: link.time[i], excess: link.excess[i] });
  }
  const of = (host) => run.ranks.filter((rank) => hostOf(rank) === host);
  return { pairs: summed(rows), sources: zoom ? of(zoom[0]) : run.ranks, destinations: zoom ? of(zoom[1]) : run.ranks };
}

const MATRIX_FORMATS = { excess: formatShare, bandwidth: formatGbps, time: formatUs, size: formatBytes };
const MATRIX_VALUES = { excess: (pair) => pair.excess, bandwidth: (pair) => pair.gbps, time: (pair) => pair.time, size: (pair) => pair.size };
// Cells stand alone on an empty ground: what is as usual must be seen, too.
const MATRIX_STOPS = { deviation: ["low-3", "low-2", "usual", "high-2", "high-3"], value: ["usual", "low-2", "low-3"] };
const TRANSPORT_COLOURS = ["compute", "exposed", "bubble", "preparing", "overlapped", "free"];

function drawMatrix(run, holder, { pairs, sources, destinations }, { metric, byHost, pair, isZoomed, open, close, zoom, reset }) {
  holder.querySelectorAll(".legend, .matrix-head, .empty, .binned").forEach((old) => old.remove());
  const head = el("div", { class: "matrix-head" });
  holder.prepend(head);
  if (pair) head.append(el("button", { type: "button", onclick: close }, `← ${t("matrix.allhosts")}`), t("matrix.zoomed", { src: pair[0], dst: pair[1] }));
  if (isZoomed) head.append(el("button", { type: "button", class: "unzoom", onclick: reset }, t("zoom.reset")));
  if (!pairs.length) {
    holder.querySelector("canvas")?.remove();
    holder.append(el("p", { class: "empty" }, t("matrix.none")));
    return;
  }
  const left = 58, upper = 8, bottom = 44, width = Math.min(760, Math.max(300, holder.clientWidth));
  const pitch = Math.min(40, (width - left - 8) / Math.max(sources.length, destinations.length));
  const height = upper + destinations.length * pitch + bottom;
  const { canvas, paint } = canvasFor(holder, left + sources.length * pitch + 8, height, t("matrix.title"));
  const value = MATRIX_VALUES[metric];
  const scale = value ? scaleFor(pairs.map(value), metric === "excess" ? "deviation" : "value", 0.1, MATRIX_STOPS) : null;
  const frame = { sources, destinations, left, upper, pitch, height };
  paint.fillStyle = colour("surface");
  paint.fillRect(left, upper, sources.length * pitch, destinations.length * pitch);
  paint.strokeStyle = colour("line");
  paint.strokeRect(left - 0.5, upper - 0.5, sources.length * pitch + 1, destinations.length * pitch + 1);
  const cells = paintCells(paint, pairs, frame, (one) => {
    if (!value) return colour(TRANSPORT_COLOURS[one.transport % TRANSPORT_COLOURS.length]);
    return Number.isNaN(value(one)) ? null : css(scale.at(value(one)));
  });
  const isMarked = markCells(run, paint, cells, frame, byHost);
  labelMatrix(paint, { ...frame, name: (end) => (byHost ? run.hosts[end] : `${end}`) });
  matrixPointer(run, canvas, { cells, ...frame, byHost, open });
  const index = (x, y) => [Math.floor((x - left) / pitch), Math.floor((y - upper) / pitch)].map((one, i) => Math.max(0, Math.min([sources, destinations][i].length - 1, one)));
  dragRange(canvas, { indexAt: index, choose: zoom, isBoth: true, plot: { left, top: upper, width: sources.length * pitch, height: destinations.length * pitch } });
  legendMatrix(run, holder, { scale, metric, isMarked });
  if (!byHost && linkRows(run).n < run.linksTotal) {
    holder.append(el("p", { class: "note binned" }, t("matrix.cut", { shown: linkRows(run).n, total: run.linksTotal })));
  }
}

// → "src>dst" → {pair, x, y, size}
function paintCells(paint, pairs, { sources, destinations, left, upper, pitch }, fill) {
  const column = new Map(sources.map((end, i) => [end, i])), row = new Map(destinations.map((end, i) => [end, i]));
  const cells = new Map(), size = Math.max(pitch - (pitch > 5 ? 1 : 0), 1.6);
  for (const pair of pairs) {
    const x = left + column.get(pair.src) * pitch, y = upper + row.get(pair.dst) * pitch, filled = fill(pair);
    if (filled === null) hollowCell(paint, x, y, size, size);
    else { paint.fillStyle = filled; paint.fillRect(x, y, size, size); }
    cells.set(`${pair.src}>${pair.dst}`, { pair, x, y, size });
  }
  return cells;
}

// A ring around what a finding names: the link, or the pair of hosts that it joins.
function markCells(run, paint, cells, { pitch }, byHost) {
  const host = (rank) => run.hosts.indexOf(run.places.get(rank)?.host);
  const marked = new Set([...run.markedLinks].map((link) => (byHost ? link.split(">").map((rank) => host(Number(rank))).join(">") : link)));
  let n = 0;
  paint.strokeStyle = colour("ink");
  paint.lineWidth = 2;
  for (const key of marked) {
    const cell = cells.get(key);
    if (!cell) continue;
    const wide = Math.max(pitch, 9), out = (wide - pitch) / 2 + 1;
    paint.strokeRect(cell.x - out, cell.y - out, wide + 1, wide + 1);
    n++;
  }
  paint.lineWidth = 1;
  return n > 0;
}

function labelMatrix(paint, { sources, destinations, left, upper, pitch, name, height }) {
  paint.fillStyle = colour("muted");
  const each = Math.max(1, Math.ceil(30 / pitch)), eachRow = Math.max(1, Math.ceil(15 / pitch));
  paint.textAlign = "center";
  sources.forEach((end, i) => { if (i % each === 0) paint.fillText(name(end), left + (i + 0.5) * pitch, height - 27); });
  destinations.forEach((end, i) => { if (i % eachRow === 0) labelRow(paint, name(end), left - 8, upper + (i + 0.5) * pitch); });
  paint.textAlign = "left";
  paint.fillText(`${t("matrix.src")} →`, left, height - 8);
  axisTitle(paint, `← ${t("matrix.dst")}`, 12, upper + 60, true);
}

function matrixPointer(run, canvas, { cells, sources, destinations, left, upper, pitch, byHost, open }) {
  // Cells of a large matrix are smaller than a pointer: take the nearest one within three pixels.
  const reach = Math.max(0, Math.ceil(3 / pitch) - 1);
  const find = (x, y) => {
    const i = Math.floor((x - left) / pitch), j = Math.floor((y - upper) / pitch);
    for (let away = 0; away <= reach; away++) {
      for (let dx = -away; dx <= away; dx++) for (let dy = -away; dy <= away; dy++) {
        const cell = cells.get(`${sources[i + dx]}>${destinations[j + dy]}`);
        if (cell) return cell.pair;
      }
    }
    return null;
  };
  const ordered = [...cells.values()].map((cell) => cell.pair);
  const name = (end) => (byHost ? run.hostName(run.hosts[end]) : run.locator(end));
  pointer(canvas, {
    cellAt: find,
    textOf: (pair) => [`${name(pair.src)} → ${name(pair.dst)}`, run.transports[pair.transport],
      `${t("matrix.bandwidth")} ${formatGbps(pair.gbps)}`, `${t("matrix.size")} ${formatBytes(pair.size)}`, `${t("matrix.time")} ${formatUs(pair.time)}`,
      Number.isNaN(pair.excess) ? "" : `${t("matrix.excess")} ${formatShare(pair.excess)}`].filter(Boolean).join("\n"),
    move: (pair, dx, dy) => ordered[(ordered.indexOf(pair) + dx + dy + ordered.length) % ordered.length],
    place: (pair) => [left + (sources.indexOf(pair.src) + 0.5) * pitch, upper + (destinations.indexOf(pair.dst) + 0.5) * pitch],
    click: (pair) => (byHost ? open(run.hosts[pair.src], run.hosts[pair.dst]) : showPanel("link", `${pair.src}>${pair.dst}`)),
  });
}

function legendMatrix(run, holder, { scale, metric, isMarked }) {
  const words = metric === "excess" ? [t("matrix.faster"), t("matrix.slower")] : ["", ""];
  const legend = scale ? scaleLegend(scale, MATRIX_FORMATS[metric], words, t(metric === "excess" ? "matrix.notcompared" : "heat.missing"))
    : el("div", { class: "legend" }, ...run.transports.map((name, i) =>
      el("span", {}, el("i", { style: { background: colour(TRANSPORT_COLOURS[i % TRANSPORT_COLOURS.length]) } }), name)));
  legend.append(el("span", {}, el("i", { class: "ground" }), t("matrix.nolink")));
  if (isMarked) legend.append(el("span", {}, el("i", { class: "ring" }), t("ranks.marked")));
  holder.append(legend);
}

function drawSlowLinks(run, filter) {
  const link = linkRows(run), rows = [];
  for (let i = 0; i < link.n; i++) {
    if (link.excess[i] > 0 && passes(filter, link.transport[i], link.op[i], link.size[i])) rows.push(i);
  }
  rows.sort((a, b) => link.excess[b] - link.excess[a]);
  sortableTable(byId("links"), {
    rows: rows.slice(0, 200), shown: 8, empty: t("matrix.none"),
    open: (i) => showPanel("link", `${link.src[i]}>${link.dst[i]}`),
    columns: [
      { name: `${t("matrix.src")} → ${t("matrix.dst")}`, value: (i) => link.src[i], cell: (i) => `${run.locator(link.src[i])} → ${run.locator(link.dst[i])}` },
      { name: t("matrix.transport"), value: (i) => run.transports[link.transport[i]] },
      { name: t("matrix.op"), value: (i) => run.opTypes[link.op[i]] },
      { name: t("matrix.bandwidth"), value: (i) => link.gbps[i], cell: (i) => `${formatGbps(link.gbps[i])}${bracketed(t("matrix.class", { gbps: formatGbps(link.class_gbps[i]) }))}`, isNumber: true },
      { name: t("matrix.size"), value: (i) => link.size[i], cell: (i) => formatBytes(link.size[i]), isNumber: true },
      { name: t("matrix.excess"), value: (i) => link.excess[i], cell: (i) => formatShare(link.excess[i]), isNumber: true },
    ],
  });
}
