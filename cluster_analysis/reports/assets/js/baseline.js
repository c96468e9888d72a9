// Before and after: every change with the band that noise alone would fill.

function baselineWidget(run) {
  const holder = byId("changes"), choice = byId("baseline-show");
  const draw = () => {
    fillChoice(choice);
    const rows = run.changes.filter((change) => choice.value === "all" || change.is_certain || change.what === "step");
    const reach = Math.max(0.02, ...rows.slice(0, 400).flatMap((one) => [one.change_share, one.low_share, one.high_share].map((share) => Math.min(1.5, Math.abs(share)))));
    sortableTable(holder, {
      rows, shown: 14, empty: t("baseline.same"),
      columns: [
        { name: t("baseline.what"), value: (one) => one.what, cell: (one) => changeName(run, one) },
        { name: t("baseline.metric"), value: (one) => one.metric, cell: (one) => changeMetric(run, one.metric) },
        { name: t("baseline.before"), value: (one) => one.before, cell: (one) => formatMetric(one.metric, one.before), isNumber: true },
        { name: t("baseline.after"), value: (one) => one.after, cell: (one) => formatMetric(one.metric, one.after), isNumber: true },
        { name: "%", value: (one) => one.change_share, cell: (one) => formatShare(one.change_share), isNumber: true },
        { name: t("baseline.change"), value: (one) => Math.abs(one.change_share), cell: (one) => noiseScale(one, reach), isWide: true },
        { name: t("baseline.sure"), value: (one) => Number(one.is_certain), cell: (one) => t(one.is_certain ? "baseline.certain" : "baseline.noise") },
      ],
    });
  };
  choice.addEventListener("change", draw);
  onRedraw(holder, draw);
}

function changeName(run, { what, name }) {
  if (what === "step") return t("metric.total");
  if (what === "component") return metricName(run.metricNames[name] ?? name);
  const rank = /^rank (\d+)$/.exec(name);
  return rank ? t("rank", { rank: rank[1] }) : `${t(`baseline.${what}`)} ${name}`;
}

function changeMetric(run, metric) {
  const bare = metric.replace(/_(us|ms|gbps|bytes|share|ratio)$/, "");
  return metricName(run.metricNames[bare] ?? bare);
}

// The unit is in the metric's name.
function formatMetric(metric, value) {
  if (value === null || Number.isNaN(value)) return "–";
  if (metric.endsWith("_us")) return formatUs(value);
  if (metric.endsWith("_ms")) return formatMs(value);
  if (metric.endsWith("_gbps")) return formatGbps(value);
  if (metric.endsWith("_bytes")) return formatBytes(value);
  if (metric.endsWith("_ratio")) return `${value.toFixed(2)} ×`;
  if (metric.endsWith("_share")) return `${(100 * value).toFixed(1)}\u00a0%`;
  return `${Number(value.toPrecision(4))}`;
}

function noiseScale({ change_share: change, low_share: low, high_share: high, is_certain: isCertain, metric }, reach) {
  const place = (share) => `${50 + 50 * Math.max(-1, Math.min(1, share / reach))}%`;
  const isBetter = metric.endsWith("_gbps") ? change > 0 : change < 0;
  const band = el("b", { style: { left: place(low), right: `calc(100% - ${place(high)})` } });
  const kind = isCertain ? ` certain${isBetter ? " better" : ""}` : "";
  return el("div", { class: `noise-scale${kind}` }, band, el("i", { style: { left: "50%" } }), el("u", { style: { left: place(change) } }));
}
