// What a finding opens: its ranks among their peers, step by step, and the groups that waited for it.

// The page's metric for the first piece of evidence that the tables can show.
function metricOf(run, finding) {
  for (const { metric } of finding.evidence) {
    const bare = metric.replace(/_(us|ms)$/, "");
    const name = run.metricNames[bare] ?? bare;
    if (run.metrics[name]) return name;
  }
  const byCause = { compute: "computing", dispatch: "gap", input: "preparing" };
  return [byCause[finding.cause], "gap", "computing"].find((name) => name && run.metrics[name]) ?? null;
}

function openFinding(run, details) {
  const finding = run.document.findings[Number(details.dataset.finding)];
  const [drawn, waited] = [".drawn", ".waited"].map((name) => details.querySelector(name));
  const draw = () => {
    const figures = el("div", { class: "figures" });
    drawn.replaceChildren(figures);
    waited.replaceChildren();
    if (finding.links.length) linkFigures(run, finding, figures);
    else if (finding.ranks.length) rankFigures(run, finding, figures);
    waitedFigure(run, finding, waited);
  };
  if (!details.widget) {
    details.widget = true;
    state.redraws.push({ element: details, draw: () => { if (details.open) draw(); } });
  }
  draw();
  details.dataset.drawn = "yes";
}

// Which findings are open is part of the address; `#finding-…` opens one, too.
function keepOpenFindings(run) {
  const all = [...document.querySelectorAll("details.finding")], id = (details) => details.id.replace(/^finding-/, "");
  const named = () => new Set((chosen("open") ?? "").split(",").filter(Boolean));
  for (const details of all) {
    details.addEventListener("toggle", () => {
      if (details.open) openFinding(run, details);
      const open = named();
      if (open.has(id(details)) === details.open) return;
      open[details.open ? "add" : "delete"](id(details));
      if (!details.open && address.anchor === details.id) address.anchor = "";
      if (!state.isPrinting) choose("open", [...open].join(","));
    });
  }
  address.appliers.push(() => {
    const open = named();
    for (const details of all) {
      const isOpen = open.has(id(details)) || address.anchor === details.id;
      if (details.open !== isOpen) details.open = isOpen;
      // The browser tells of it later; the page must have its height now.
      if (isOpen && !details.dataset.drawn) openFinding(run, details);
    }
  });
}

function figure(parent, title) {
  const holder = el("div", { class: "chart" });
  parent.append(el("figure", {}, el("figcaption", {}, title), holder));
  return holder;
}

function rankFigures(run, finding, figures) {
  const metric = metricOf(run, finding);
  if (!metric) return;
  const named = new Set(finding.ranks);
  const name = metricName(metric);
  const holder = figure(figures, t("finding.among", { metric: name }));
  // Both figures first: the width of each depends on how many there are.
  const bySteps = run.nBins > 1 ? figure(figures, t("finding.bystep", { metric: name })) : null;
  const dots = comparedRanks(run, finding).map((rank) => ({
    value: run.value(metric, rank), label: run.locator(rank), short: t("rank", { rank }), rank, isNamed: named.has(rank),
  }));
  drawStrip(holder, { dots, format: formatUs, label: t("finding.among", { metric: name }), open: ({ rank }) => showPanel("rank", rank) });
  holder.parentElement.append(stripLegend());
  if (bySteps) drawSteps(run, finding, metric, bySteps);
}

// The stages of the finding's ranks; all ranks where the finding names whole stages (uneven stages).
function comparedRanks(run, finding) {
  const named = new Set(finding.ranks);
  const stages = new Set(finding.ranks.map((rank) => run.stage(rank)));
  const ranks = run.ranks.filter((rank) => named.has(rank) || stages.has(run.stage(rank)));
  return ranks.every((rank) => named.has(rank)) ? run.ranks : ranks;
}

function stripLegend() {
  return el("div", { class: "legend" },
    el("span", {}, el("i", { style: { background: colour("mark"), borderRadius: "50%" } }), t("finding.this")),
    el("span", {}, el("i", { style: { background: colour("compute"), borderRadius: "50%" } }), t("finding.peerdot")),
    el("span", {}, el("i", { class: "line dashed" }), t("finding.medianline")),
    el("span", {}, el("i", { class: "band" }), t("finding.band")));
}

// Lines by step with uPlot: the mean of the finding's ranks, and the peers' median with the middle 80 %.
function drawSteps(run, finding, metric, holder) {
  const read = finding.ranks.filter((rank) => run.row.has(rank));
  const named = new Set(finding.ranks);
  const peers = comparedRanks(run, finding).filter((rank) => !named.has(rank));
  const bins = run.bins.map((_, bin) => bin);
  const ofPeers = bins.map((bin) => sorted(peers.map((rank) => run.value(metric, rank, bin))));
  const ms = (value) => (Number.isNaN(value) ? null : value / 1000);
  const mean = (bin) => {
    const values = sorted(read.map((rank) => run.value(metric, rank, bin)));
    return ms(values.reduce((sum, value) => sum + value, 0) / values.length);
  };
  const data = [
    run.bins.map((steps) => steps[0]), bins.map(mean),
    ...[0.5, 0.1, 0.9].map((share) => ofPeers.map((values) => ms(quantile(values, share)))),
  ];
  stepChart(holder, data, read.length === 1 ? t("rank", { rank: read[0] }) : t("finding.this"));
}

function stepChart(holder, data, name, bin = -1) {
  const axis = { stroke: () => colour("muted"), grid: { stroke: () => colour("line"), width: 1 }, ticks: { show: false } };
  // Where the pointer is on no step (index null) the legend tells the chosen step, or the mean of all.
  const mean = (values) => { const known = values.filter((one) => one !== null); return known.reduce((sum, one) => sum + one, 0) / known.length; };
  const shown = (index) => index ?? (bin >= 0 ? bin : null);
  const at = (plot, series, index) => (shown(index) === null ? mean(plot.data[series]) : plot.data[series][shown(index)] ?? NaN);
  const written = (plot, _, series, index) => formatMs(at(plot, series, index));
  const band = (plot, _, series, index) => `${formatMs(at(plot, series, index))} – ${formatMs(at(plot, series + 1, index))}`;
  holder.replaceChildren();
  const plot = new uPlot({
    width: Math.max(280, Math.min(640, holder.clientWidth || 480)), height: 188,
    scales: { x: { time: false } },
    hooks: { draw: [(plot) => markStep(plot, bin)] },
    cursor: { y: false, points: { size: 6 } },
    axes: [{ ...axis, size: 26, label: t("axis.step"), labelSize: 20, labelGap: 0, labelFont: "12px sans-serif", font: "12px sans-serif", incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000] },
           { ...axis, size: 64, values: (_, values) => values.map((value) => formatMs(value)) }],
    bands: data.length > 2 ? [{ series: [4, 3], fill: () => `${colour("overlapped")}44` }] : [],
    legend: { show: true, live: true, markers: { width: 0, fill: (_, i) => colour([null, "mark", "compute", "overlapped", "overlapped"][i] ?? "line") } },
    series: [
      { label: t("axis.step"), value: (plot, value, _, index) => (shown(index) === null ? t("ranks.allsteps") : `${plot.data[0][shown(index)]}`) },
      { label: name, stroke: () => colour("mark"), width: 2, value: written, points: { show: data[0].length < 40, size: 5 } },
      { label: t("finding.medianline"), stroke: () => colour("compute"), width: 2, value: written, points: { show: false } },
      { label: t("finding.band"), stroke: () => colour("overlapped"), width: 1, value: band, points: { show: false } },
      { label: "", stroke: () => colour("overlapped"), width: 1, value: written, points: { show: false } },
    ].slice(0, data.length),
  }, data, holder);
  plot.batch(() => {});  // Drawn now: Firefox prints what stands there when its listeners return.
  return plot;
}

function markStep(plot, bin) {
  if (bin < 0) return;
  const x = plot.valToPos(plot.data[0][bin], "x", true), { ctx, bbox } = plot;
  ctx.save();
  ctx.strokeStyle = colour("ink");
  ctx.setLineDash([4, 4]);
  line(ctx, x, bbox.top, x, bbox.top + bbox.height);
  ctx.restore();
}

// Bandwidth of the link among the links of its transport and kind of operator.
function linkFigures(run, finding, figures) {
  const link = linkRows(run);
  const isThis = new Set(finding.links.map(({ src, dst }) => `${src}>${dst}`));
  const classes = new Map();
  for (let i = 0; i < link.n; i++) {
    if (isThis.has(`${link.src[i]}>${link.dst[i]}`)) {
      const key = `${link.transport[i]}/${link.op[i]}`;
      classes.set(key, (classes.get(key) ?? 0) + link.time[i]);
    }
  }
  const longest = [...classes].sort((a, b) => b[1] - a[1]).slice(0, 2);
  const holders = longest.map(([key]) => {
    const [transport, op] = key.split("/").map(Number);
    const title = t("finding.linkclass", { transport: run.transports[transport], op: run.opTypes[op] });
    return { transport, op, title, holder: figure(figures, title) };
  });
  for (const { transport, op, title, holder } of holders) {
    const dots = [];
    for (let i = 0; i < link.n; i++) {
      if (link.transport[i] !== transport || link.op[i] !== op) continue;
      dots.push({ value: link.gbps[i], label: `${run.locator(link.src[i])} → ${run.locator(link.dst[i])}`, short: `${link.src[i]} → ${link.dst[i]}`, link: `${link.src[i]}>${link.dst[i]}`, isNamed: isThis.has(`${link.src[i]}>${link.dst[i]}`) });
    }
    drawStrip(holder, { dots, format: formatGbps, label: title, open: (dot) => showPanel("link", dot.link) });
    holder.parentElement.append(stripLegend());
  }
}

// From the finding's ranks to the groups that waited for it, and on to those that waited for their ranks.
function waitedFigure(run, finding, holder) {
  const rows = run.chains[finding.id] ?? [];
  if (!rows.length) return;
  const most = Math.max(...rows.map((row) => row.wait_us));
  const body = rows.map((row) => el("tr", {},
    el("td", { class: `level-${row.level}` }, groupName(run.groupById.get(row.group), row.group)),
    el("td", {}, t("chain.for", { rank: row.last_rank })),
    el("td", { class: "n" }, formatUs(row.wait_us)),
    el("td", { class: "wide" }, inlineBar([[row.wait_us, "exposed"]], most))));
  // Where the detector tells the chain in words, the groups one by one are for doubters.
  holder.append(el("details", { class: "groups-waited", open: finding.chain.length ? null : "" },
    el("summary", {}, t("finding.waited")), el("p", { class: "note" }, t("finding.waited.note")),
    el("div", { class: "table cards" }, el("table", { class: "waiting" }, el("tbody", {}, ...body)))));
}

function groupName(group, id) {
  if (!group) return id;
  const role = group.role && group.role !== "unknown" ? group.role.toUpperCase() : group.name || id.slice(-6);
  return group.ranks.length ? `${role} · ${t("ranks", { ranks: strided(group.ranks) })}` : role;
}
