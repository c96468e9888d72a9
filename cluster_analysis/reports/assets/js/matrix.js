// Who talks to whom: hosts first, ranks on demand. Links lie in columns `link.*`, pairs of hosts in `pair.*`.

function linkRows(run) {
  const column = (name) => run.columns[`link.${name}`] ?? [];
  const names = ["src", "dst", "transport", "op", "size", "time", "gbps", "class_gbps", "excess"];
  return { n: column("src").length, ...Object.fromEntries(names.map((name) => [name, column(name)])) };
}

const SIZES = [0, 1e3, 1e5, 1e6, 1e7, 1e8];

function matrixWidget(run) {
  const holder = byId("matrix");
  const choose = Object.fromEntries(["metric", "level", "transport", "op", "size"].map((one) => [one, byId(`matrix-${one}`)]));
  let zoom = null;
  if (run.hosts.length < 2 || run.ranks.length <= 64) choose.level.value = "ranks";
  const draw = () => {
    fillChoice(choose.transport, [["", t("matrix.all")], ...run.transports.map((name, i) => [`${i}`, name])]);
    fillChoice(choose.op, [["", t("matrix.all")], ...run.opTypes.map((name, i) => [`${i}`, name])]);
    fillChoice(choose.size, SIZES.map((size) => [`${size}`, size ? formatBytes(size) : t("matrix.all")]));
    const filter = { transport: choose.transport.value, op: choose.op.value, size: Number(choose.size.value) };
    const byHost = choose.level.value === "hosts" && !zoom;
    const pairs = byHost ? hostPairs(run, filter) : rankPairs(run, filter, zoom);
    drawMatrix(run, holder, pairs, { metric: choose.metric.value, byHost, zoom,
      open: (src, dst) => { zoom = [src, dst]; draw(); }, close: () => { zoom = null; draw(); } });
    drawSlowLinks(run, filter);
  };
  Object.values(choose).forEach((select) => select.addEventListener("change", () => { if (select === choose.level) zoom = null; draw(); }));
  onRedraw(holder, draw);
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
const TRANSPORT_COLOURS = ["compute", "exposed", "bubble", "preparing", "overlapped", "free"];

function drawMatrix(run, holder, { pairs, sources, destinations }, { metric, byHost, zoom, open, close }) {
  holder.querySelectorAll(".legend, .matrix-head, .empty, .binned").forEach((old) => old.remove());
  const head = el("div", { class: "matrix-head" });
  holder.prepend(head);
  if (zoom) head.append(el("button", { type: "button", onclick: close }, `← ${t("matrix.allhosts")}`), t("matrix.zoomed", { src: zoom[0], dst: zoom[1] }));
  if (!pairs.length) {
    holder.querySelector("canvas")?.remove();
    holder.append(el("p", { class: "empty" }, t("matrix.none")));
    return;
  }
  const left = 58, upper = 8, bottom = 44, width = Math.min(760, Math.max(320, holder.clientWidth));
  const pitch = Math.min(40, (width - left) / Math.max(sources.length, destinations.length));
  const height = upper + destinations.length * pitch + bottom;
  const { canvas, paint } = canvasFor(holder, left + sources.length * pitch + 8, height, t("matrix.title"));
  const column = new Map(sources.map((end, i) => [end, i])), row = new Map(destinations.map((end, i) => [end, i]));
  const value = MATRIX_VALUES[metric];
  const scale = value ? scaleFor(pairs.map(value), metric === "excess" ? "deviation" : "value", 0.1) : null;
  // The page's own ground: cells as usual as their class are close to it, and must still be seen in the dark.
  paint.fillStyle = colour("paper");
  paint.fillRect(left, upper, sources.length * pitch, destinations.length * pitch);
  paint.strokeStyle = colour("line");
  paint.strokeRect(left - 0.5, upper - 0.5, sources.length * pitch + 1, destinations.length * pitch + 1);
  const cells = new Map();
  const drawn = Math.max(pitch - (pitch > 5 ? 1 : 0), 1.6);
  for (const pair of pairs) {
    const x = left + column.get(pair.src) * pitch, y = upper + row.get(pair.dst) * pitch;
    const number = value ? value(pair) : 0;
    paint.fillStyle = !value ? colour(TRANSPORT_COLOURS[pair.transport % TRANSPORT_COLOURS.length])
      : Number.isNaN(number) ? colour("missing") : css(scale.at(number));
    paint.fillRect(x, y, drawn, drawn);
    cells.set(`${pair.src}>${pair.dst}`, pair);
  }
  const name = (end) => (byHost ? run.hosts[end] : `${end}`);
  labelMatrix(paint, { sources, destinations, left, upper, pitch, name, height });
  matrixPointer(run, canvas, { cells, sources, destinations, left, upper, pitch, byHost, open });
  legendMatrix(run, holder, scale, metric);
  if (!byHost && linkRows(run).n < run.linksTotal) {
    holder.append(el("p", { class: "note binned" }, t("matrix.cut", { shown: linkRows(run).n, total: run.linksTotal })));
  }
}

function labelMatrix(paint, { sources, destinations, left, upper, pitch, name, height }) {
  paint.fillStyle = colour("muted");
  const each = Math.max(1, Math.ceil(30 / pitch)), eachRow = Math.max(1, Math.ceil(15 / pitch));
  paint.textAlign = "center";
  sources.forEach((end, i) => { if (i % each === 0) paint.fillText(name(end), left + (i + 0.5) * pitch, height - 27); });
  paint.textAlign = "right";
  destinations.forEach((end, i) => { if (i % eachRow === 0) paint.fillText(name(end), left - 8, upper + (i + 0.5) * pitch + 4); });
  paint.textAlign = "left";
  paint.fillText(`${t("matrix.src")} →`, left, height - 8);
  paint.save();
  paint.translate(12, upper + 60);
  paint.rotate(-Math.PI / 2);
  paint.textAlign = "center";
  paint.fillText(`← ${t("matrix.dst")}`, 0, 0);
  paint.restore();
}

function matrixPointer(run, canvas, { cells, sources, destinations, left, upper, pitch, byHost, open }) {
  // Cells of a large matrix are smaller than a pointer: take the nearest one within three pixels.
  const reach = Math.max(0, Math.ceil(3 / pitch) - 1);
  const find = (x, y) => {
    const i = Math.floor((x - left) / pitch), j = Math.floor((y - upper) / pitch);
    for (let away = 0; away <= reach; away++) {
      for (let dx = -away; dx <= away; dx++) for (let dy = -away; dy <= away; dy++) {
        const cell = cells.get(`${sources[i + dx]}>${destinations[j + dy]}`);
        if (cell) return cell;
      }
    }
    return null;
  };
  const ordered = [...cells.values()];
  const name = (end) => (byHost ? run.hostName(run.hosts[end]) : t("rank", { rank: end }));
  pointer(canvas, {
    cellAt: find,
    textOf: (pair) => [`${name(pair.src)} → ${name(pair.dst)}`, run.transports[pair.transport],
      `${t("matrix.bandwidth")} ${formatGbps(pair.gbps)}`, `${t("matrix.size")} ${formatBytes(pair.size)}`, `${t("matrix.time")} ${formatUs(pair.time)}`,
      Number.isNaN(pair.excess) ? "" : `${t("matrix.excess")} ${formatShare(pair.excess)}`].filter(Boolean).join("\n"),
    move: (pair, dx, dy) => ordered[(ordered.indexOf(pair) + dx + dy + ordered.length) % ordered.length],
    place: (pair) => [left + (sources.indexOf(pair.src) + 0.5) * pitch, upper + (destinations.indexOf(pair.dst) + 0.5) * pitch],
    click: byHost ? (pair) => open(run.hosts[pair.src], run.hosts[pair.dst]) : null,
  });
}

function legendMatrix(run, holder, scale, metric) {
  const words = metric === "excess" ? [t("matrix.faster"), t("matrix.slower")] : ["", ""];
  holder.append(scale ? scaleLegend(scale, MATRIX_FORMATS[metric], words)
    : el("div", { class: "legend" }, ...run.transports.map((name, i) =>
      el("span", {}, el("i", { style: { background: colour(TRANSPORT_COLOURS[i % TRANSPORT_COLOURS.length]) } }), name))));
}

function drawSlowLinks(run, filter) {
  const link = linkRows(run), rows = [];
  for (let i = 0; i < link.n; i++) {
    if (link.excess[i] > 0 && passes(filter, link.transport[i], link.op[i], link.size[i])) rows.push(i);
  }
  rows.sort((a, b) => link.excess[b] - link.excess[a]);
  sortableTable(byId("links"), {
    rows: rows.slice(0, 200), shown: 8, empty: t("matrix.none"),
    columns: [
      { name: `${t("matrix.src")} → ${t("matrix.dst")}`, value: (i) => link.src[i], cell: (i) => `${link.src[i]} → ${link.dst[i]}` },
      { name: t("matrix.transport"), value: (i) => run.transports[link.transport[i]] },
      { name: t("matrix.op"), value: (i) => run.opTypes[link.op[i]] },
      { name: t("matrix.bandwidth"), value: (i) => link.gbps[i], cell: (i) => `${formatGbps(link.gbps[i])} (${t("matrix.class", { gbps: formatGbps(link.class_gbps[i]) })})`, isNumber: true },
      { name: t("matrix.size"), value: (i) => link.size[i], cell: (i) => formatBytes(link.size[i]), isNumber: true },
      { name: t("matrix.excess"), value: (i) => link.excess[i], cell: (i) => formatShare(link.excess[i]), isNumber: true },
    ],
  });
}
