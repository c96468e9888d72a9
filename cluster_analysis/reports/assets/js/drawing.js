// When widgets draw themselves. At the start what is on the screen is drawn, then the page answers; the rest follows while
// it is idle, or at once when somebody scrolls or goes there. What stands above is always drawn first: a chart that grew
// later would move what the reader has just been sent to.

function onRedraw(element, draw) {
  state.redraws.push({ element, draw });
}

// All of the page again: theme, language, width or what is chosen have changed.
function redraw() {
  tip("");
  state.waiting = [];
  for (const widget of state.redraws) widget.draw();
}

// Draw what is on the screen, then answer, then draw the rest. → a promise that is kept when all is drawn.
function drawFirst() {
  const isBelow = (one, other) => one.element.compareDocumentPosition(other.element) & Node.DOCUMENT_POSITION_PRECEDING;
  state.waiting = [...state.redraws].sort((one, other) => (isBelow(one, other) ? 1 : -1));
  drawOnScreen();
  addEventListener("scroll", drawOnScreen, { passive: true });
  const idle = window.requestIdleCallback ?? ((next) => setTimeout(next));
  return new Promise((done) => {
    const next = () => {
      state.waiting.shift()?.draw();
      if (state.waiting.length) { idle(next, { timeout: 100 }); return; }
      removeEventListener("scroll", drawOnScreen);
      done();
    };
    idle(next, { timeout: 100 });
  });
}

function drawOnScreen() {
  while (state.waiting.length && state.waiting[0].element.getBoundingClientRect().top < innerHeight) state.waiting.shift().draw();
}

// Before the reader is sent somewhere, and before printing.
function drawRest() {
  while (state.waiting.length) state.waiting.shift().draw();
}

// What a picture shows as a table, for those who read rather than look; it is made when it is opened.
// rows() → cells of each row, the first one its name; `open(i)` opens what row i stands for.
function asTable(holder, { title, heads, rows }) {
  const old = holder.parentElement.querySelector("details.as-table");
  const details = el("details", { class: "as-table", open: old?.open }, el("summary", {}, t("chart.astable", { title })));
  details.addEventListener("toggle", () => { if (details.open && details.children.length === 1) details.append(plainTable(heads, rows())); });
  old?.remove();
  holder.after(details);
}

function plainTable(heads, rows) {
  return el("div", { class: "table", tabindex: 0, role: "group", "aria-label": heads.filter(Boolean).join(", ") }, el("table", {},
    el("thead", {}, el("tr", {}, ...heads.map((head, i) => el("th", { class: i ? "n" : null }, head)))),
    el("tbody", {}, ...rows.map((cells) => el("tr", {}, ...cells.map((cell, i) => el("td", { class: i ? "n" : null }, cell)))))));
}
