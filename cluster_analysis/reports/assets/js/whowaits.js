// Who waits for whom in one step of the replay: down who waits, across whose work it waits for; the network stands last.

function whoWaitsWidget(run) {
  const { ends, by_host: byHost, step } = run.whoWaits, network = ends.length;
  const [from, to, us] = ["from", "to", "us"].map((name) => run.columns[`who_waits.${name}`]);
  const cells = Array.from(us, (value, i) => ({ row: from[i], column: to[i] < 0 ? network : to[i], value }));
  const name = (end) => (end === network ? t("whowaits.network") : byHost ? run.hostName(ends[end]) : run.locator(ends[end]));
  const blamed = new Set(byHost ? [...run.blamed].map((rank) => run.places.get(rank)?.host) : run.blamed);
  gridWidget(byId("who-waits"), "who-waits", {
    rows: ends, columns: [...ends, "↔"], cells, format: formatUs,
    title: () => t("whowaits.title"), axes: () => [t("whowaits.for"), t("whowaits.waits")],
    textOf: (row, column, cell) => [t("whowaits.tip", { who: name(row), whom: name(column) }), `${formatUs(cell?.value ?? 0)} ${t(byHost ? "whowaits.arank" : "panel.astep")}`, t("run.step", { steps: step })].join("\n"),
    open: (row, column) => showPanel(byHost ? "host" : "rank", ends[column === network ? row : column], byHost ? null : step),
    isMarked: (row) => blamed.has(ends[row]),
  });
}
