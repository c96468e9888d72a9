// The panel beside the page: one rank, host, link, group or operator, and what is known of it.

// kind → (run, id) → {title, parts: elements} or null where nothing of that name is known.
const PANELS = { rank: rankPanel, host: hostPanel, link: linkPanel, group: groupPanel, operator: operatorPanel };

function showPanel(kind, id, step = null) {
  if (kind === "rank") choose("step", step);
  choose("show", `${kind}:${id}`, true);
  drawPanel(true);
}

function closePanel() {
  choose("step", null);
  choose("show", null);
  drawPanel();
  focusAgain(panelState.opener);
}

// Give back the focus: a table that was drawn anew has the same row, but another element.
function focusAgain(opener) {
  const { opens } = opener?.dataset ?? {};
  const same = opener?.isConnected ? opener : opens ? document.querySelector(`main [data-opens="${CSS.escape(opens)}"]`) : null;
  same?.focus({ preventScroll: true });
}

const panelState = { run: null, opener: null };

function panelWidget(run) {
  panelState.run = run;
  onRedraw(byId("panel"), () => drawPanel());
  document.addEventListener("keydown", (event) => { if (event.key === "Escape" && !byId("panel").hidden && !event.defaultPrevented) closePanel(); });
}

const mainWidth = () => document.querySelector("main").clientWidth;

function drawPanel(isNew = false) {
  const run = panelState.run, panel = byId("panel"), [kind, ...rest] = (chosen("show") ?? "").split(":");
  const found = PANELS[kind]?.(run, rest.join(":")) ?? null;
  tip("");
  const wide = mainWidth();
  root.classList.toggle("with-panel", found !== null);
  panel.hidden = found === null;
  if (!found) {
    panel.replaceChildren();
    if (mainWidth() !== wide) redraw();
    return;
  }
  if (isNew && !panel.contains(document.activeElement)) panelState.opener = document.activeElement;
  panel.setAttribute("aria-label", found.title);
  const copy = el("button", { type: "button" }, t("page.copylink"));
  copyButton(copy, () => location.href);
  panel.replaceChildren(
    el("div", { class: "panel-head" }, el("h2", { tabindex: -1 }, found.title), copy,
      el("button", { type: "button", class: "close", "aria-label": t("panel.close"), onclick: closePanel }, "×")),
    ...found.parts.filter(Boolean));
  found.after?.();
  // On a wide screen the page moves aside.
  if (mainWidth() !== wide) state.redraws.filter((widget) => widget.element !== panel).forEach((widget) => widget.draw());
  if (!isNew) return;
  panel.scrollTop = 0;
  panel.querySelector("h2").focus({ preventScroll: true });
}

const panelPart = (title, ...children) => el("section", {}, el("h3", {}, title), ...children);
const opens = (text, kind, id) => el("button", { type: "button", class: "link", "data-opens": `${kind}:${id}`, onclick: () => showPanel(kind, id) }, text);

// rows of cells; the first cell is text, the others numbers. What may scroll can be reached by key.
function findingsPart(findings) {
  if (!findings.length) return null;
  return panelPart(t("panel.findings"), el("ul", {}, ...findings.map((one) => {
    const title = byId(`finding-${one.id}`)?.querySelector(".what strong")?.textContent ?? one.id;
    return el("li", {}, el("a", { href: `#finding-${one.id}` }, title));
  })));
}

function hostPanel(run, host) {
  const ranks = run.ranks.filter((rank) => run.places.get(rank)?.host === host);
  if (!ranks.length) return null;
  const metric = presetMetric(run) ?? ["computing", "gap"].find((one) => run.metrics[one]);
  const findings = run.document.findings.filter((one) => one.hosts.includes(host) || ranks.some((rank) => run.findingsOf(rank).includes(one)));
  return { title: run.hostName(host), parts: [findingsPart(findings),
    panelPart(t("panel.members"), plainTable([t("axis.rank"), metric ? metricName(metric) : "", t("panel.beside")],
      ranks.map((rank) => [opens(run.locator(rank), "rank", rank), metric ? formatUs(run.value(metric, rank)) : "–", metric ? formatShare(zero(run.deviation(metric, rank))) : "–"])))] };
}

function linkPanel(run, id) {
  const [src, dst] = id.split(">").map(Number), link = linkRows(run), rows = [];
  for (let i = 0; i < link.n; i++) {
    const isBack = link.src[i] === dst && link.dst[i] === src;
    if (isBack || (link.src[i] === src && link.dst[i] === dst)) rows.push(i);
  }
  if (!rows.length) return null;
  const findings = run.document.findings.filter((one) => one.links.some((each) => (each.src === src && each.dst === dst) || (each.src === dst && each.dst === src)));
  return { title: `${run.locator(src)} → ${run.locator(dst)}`, parts: [
    el("p", { class: "note" }, opens(run.locator(src), "rank", src), " ", opens(run.locator(dst), "rank", dst)),
    findingsPart(findings),
    panelPart(t("matrix.title"), plainTable(
      [t("matrix.op"), t("matrix.bandwidth"), t("panel.class"), t("matrix.size"), t("matrix.excess")],
      rows.map((i) => [`${link.src[i]} → ${link.dst[i]} · ${run.transports[link.transport[i]]} · ${run.opTypes[link.op[i]]}`, formatGbps(link.gbps[i]),
        formatGbps(link.class_gbps[i]), formatBytes(link.size[i]), Number.isNaN(link.excess[i]) ? "–" : formatShare(link.excess[i])])))] };
}

function groupPanel(run, id) {
  const group = run.groupById.get(id);
  if (!group) return null;
  const waits = run.waits.filter((one) => one.group === id).sort((a, b) => b.us - a.us).slice(0, 12);
  return { title: groupName(group, id), parts: [
    plainTable([t("groups.title"), ""], [[t("groups.ops"), group.n_ops.toFixed(1)], [t("groups.transfer"), formatUs(group.transfer_us)], [t("groups.wait"), formatUs(group.wait_us)]]),
    waits.length ? panelPart(t("panel.waitsfor"), plainTable([t("axis.rank"), t("groups.wait")], waits.map((one) => [opens(run.locator(one.rank), "rank", one.rank), formatUs(one.us)]))) : null,
    panelPart(t("panel.members"), el("p", { class: "members" }, ...group.ranks.slice(0, 128).map((rank) => opens(`${rank}`, "rank", rank)),
      group.ranks.length > 128 ? `… ${group.ranks.length}` : null))] };
}

function operatorPanel(run, kind) {
  const rows = run.operators.filter((one) => one.op_type === kind), number = run.kernelKinds.indexOf(kind);
  if (!rows.length && number < 0) return null;
  const { named } = orderedGroups(run);
  const slowest = number < 0 ? [] : run.ranks.map((rank) => [rank, run.kernel(rank, number)]).filter(([, us]) => us > 0).sort((a, b) => b[1] - a[1]).slice(0, 12);
  return { title: kind, parts: [
    slowest.length ? panelPart(t("panel.slowest"), plainTable([t("axis.rank"), t("panel.astep"), t("panel.beside")],
      slowest.map(([rank, us]) => [opens(run.locator(rank), "rank", rank), formatUs(us), besideKernel(run, rank, number)]))) : null,
    rows.length ? panelPart(t("ops.title"), plainTable([t("groups.group"), t("axis.step"), t("ops.transfer"), t("ops.spread"), t("ops.last")],
      rows.slice(0, 40).map((one) => [opens(groupName(run.groupById.get(one.group), one.group), "group", one.group), `${one.step}`,
        formatUs(one.transfer_us ?? NaN), formatUs(one.max_wait_us ?? NaN), waitedFor(run, named, one.group, one.last_rank)]))) : null] };
}
