// Who waits for whom in one step of the replay: down who waits, across whose work it waits for; the network stands last.

function whoWaitsWidget(run) {
  const { rows, columns, by_host: byHost, of, step } = run.whoWaits, network = columns.length, holder = byId("who-waits");
  const [from, to, us] = ["from", "to", "us"].map((name) => run.columns[`who_waits.${name}`]);
  const cells = Array.from(us, (value, i) => ({ row: from[i], column: to[i] < 0 ? network : to[i], value }));
  const name = (end) => (end === undefined ? t("whowaits.network") : byHost ? run.hostName(end) : run.locator(end));
  const blamed = new Set(byHost ? [...run.blamed].map((rank) => run.places.get(rank)?.host) : run.blamed);
  gridWidget(holder, "who-waits", {
    rows, columns: [...columns, "↔"], cells, format: formatUs,
    title: () => t("whowaits.title"), axes: () => byHost ? [t("whowaits.for.host"), t("whowaits.host")] : [t("whowaits.for.rank"), t("whowaits.rank")],
    textOf: (row, column, cell) => [t("whowaits.tip", { who: name(rows[row]), whom: name(columns[column]) }), `${formatUs(cell?.value ?? 0)} ${t(byHost ? "whowaits.arank" : "panel.astep")}`, t("run.step", { steps: step })].join("\n"),
    open: (row, column) => showPanel(byHost ? "host" : "rank", columns[column] ?? rows[row], byHost ? null : step),
    isMarked: (row) => blamed.has(rows[row]),
  });
  if (rows.length < of) holder.append(el("p", { class: "note" }, t(byHost ? "whowaits.cut.hosts" : "whowaits.cut.ranks", { shown: rows.length, total: of })));
}
