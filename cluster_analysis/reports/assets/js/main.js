// Start: unpack the data, draw everything, answer to switches, links, keys and printing.

// What draws the part of the page with that id; a page has only the parts that its data can fill.
const WIDGETS = {
  lanes: lanesWidget, "who-waits": whoWaitsWidget, bubbles: bubblesWidget, memory: memoryWidget, trend: trendWidget, bars: barsWidget, heat: heatWidget, map: mapWidget, matrix: matrixWidget,
  groups: groupsWidget, operators: operatorsWidget, "stage-bars": stagesWidget, changes: baselineWidget, panel: panelWidget, search: searchWidget,
};

async function start() {
  root.classList.remove("no-script");
  const wanted = matchMedia("(prefers-color-scheme: dark)");
  root.dataset.theme = stored("cluster-report-theme") ?? (wanted.matches ? "dark" : "light");
  wanted.addEventListener("change", (event) => { if (!stored("cluster-report-theme")) setTheme(event.matches ? "dark" : "light"); });
  byId("theme").addEventListener("click", () => setTheme(root.dataset.theme === "dark" ? "light" : "dark", true));
  byId("language").addEventListener("click", () => { setLanguage(state.language === "en" ? "zh" : "en", true); redraw(); });
  if (typeof DecompressionStream === "undefined") {
    byId("too-old").hidden = false;
    root.classList.add("no-script");
    return;
  }
  const data = await unpack(byId("payload").textContent);
  state.words = data.header.words;
  const run = new Run(data);
  readAddress();
  for (const [id, widget] of Object.entries(WIDGETS)) if (byId(id)) widget(run);
  setLanguage(stored("cluster-report-language") ?? (navigator.language.startsWith("zh") ? "zh" : "en"));
  const drawn = drawFirst();
  keepOpenFindings(run);
  address.appliers.unshift(redraw);
  keepChoices();
  keepLinks();
  copyButton(byId("copy-link"), () => location.href);
  copyButton(byId("copy-ticket"), () => run.ticket);
  for (const button of document.querySelectorAll("button.copy")) copyButton(button, () => button.dataset.text);
  watchBar();
  address.appliers.slice(1).forEach((apply) => apply());
  goTo(address.anchor);
  // "popstate" comes for "back" and for an address that somebody edits.
  addEventListener("popstate", () => { readAddress(); applyAddress(); });
  listenToPrinting(run);
  let resizing = 0, width = innerWidth;
  // Phones change the height alone when their own bars come and go.
  addEventListener("resize", () => { if (innerWidth === width) return; width = innerWidth; clearTimeout(resizing); resizing = setTimeout(redraw, 150); });
  tipLeavesWithItsChart();
  // For those who want the numbers: the browser's console, and the tests.
  // `ready` when it answers, `drawn` when nothing is left to draw.
  window.clusterReport = { run, scale: (metric, kind) => metricScale(run, metric, kind).ends, ready: true, drawn: false };
  performance.mark("ready");
  await drawn;
  performance.mark("drawn");
  window.clusterReport.drawn = true;
}

// The bar lies over the page: what a link leads to must stop below it. On small screens it scrolls away.
function watchBar() {
  const bar = document.querySelector(".bar");
  const covered = () => (getComputedStyle(bar).position === "sticky" ? Math.ceil(bar.getBoundingClientRect().height) : 0);
  const measure = () => root.style.setProperty("--bar", `${covered()}px`);
  new ResizeObserver(measure).observe(bar);
  measure();
}

function listenToPrinting(run) {
  let theme = root.dataset.theme;
  let closed = [];
  addEventListener("beforeprint", () => {
    state.isPrinting = true;
    theme = root.dataset.theme;
    setTheme("light");
    closed = [...document.querySelectorAll("details.finding:not([open])")];
    for (const details of closed) { details.open = true; openFinding(run, details); }
    // Drawn with the findings, and gone with them.
    document.querySelectorAll("details.groups-waited").forEach((details) => { details.open = true; });
  });
  addEventListener("afterprint", () => {
    for (const details of closed) details.open = false;
    setTheme(theme);
    setTimeout(() => { state.isPrinting = false; });
  });
}

start();
