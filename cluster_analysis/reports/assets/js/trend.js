// The step over time: one bar is the mean of all ranks in a step, or in steps that were put together.

function trendWidget(run) {
  const holder = byId("trend");
  const draw = () => {
    const [from, to] = chosenRange("trend-zoom", run.nBins) ?? [0, run.nBins];
    drawTrend(run, holder, [from, to], ([low, high]) => { choose("trend-zoom", `${from + low}-${from + high}`); draw(); });
    resetButton(holder, to - from < run.nBins, () => { choose("trend-zoom", null); draw(); });
  };
  onRedraw(holder, draw);
}

// → metric → mean over the ranks that have it, by bin
function meansByBin(run) {
  return Object.fromEntries(PARTS.filter((part) => run.metrics[part]).map((part) => [part, run.bins.map((_, bin) => {
    let sum = 0, n = 0;
    for (const rank of run.ranks) {
      const value = run.value(part, rank, bin);
      if (!Number.isNaN(value)) { sum += value; n++; }
    }
    return n ? sum / n : NaN;
  })]));
}

function drawTrend(run, holder, [from, to], zoom) {
  const means = meansByBin(run), n = to - from, bin = (i) => from + i;
  const totals = Array.from({ length: n }, (_, i) => stackTotal(run, (part) => means[part][bin(i)]));
  const middle = median(totals), named = briefSteps(run);
  const isMarked = (i) => run.bins[bin(i)].some((step) => named.has(step));
  const { frame, parts } = drawStacks(run, holder, {
    n, valueOf: (part, i) => means[part][bin(i)], totals, title: t("trend.title"), axis: t("axis.step"),
    shownOf: ({ from: low, to: high }) => farthest(totals, middle, low, high), isMarked, nameOf: (i) => run.binName(bin(i)),
    textOf: (i) => [run.stepsText(bin(i))], zoom, click: (i) => showStep(run.bins[bin(i)][0]),
  });
  dashedLine(frame, middle);
  stackLegend(holder, parts, t("trend.medianline", { value: formatUs(middle) }), totals.some((_, i) => isMarked(i)));
}

// Steps that a finding names because it holds in them alone.
function briefSteps(run) {
  return new Set(run.alarms.filter((one) => one.pattern !== "persistent").flatMap((one) => one.steps));
}

function farthest(values, middle, from, to) {
  let best = from;
  for (let i = from; i < to; i++) if (Math.abs(values[i] - middle) > Math.abs(values[best] - middle)) best = i;
  return best;
}

// Show all ranks in one step, where there are several; else the step among the others.
function showStep(step) {
  if (!byId("bars")) { follow("trend-section"); return; }
  choose("bars-step", step);
  follow("ranks");
}
