// What the reader chose, kept behind "#" of the address: `#ranks&show=rank-13&heat-metric=wait&open=slow_rank-13`.
// The address is the only place where it is kept, so that a link that is copied shows the same page.

const address = { anchor: "", chosen: new Map(), appliers: [] };

function readAddress() {
  const parts = location.hash.slice(1).split("&").filter(Boolean).map(decoded);
  address.anchor = parts.length && !parts[0].includes("=") ? parts.shift() : "";
  address.chosen = new Map(parts.map((part) => { const at = part.indexOf("="); return at < 0 ? [part, ""] : [part.slice(0, at), part.slice(at + 1)]; }));
}

function decoded(text) {
  try { return decodeURIComponent(text); } catch { return text; }
}

// `isPlace`: the reader went somewhere, and "back" should return from there.
function writeAddress(isPlace = false) {
  const encoded = (text) => encodeURIComponent(text).replaceAll("%2C", ",").replaceAll("%3E", ">").replaceAll("%3A", ":");
  const parts = [...address.chosen].map(([name, value]) => `${encoded(name)}=${encoded(value)}`);
  const hash = `#${[encoded(address.anchor), ...parts].filter(Boolean).join("&")}`;
  if (hash === (location.hash || "#")) return;
  history[isPlace ? "pushState" : "replaceState"](null, "", hash);
}

const chosen = (name) => address.chosen.get(name) ?? null;

// Keep a choice; null or "" forgets it.
function choose(name, value, isPlace = false) {
  if (value === null || value === "") address.chosen.delete(name);
  else address.chosen.set(name, `${value}`);
  writeAddress(isPlace);
}

// Fill a choice, or keep its options where none are given. What the address names is chosen, else `preset`, else the first.
function fillChoice(select, options = null, preset = null) {
  if (options) select.replaceChildren(...options.map(([value, text]) => el("option", { value }, text)));
  const known = [...select.options].map((option) => option.value);
  select.dataset.preset = known.includes(`${preset}`) ? `${preset}` : known[0] ?? "";
  const wanted = chosen(select.dataset.name ?? select.id);
  select.value = known.includes(wanted) ? wanted : select.dataset.preset;
}

// Before the widgets hear of a change: they read what is chosen from the address.
function keepChoices() {
  document.addEventListener("change", ({ target }) => {
    if (!target.matches("select[id]")) return;
    // What is chosen anyway needs no words in the address.
    choose(target.dataset.name ?? target.id, target.value === target.dataset.preset ? null : target.value);
  }, { capture: true });
}

// A range of positions, `3-17`, as a zoom leaves it; null where there is none or it does not fit into `length`.
function chosenRange(name, length) {
  const found = /^(\d+)-(\d+)$/.exec(chosen(name) ?? "");
  if (!found) return null;
  const [low, high] = [Number(found[1]), Number(found[2])];
  return low < high && high <= length ? [low, high] : null;
}

// Go to a part of the page; nothing above it may grow then.
function goTo(anchor) {
  const target = anchor ? byId(anchor) : null;
  if (!target) return;
  drawRest();
  target.scrollIntoView({ block: "start" });
}

// Links to parts of this page keep what is chosen; the browser's own way would forget it.
function keepLinks() {
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.('a[href^="#"]');
    if (!link || event.defaultPrevented || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    follow(decoded(link.getAttribute("href").slice(1)));
  });
}

function follow(anchor) {
  address.anchor = anchor;
  writeAddress(true);
  applyAddress();
}

// Make the page what the address says: at the start, after "back", and when somebody edits it.
function applyAddress() {
  address.appliers.forEach((apply) => apply());
  goTo(address.anchor);
}

async function copyText(text) {
  try { await navigator.clipboard.writeText(text); return; } catch { /* an older browser, or not allowed */ }
  const box = el("textarea", { style: { position: "fixed", opacity: "0" } });
  box.value = text;
  document.body.append(box);
  box.select();
  document.execCommand("copy");
  box.remove();
}

// A button that copies, and says so for a moment.
function copyButton(button, text) {
  button.addEventListener("click", async () => {
    await copyText(text());
    button.dataset.copied = "yes";
    say(t("page.copied"));
    setTimeout(() => { delete button.dataset.copied; }, 1600);
  });
}

// Tell something briefly, also to those who listen to the page.
function say(text) {
  const box = byId("said");
  box.textContent = text;
  box.hidden = false;
  clearTimeout(box.timer);
  box.timer = setTimeout(() => { box.hidden = true; }, 1800);
}
