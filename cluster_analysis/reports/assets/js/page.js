// Language, theme, elements and the tooltip.

const root = document.documentElement;
const state = { language: "en", words: {}, redraws: [], waiting: [] };

function t(key, values = {}) {
  const entry = state.words[key];
  const text = entry ? entry[state.language === "zh" ? 1 : 0] : key;
  return keptTogether(text.replace(/\{(\w+)\}/g, (_, name) => values[name] ?? ""));
}

// The same as in templates.py: no line ends between a number and its unit.
const keptTogether = (text) => text.replace(/(?<=\d) (?=(?:[µm]?s|[kKMG]i?B|[GM]B\/s|GiB|MHz|%|×)(?![A-Za-z])|[张台步个项条])/g, "\u00a0");

// Brackets are as wide as the language's letters.
const bracketed = (text) => (state.language === "zh" ? `（${text}）` : ` (${text})`);

const has = (key) => key in state.words;
const metricName = (metric) => (has(`metric.${metric}`) ? t(`metric.${metric}`) : metric.replaceAll("_", " "));

// Build an element; text only ever becomes a text node.
function el(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "style") Object.assign(element.style, value);
    else if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(key, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

const byId = (id) => document.getElementById(id);

function stored(name, value) {
  // A page opened from a file may have no storage; the choice then lasts as long as the page.
  try {
    if (value === undefined) return localStorage.getItem(name);
    localStorage.setItem(name, value);
  } catch { /* no storage */ }
  return null;
}

const colourCache = new Map();
function colour(name) {
  if (!colourCache.has(name)) colourCache.set(name, getComputedStyle(root).getPropertyValue(`--${name}`).trim());
  return colourCache.get(name);
}

function setTheme(theme, remember = false) {
  root.dataset.theme = theme;
  colourCache.clear();
  if (remember) stored("cluster-report-theme", theme);
  redraw();
}

function setLanguage(language, remember = false) {
  state.language = language;
  root.lang = language === "zh" ? "zh-CN" : "en";
  for (const node of document.querySelectorAll("[data-en]")) node.textContent = node.dataset[language];
  for (const node of document.querySelectorAll("[data-label-en]")) {
    node.setAttribute("aria-label", language === "zh" ? node.dataset.labelZh : node.dataset.labelEn);
  }
  if (remember) stored("cluster-report-language", language);
}

function tip(text, x, y) {
  const box = byId("tip");
  box.hidden = !text;
  if (!text) return;
  box.scrolled = scrollY;
  box.textContent = text;
  const { width, height } = box.getBoundingClientRect();
  box.style.left = `${Math.max(8, Math.min(x + 14, innerWidth - width - 12))}px`;
  box.style.top = `${y + 18 + height > innerHeight ? Math.max(8, y - height - 14) : y + 18}px`;
}

// A tip does not outlive its place: what has been scrolled since lies elsewhere now.
function tipLeavesWithItsChart() {
  addEventListener("scroll", () => { if (byId("tip").scrolled !== scrollY) tip(""); }, { passive: true });
}
