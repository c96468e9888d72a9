// Tables: groups by lost time, slowest collectives, pipeline stages.

// columns: {name, value(row), cell(row)?, isNumber?, isWide?}. Text only; cells may also be elements.
// The order is kept in the address; `open(row)` shows a row's panel.
function sortableTable(holder, { rows, columns, shown = 10, empty, open = null }) {
  const view = holder.view ??= { all: false };
  const sorting = /^(\d+)(up|down)$/.exec(chosen(`${holder.id}-sort`) ?? "");
  Object.assign(view, { column: sorting ? Number(sorting[1]) : -1, isDescending: sorting?.[2] !== "up" });
  if (view.column >= columns.length) view.column = -1;
  if (!rows.length) { holder.replaceChildren(el("p", { class: "empty" }, empty)); return; }
  holder.classList.add("cards");
  const draw = () => {
    const ordered = [...rows];
    if (view.column >= 0) {
      const { value } = columns[view.column], sign = view.isDescending ? -1 : 1;
      ordered.sort((a, b) => { const [x, y] = [value(a), value(b)]; return sign * (typeof x === "number" ? zero(x) - zero(y) : `${x}`.localeCompare(`${y}`)); });
    }
    // Above bars nothing is written: no header, which would have to say something.
    const heads = columns.map((column, i) => column.isWide && !column.name ? el("td", { class: "wide" }) : el("th", {
      class: column.isNumber ? "n" : column.isWide ? "wide" : null, "aria-sort": view.column === i ? (view.isDescending ? "descending" : "ascending") : null,
    }, el("button", { type: "button", onclick: () => { view.isDescending = view.column === i ? !view.isDescending : true; view.column = i; if (holder.id) choose(`${holder.id}-sort`, `${i}${view.isDescending ? "down" : "up"}`); draw(); } }, column.name)));
    const body = ordered.slice(0, view.all ? ordered.length : shown).map((row) =>
      el("tr", open ? { class: "opens", tabindex: 0, "data-opens": holder.id && `${holder.id}-${rows.indexOf(row)}`, onclick: () => open(row), onkeydown: (event) => { if (event.key === "Enter") open(row); } } : {}, ...columns.map((column) => el("td", { class: column.isNumber ? "n" : column.isWide ? "wide" : null, "data-label": column.name }, column.cell ? column.cell(row) : `${column.value(row) ?? "–"}`))));
    holder.replaceChildren(el("table", {}, el("thead", {}, el("tr", {}, ...heads)), el("tbody", {}, ...body)));
    if (!view.all && ordered.length > shown) {
      holder.append(el("button", { type: "button", class: "more", onclick: () => { view.all = true; draw(); } }, t("groups.more", { n: ordered.length })));
    }
  };
  draw();
}

// parts: [[µs, colour]] on a scale that ends at `most`.
function inlineBar(parts, most) {
  return el("div", { class: "inline-bar" }, ...parts.map(([us, name]) =>
    el("i", { style: { width: `${Math.max(0, (100 * us) / most)}%`, background: colour(name) } })));
}

function groupsWidget(run) { onRedraw(byId("groups"), () => drawGroups(run)); }
function operatorsWidget(run) { onRedraw(byId("operators"), () => drawOperators(run)); }
function stagesWidget(run) { onRedraw(byId("stage-bars"), () => drawStages(run)); }

// Groups that waited for what a finding names come first: a pipeline waits by design.
function orderedGroups(run) {
  const named = new Map(), chains = run.alarms.flatMap((finding) => (run.chains[finding.id] ?? []).map((row) => [row, finding]));
  for (const [row, finding] of chains) if (!named.has(row.group)) named.set(row.group, { ...row, finding });
  const place = new Map([...named.keys()].map((group, i) => [group, i]));
  const of = (group) => place.get(group.group) ?? Infinity;
  return { named, rows: [...run.groups].sort((a, b) => (of(a) === of(b) ? 0 : of(a) - of(b))) };
}

// Whom a group waited for: what a finding names, or a rank that is late by its own doing. A rank that is late because
// it waited itself is not named, it is a victim.
function waitedFor(run, named, group, rank, share = null) {
  const row = named.get(group);
  if (row && row.level > 1) {
    const named = row.finding.ranks.length === 1 ? t("rank", { rank: row.finding.ranks[0] }) : run.locatorOfHosts(row.finding.hosts);
    return t("groups.through", { named: named, rank: row.last_rank });
  }
  if (row) rank = row.last_rank;
  const own = run.metrics.gap ? "gap" : "computing";
  const isOwn = rank !== null && (run.blamed.has(rank) || run.deviation(own, rank) > LEAST_DEVIATION);
  if (!isOwn) return t("groups.noone");
  return share === null || row ? t("rank", { rank }) : `${t("rank", { rank })}${bracketed(`${(100 * share).toFixed(0)}\u00a0%`)}`;
}

function drawGroups(run) {
  const most = run.groups.reduce((a, group) => Math.max(a, group.wait_us + group.transfer_us), 0) || 1;
  const { named, rows } = orderedGroups(run);
  sortableTable(byId("groups"), {
    rows, empty: t("groups.none"), open: (group) => showPanel("group", group.group),
    columns: [
      { name: t("groups.group"), value: (group) => groupName(group, group.group), cell: (group) => el("span", { class: named.has(group.group) ? "named" : null }, groupName(group, group.group)) },
      { name: t("groups.ops"), value: (group) => group.n_ops, cell: (group) => group.n_ops.toFixed(1).replace(/\.0$/, ""), isNumber: true },
      { name: t("groups.transfer"), value: (group) => group.transfer_us, cell: (group) => formatUs(group.transfer_us), isNumber: true },
      { name: t("groups.wait"), value: (group) => group.wait_us, cell: (group) => formatUs(group.wait_us), isNumber: true },
      { name: "", value: (group) => group.wait_us + group.transfer_us, cell: (group) => inlineBar([[group.transfer_us, "free"], [group.wait_us, "exposed"]], most), isWide: true },
      { name: t("groups.last"), value: (group) => group.last_share, cell: (group) => waitedFor(run, named, group.group, group.last_rank, group.last_share) },
    ],
  });
  byId("groups").append(el("div", { class: "legend" },
    el("span", {}, el("i", { style: { background: colour("free") } }), t("groups.transfer")),
    el("span", {}, el("i", { style: { background: colour("exposed") } }), t("groups.wait")),
    named.size ? el("span", {}, el("i", { class: "dot" }), t("groups.named")) : null));
}

function drawOperators(run) {
  const { named } = orderedGroups(run);
  const most = run.operators.reduce((a, one) => Math.max(a, zero(one.transfer_us) + zero(one.max_wait_us)), 0) || 1;
  sortableTable(byId("operators"), {
    rows: run.operators, empty: t("groups.none"), open: (one) => showPanel("operator", one.op_type),
    columns: [
      { name: t("ops.op"), value: (one) => one.op_type, cell: (one) => el("span", { title: one.op_name }, one.op_type) },
      { name: t("groups.group"), value: (one) => one.group, cell: (one) => groupName(run.groupById.get(one.group), one.group) },
      { name: t("ops.step"), value: (one) => one.step, isNumber: true },
      { name: t("ops.transfer"), value: (one) => one.transfer_us, cell: (one) => formatUs(one.transfer_us ?? NaN), isNumber: true },
      { name: t("ops.spread"), value: (one) => one.max_wait_us, cell: (one) => formatUs(one.max_wait_us ?? NaN), isNumber: true },
      { name: "", value: (one) => zero(one.transfer_us) + zero(one.max_wait_us), cell: (one) => inlineBar([[zero(one.transfer_us), "free"], [zero(one.max_wait_us), "exposed"]], most), isWide: true },
      { name: t("ops.last"), value: (one) => one.last_rank ?? -1, cell: (one) => waitedFor(run, named, one.group, one.last_rank) },
    ],
  });
}

function drawStages(run) {
  const stages = [...new Set(run.ranks.map((rank) => run.stage(rank)))].filter((stage) => stage !== null).sort((a, b) => a - b);
  const metrics = ["computing", "exposed_only", "bubble", "free", "wait"].filter((metric) => run.metrics[metric]);
  const rows = stages.length < 2 ? [] : stages.map((stage) => {
    const ranks = run.ranks.filter((rank) => run.stage(rank) === stage);
    const mean = (metric) => { const known = sorted(ranks.map((rank) => run.value(metric, rank))); return known.reduce((a, b) => a + b, 0) / known.length; };
    return { stage, n: ranks.length, ...Object.fromEntries(metrics.map((metric) => [metric, mean(metric)])) };
  });
  const parts = (row) => [["computing", "compute"], ["exposed_only", "exposed"], ["bubble", "bubble"], ["free", "free"]].map(([metric, name]) => [zero(row[metric]), name]);
  const most = rows.reduce((a, row) => Math.max(a, parts(row).reduce((sum, [us]) => sum + us, 0)), 0) || 1;
  sortableTable(byId("stage-bars"), {
    rows, empty: t("stages.none"),
    columns: [
      { name: t("stages.stage"), value: (row) => row.stage, cell: (row) => t("map.stage", row) },
      { name: t("stages.ranks"), value: (row) => row.n, isNumber: true },
      ...metrics.map((metric) => ({ name: metric === "exposed_only" ? t("part.exposed_only") : metricName(metric), value: (row) => row[metric], cell: (row) => formatUs(row[metric]), isNumber: true })),
      { name: "", value: (row) => row.computing, cell: (row) => inlineBar(parts(row), most), isWide: true },
    ],
  });
}
