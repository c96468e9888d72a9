// One rank: where it is, its times by step against its peers, its groups, who waits for it, its links, kernels and memory.

const MAX_ROWS = 8;

function rankPanel(run, id) {
  const rank = Number(id);
  if (id === "" || !(run.places.has(rank) || run.row.has(rank))) return null;
  const step = chosen("step"), bin = step === null ? -1 : run.bin(Number(step));
  const metrics = metricOptions(run), metric = el("select", { id: "panel-metric", "aria-label": t("heat.metric") });
  const steps = el("select", { id: "panel-step", "data-name": "step", "aria-label": t("axis.step") });
  fillChoice(metric, metrics, presetMetric(run));
  fillChoice(steps, [["", t("ranks.allsteps")], ...run.bins.map((all, i) => [`${all[0]}`, run.binName(i)])]);
  [metric, steps].forEach((select) => select.addEventListener("change", () => drawPanel()));
  const holder = el("div", { class: "chart" });
  const isMeasured = run.row.has(rank) && metrics.length > 0;
  return { title: run.locator(rank), parts: [
    el("p", { class: "note" }, [run.stageName(rank), parallelPlace(run, rank)].filter(Boolean).join(" · ")),
    findingsPart(run.findingsOf(rank)),
    isMeasured ? el("section", {}, el("h3", {}, t("panel.bystep")),
      el("div", { class: "controls" }, el("label", { class: "choice" }, t("heat.metric"), metric), el("label", { class: "choice" }, t("ranks.step"), steps)),
      run.nBins > 1 ? holder : null, partsTable(run, rank, bin)) : el("p", { class: "empty" }, t("heat.missing")),
    groupsPart(run, rank), linksPart(run, rank), kernelsPart(run, rank), memoryPart(run, rank)],
    after: () => { if (isMeasured && run.nBins > 1) rankSteps(run, rank, metric.value, bin, holder); } };
}

function parallelPlace(run, rank) {
  const place = run.places.get(rank);
  return place && place.tp !== null && place.dp !== null && place.tp !== undefined ? `TP ${place.tp} · DP ${place.dp}` : "";
}

function partsTable(run, rank, bin) {
  const metrics = ["total", ...PARTS, "wait", "transfer", "gap"].filter((one) => run.metrics[one] && !Number.isNaN(run.value(one, rank, bin)));
  const beside = (metric) => [formatUs(run.peerMedian(metric, rank, bin)),
    el("span", { class: isFar(run, metric, rank, bin) ? "is-far" : null }, besidePeers(run.value(metric, rank, bin), run.peerMedian(metric, rank, bin)))];
  return plainTable([bin < 0 ? t("panel.mean") : run.stepsText(bin), t("panel.this"), ...besideHeads(run, rank)],
    metrics.map((metric) => [metricName(metric), formatUs(run.value(metric, rank, bin)), ...(hasPeers(run, rank) ? beside(metric) : [])]));
}

// A rank alone is its own median: nothing stands beside it.
const hasPeers = (run, rank) => run.peers(rank).length > 1;
const besideHeads = (run, rank) => (hasPeers(run, rank) ? [t("finding.medianline"), t("panel.beside")] : []);

// What a rank does itself; its waiting is what others make it wait.
// Far is what step_time.py calls far, on a page that is not healthy.
const OWN_METRICS = ["total", "compute_only", "overlapped", "free", "preparing", "gap"];
function isFar(run, metric, rank, bin) {
  const middle = run.peerMedian(metric, rank, bin), more = run.value(metric, rank, bin) - middle;
  return run.document.verdict !== "healthy" && OWN_METRICS.includes(metric) && more > run.limits.far_of_part * middle
    && more > run.limits.far_of_step * run.peerMedian("total", rank, bin);
}

const besidePeers = (value, middle) => (middle > 0 ? formatShare(value / middle - 1) : "–");

function rankSteps(run, rank, metric, bin, holder) {
  const peers = run.peers(rank).filter((one) => one !== rank), bins = run.bins.map((_, i) => i);
  const ms = (value) => (Number.isNaN(value) ? null : value / 1000);
  const ofPeers = bins.map((one) => sorted(peers.map((peer) => run.value(metric, peer, one))));
  const data = [run.bins.map((steps) => steps[0]), bins.map((one) => ms(run.value(metric, rank, one))),
    ...(peers.length ? [0.5, 0.1, 0.9] : []).map((share) => ofPeers.map((values) => ms(quantile(values, share))))];
  stepChart(holder, data, t("rank", { rank }), bin);
}

function groupsPart(run, rank) {
  const groups = run.groups.filter((group) => group.ranks.includes(rank));
  if (!groups.length) return null;
  const waits = new Map(run.waits.filter((one) => one.rank === rank).map((one) => [one.group, one.us]));
  groups.sort((a, b) => (waits.get(b.group) ?? 0) - (waits.get(a.group) ?? 0));
  return panelPart(t("panel.groups"), plainTable([t("groups.group"), t("panel.waitforit"), t("panel.waitsinall")],
    groups.slice(0, MAX_ROWS).map((group) => [opens(groupName(group, group.group), "group", group.group), formatUs(waits.get(group.group) ?? 0), formatUs(group.wait_us)])));
}

function linksPart(run, rank) {
  const link = linkRows(run), rows = [];
  for (let i = 0; i < link.n; i++) if (link.src[i] === rank || link.dst[i] === rank) rows.push(i);
  if (!rows.length) return null;
  const key = (i) => (Number.isNaN(link.excess[i]) ? -1 : link.excess[i]);
  rows.sort((a, b) => key(b) - key(a));
  return panelPart(t("panel.links"), plainTable([`${t("matrix.src")} → ${t("matrix.dst")}`, t("matrix.bandwidth"), t("matrix.excess")],
    rows.slice(0, MAX_ROWS).map((i) => [opens(`${link.src[i]} → ${link.dst[i]} · ${run.transports[link.transport[i]]} · ${run.opTypes[link.op[i]]}`, "link", `${link.src[i]}>${link.dst[i]}`),
      formatGbps(link.gbps[i]), Number.isNaN(link.excess[i]) ? "–" : formatShare(link.excess[i])])));
}

function kernelsPart(run, rank) {
  const kinds = run.kernelKinds.map((kind, number) => [kind, number, run.kernel(rank, number)]).filter(([, , us]) => us > 0);
  if (!kinds.length) return null;
  kinds.sort((a, b) => b[2] - a[2]);
  return panelPart(t("panel.kernels"), plainTable([t("ops.op"), t("panel.astep"), ...besideHeads(run, rank).slice(1)],
    kinds.slice(0, MAX_ROWS).map(([kind, number, us]) => [opens(kind, "operator", kind), formatUs(us), ...(hasPeers(run, rank) ? [besideKernel(run, rank, number)] : [])])));
}

function besideKernel(run, rank, number) {
  const middle = median(run.peers(rank).map((one) => run.kernel(one, number)));
  return besidePeers(run.kernel(rank, number), middle);
}

// Peaks by component; what its peers have stands beside what it holds.
function memoryPart(run, rank) {
  const of = (name) => run.columns[`memory.${name}`] ?? [], rows = [];
  for (let i = 0; i < of("rank").length; i++) if (of("rank")[i] === rank) rows.push(i);
  if (!rows.length) return null;
  // What is reserved is what the device must hold; some files know only what is allocated of it.
  const peak = (i) => (Number.isNaN(of("reserved")[i]) ? "allocated" : "reserved");
  rows.sort((a, b) => zero(of(peak(b))[b]) - zero(of(peak(a))[a]));
  const shown = (name, i) => (Number.isNaN(of(name)[i]) ? "–" : formatBytes(of(name)[i]));
  return panelPart(t("panel.memory"), plainTable([t("panel.component"), t("panel.peak"), ...besideHeads(run, rank).slice(0, 1), t("panel.capacity")],
    rows.slice(0, MAX_ROWS).map((i) => [run.memoryComponents[of("component")[i]], shown(peak(i), i), ...(hasPeers(run, rank) ? ["peers_median", "capacity"] : ["capacity"]).map((name) => shown(name, i))])));
}
