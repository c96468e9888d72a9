// Stacked bars of the parts of a step, one bar a rank; sortable, with a true top N.

const TOPS = [16, 32, 64, 128, 256, 512];

function barsWidget(run) {
  const holder = byId("bars"), [sort, top, step, stage] = ["sort", "top", "step", "stage"].map((one) => byId(`bars-${one}`));
  const draw = () => {
    const stages = [...new Set(run.ranks.map((rank) => run.stage(rank)))].filter((one) => one !== null).sort((a, b) => a - b);
    fillChoice(sort, [["rank", t("ranks.byrank")], ...["total", ...PARTS, "wait", "gap"].filter((one) => run.metrics[one]).map((one) => [one, metricName(one)])]);
    fillChoice(top, [["0", t("ranks.all")], ...TOPS.filter((n) => n < run.ranks.length).map((n) => [`${n}`, t("ranks.topn", { n })])]);
    fillChoice(step, [["", t("ranks.allsteps")], ...run.bins.map((steps, bin) => [`${steps[0]}`, run.binName(bin)])], presetStep(run));
    fillChoice(stage, [["", t("ranks.allstages")], ...stages.map((one) => [`${one}`, t("map.stage", { stage: one })])]);
    const bin = step.value === "" ? -1 : run.bin(Number(step.value));
    const ordered = orderedRanks(run, sort.value, Number(top.value), bin, stage.value);
    const [from, to] = chosenRange("bars-zoom", ordered.length) ?? [0, ordered.length];
    drawBars(run, holder, ordered.slice(from, to), bin, ([low, high]) => { choose("bars-zoom", `${from + low}-${from + high}`); draw(); });
    resetButton(holder, to - from < ordered.length, () => { choose("bars-zoom", null); draw(); });
  };
  const changed = () => { choose("bars-zoom", null); draw(); };
  [sort, top, step, stage].forEach((select) => select.addEventListener("change", changed));
  onRedraw(holder, draw);
}

// The first step of the costliest finding, where it holds in some steps only.
function presetStep(run) {
  const isBrief = run.top && run.top.pattern !== "persistent" && run.top.steps.length && run.top.steps.length < run.document.run.steps.length;
  const bin = isBrief ? run.bin(run.top.steps[0]) : -1;
  return bin < 0 ? null : run.bins[bin][0];
}

// Sort first, cut then: the top N are the N largest, not the first N sorted.
function orderedRanks(run, sort, top, bin, stage) {
  const chosen = stage === "" ? [...run.ranks] : run.ranks.filter((rank) => `${run.stage(rank)}` === stage);
  if (sort === "rank" || !sort) return top ? chosen.slice(0, top) : chosen;
  const key = new Map(chosen.map((rank) => [rank, zero(run.value(sort, rank, bin))]));
  chosen.sort((a, b) => key.get(b) - key.get(a) || a - b);
  return top ? chosen.slice(0, top) : chosen;
}

function drawBars(run, holder, ranks, bin, zoom) {
  const totals = ranks.map((rank) => stackTotal(run, (part) => run.value(part, rank, bin)));
  const middle = median(totals);
  const { frame, parts } = drawStacks(run, holder, {
    n: ranks.length, valueOf: (part, i) => run.value(part, ranks[i], bin), totals, title: t("ranks.title"), axis: t("axis.rank"),
    shownOf: (column) => mostUnusual(run, ranks, totals, middle, column), isMarked: (i) => run.blamed.has(ranks[i]),
    nameOf: (i) => `${ranks[i]}`, textOf: (i) => [run.locator(ranks[i]), run.stageName(ranks[i])],
    zoom, click: (i) => showPanel("rank", ranks[i], bin < 0 ? null : run.bins[bin][0]),
  });
  dashedLine(frame, middle);
  stackLegend(holder, parts, t("ranks.medianline", { value: formatUs(middle) }), ranks.some((rank) => run.blamed.has(rank)));
}

// Which rank a pixel column shows: one that a finding names, else the one furthest from the median.
function mostUnusual(run, ranks, totals, middle, { from, to }) {
  let best = from;
  for (let i = from; i < to; i++) {
    if (run.blamed.has(ranks[i])) return i;
    if (Math.abs(totals[i] - middle) > Math.abs(totals[best] - middle)) best = i;
  }
  return best;
}
