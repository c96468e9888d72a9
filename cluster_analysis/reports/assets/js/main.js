// The report of one run: what draws each part of the page, and what answers beside them.

openPage({
  make: (data) => new Run(data),
  widgets: {
    lanes: lanesWidget, "who-waits": whoWaitsWidget, bubbles: bubblesWidget, memory: memoryWidget, trend: trendWidget, bars: barsWidget,
    heat: heatWidget, map: mapWidget, matrix: matrixWidget, groups: groupsWidget, operators: operatorsWidget, "stage-bars": stagesWidget,
    changes: baselineWidget, panel: panelWidget, search: searchWidget,
  },
  answers: (run) => {
    keepOpenFindings(run);
    copyButton(byId("copy-ticket"), () => run.ticket);
    return { scale: (metric, kind) => metricScale(run, metric, kind).ends };
  },
});
