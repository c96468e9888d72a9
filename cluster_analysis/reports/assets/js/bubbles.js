// Bubbles of a pipeline: down the stages, across the messages that a stage receives in a step, in their order.

function bubblesWidget(run) {
  const { stages, n } = run.bubbles, place = new Map(stages.map((stage, row) => [stage, row]));
  const [stage, number, us, sender] = ["stage", "number", "us", "sender"].map((name) => run.columns[`bubbles.${name}`]);
  const cells = Array.from(us, (value, i) => ({ row: place.get(stage[i]), column: number[i], value, sender: sender[i] }));
  gridWidget(byId("bubbles"), "bubbles", {
    rows: stages, columns: Array.from({ length: n }, (_, i) => i + 1), cells, format: formatUs,
    title: () => t("bubbles.title"), axes: () => [t("bubbles.message"), t("stages.stage")],
    textOf: (row, column, cell) => [t("map.stage", { stage: stages[row] }), t("bubbles.nth", { n: column + 1 }),
      cell && cell.sender >= 0 ? t("bubbles.from", { stage: cell.sender }) : "", cell ? `${formatUs(cell.value)} ${t("whowaits.arank")}` : t("bubbles.none")].filter(Boolean).join("\n"),
    open: null,
  });
}
