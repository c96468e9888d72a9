// Several runs beside each other: a bar is the mean step of a run, and opens its report.

class Runs {
  constructor({ header, columns }) {
    Object.assign(this, { rows: header.rows, columns });
    this.metrics = Object.fromEntries(PARTS.filter((part) => columns[part]).map((part) => [part, true]));
  }

  // µs of a part of the mean step of run i; NaN where it is not known.
  value(part, i) { return this.columns[part][i]; }
}

function runsWidget(runs) {
  const holder = byId("runs"), n = runs.rows.length;
  const draw = () => {
    const [from, to] = chosenRange("runs-zoom", n) ?? [0, n], row = (i) => runs.rows[from + i];
    const valueOf = (part, i) => runs.value(part, from + i);
    const totals = Array.from({ length: to - from }, (_, i) => stackTotal(runs, (part) => valueOf(part, i)));
    const middle = median(totals.filter((us) => us > 0));
    const { frame, parts } = drawStacks(runs, holder, {
      n: to - from, valueOf, totals, title: t("runs.title"), axis: t("axis.run"),
      shownOf: ({ from: low, to: high }) => farthest(totals, middle, low, high),
      isMarked: (i) => row(i).verdict === "degraded", nameOf: (i) => `${row(i).number}`,
      textOf: (i) => [`${row(i).number}  ${row(i).name}`, t(`verdict.${row(i).verdict}`)],
      zoom: ([low, high]) => { choose("runs-zoom", `${from + low}-${from + high}`); draw(); },
      click: (i) => { if (row(i).href) location.href = row(i).href; },
    });
    dashedLine(frame, middle);
    stackLegend(holder, parts, t("trend.medianline", { value: formatUs(middle) }), runs.rows.some((one) => one.verdict === "degraded"), t("runs.marked"));
    resetButton(holder, to - from < n, () => { choose("runs-zoom", null); draw(); });
  };
  onRedraw(holder, draw);
}

openPage({ make: (data) => new Runs(data), widgets: { runs: runsWidget } });
