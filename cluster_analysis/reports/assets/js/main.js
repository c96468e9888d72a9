// Start: unpack the data, put up the widgets, answer to switches, links and printing.

async function start() {
  root.classList.remove("no-script");
  const wanted = matchMedia("(prefers-color-scheme: dark)");
  root.dataset.theme = stored("cluster-report-theme") ?? (wanted.matches ? "dark" : "light");
  wanted.addEventListener("change", (event) => { if (!stored("cluster-report-theme")) setTheme(event.matches ? "dark" : "light"); });
  byId("theme").addEventListener("click", () => setTheme(root.dataset.theme === "dark" ? "light" : "dark", true));
  byId("language").addEventListener("click", () => setLanguage(state.language === "en" ? "zh" : "en", true));
  if (typeof DecompressionStream === "undefined") {
    byId("too-old").hidden = false;
    root.classList.add("no-script");
    return;
  }
  const data = await unpack(byId("payload").textContent);
  state.words = data.header.words;
  const run = new Run(data);
  setLanguage(stored("cluster-report-language") ?? (navigator.language.startsWith("zh") ? "zh" : "en"));
  for (const details of document.querySelectorAll("details.finding")) {
    details.addEventListener("toggle", () => { if (details.open) openFinding(run, details); });
  }
  barsWidget(run);
  heatWidget(run);
  mapWidget(run);
  matrixWidget(run);
  tablesWidgets(run);
  baselineWidget(run);
  openFromAddress();
  addEventListener("hashchange", openFromAddress);
  let theme = root.dataset.theme;
  addEventListener("beforeprint", () => {
    theme = root.dataset.theme;
    setTheme("light");
    document.querySelectorAll("details.finding").forEach((details) => { details.open = true; openFinding(run, details); });
    document.querySelectorAll("details.groups-waited").forEach((details) => { details.open = true; });
    showAll();
  });
  addEventListener("afterprint", () => setTheme(theme));
  let resizing = 0;
  addEventListener("resize", () => { clearTimeout(resizing); resizing = setTimeout(redraw, 150); });
  // For those who want the numbers: the browser's console, and the tests.
  window.clusterReport = { run, showAll, ready: true };
}

// A link such as report.html#finding-slow_rank-5 opens that finding.
function openFromAddress() {
  const target = location.hash ? byId(decodeURIComponent(location.hash.slice(1))) : null;
  if (target?.matches("details.finding")) target.open = true;
}

start();
