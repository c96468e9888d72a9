// How a page starts: unpack its data, draw all of it, then answer to switches, links, keys and printing.

// make(data) → what the widgets draw; `widgets`: the id of a part of the page → what draws it; a page has only the parts that its
// data can fill. answers(made): what this page answers to beside; → what it tells those who want the numbers.
async function openPage({ make, widgets, answers = () => ({}) }) {
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
  const made = make(data);
  readAddress();
  for (const [id, widget] of Object.entries(widgets)) if (byId(id)) widget(made);
  setLanguage(stored("cluster-report-language") ?? (navigator.language.startsWith("zh") ? "zh" : "en"));
  const drawn = drawFirst(), told = answers(made);
  address.appliers.unshift(redraw);
  keepChoices();
  keepLinks();
  copyButton(byId("copy-link"), () => location.href);
  for (const button of document.querySelectorAll("button.copy")) copyButton(button, () => button.dataset.text);
  watchBar();
  address.appliers.slice(1).forEach((apply) => apply());
  goTo(address.anchor);
  // "popstate" comes for "back" and for an address that somebody edits.
  addEventListener("popstate", () => { readAddress(); applyAddress(); });
  listenToPrinting(made);
  let resizing = 0, width = innerWidth;
  // Phones change the height alone when their own bars come and go.
  addEventListener("resize", () => { if (innerWidth === width) return; width = innerWidth; clearTimeout(resizing); resizing = setTimeout(redraw, 150); });
  tipLeavesWithItsChart();
  // For those who want the numbers: the browser's console, and the tests.
  // `ready` when it answers, `drawn` when nothing is left to draw.
  window.clusterReport = { run: made, ...told, ready: true, drawn: false };
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

// On paper: light, and every finding open.
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
