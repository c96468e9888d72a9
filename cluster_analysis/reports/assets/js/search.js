// Search: ranks, hosts, devices, steps, links, groups, operators and findings by any words of their names. "/" goes there.

const MAX_FOUND = 12;

function searchWidget(run) {
  const box = byId("search"), list = byId("found");
  let index = null, found = [], at = -1, language = "", before = null;
  const close = () => { list.hidden = true; box.setAttribute("aria-expanded", "false"); box.removeAttribute("aria-activedescendant"); };
  // The panel gives the focus back to the box when it closes.
  const go = (one) => { close(); box.value = ""; one.go(); if (document.activeElement === box && one.isPlace) box.blur(); };
  const mark = () => [...list.children].forEach((item, i) => {
    item.setAttribute("aria-selected", i === at);
    if (i === at) { box.setAttribute("aria-activedescendant", item.id); item.scrollIntoView({ block: "nearest" }); }
  });
  const draw = () => {
    if (index === null || language !== state.language) { index = searchIndex(run); language = state.language; }
    const text = box.value.trim();
    found = text ? search(run, index, text) : [];
    at = found.length ? 0 : -1;
    list.replaceChildren(...found.map((one, i) => el("li", { role: "option", id: `found-${i}`, onmousedown: (event) => { event.preventDefault(); go(one); } },
      el("span", {}, one.name), el("small", {}, one.kind))));
    if (text && !found.length) list.append(el("li", { class: "none" }, t("search.none")));
    list.hidden = !text;
    box.setAttribute("aria-expanded", `${Boolean(text)}`);
    mark();
  };
  box.addEventListener("input", draw);
  box.addEventListener("focus", () => { if (box.value) draw(); });
  box.addEventListener("blur", close);
  box.addEventListener("keydown", (event) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by && found.length) { event.preventDefault(); at = (at + by + found.length) % found.length; mark(); }
    if (event.key === "Enter" && found[at]) { event.preventDefault(); go(found[at]); }
    if (event.key === "Escape") { event.preventDefault(); box.value = ""; close(); box.blur(); focusAgain(before); }
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.target.matches("input, select, textarea")) return;
    event.preventDefault();
    before = document.activeElement;
    box.focus();
    box.select();
  });
  onRedraw(box, () => { box.placeholder = t("search.hint"); box.setAttribute("aria-label", t("search.hint")); });
}

// Everything that has a name: {name, words (what is searched), kind, go}. English and numbers are always understood.
function searchIndex(run) {
  const entry = (name, kind, go, more = "", words = "") => ({ name, kind: t(`search.${kind}`), words: `${name} ${more} ${words}`.toLowerCase(), id: more, go });
  const panel = (kind, id) => () => showPanel(kind, id);
  const findings = run.document.findings.map((one) => {
    const title = byId(`finding-${one.id}`)?.querySelector(".what strong")?.textContent ?? one.id;
    return entry(title, "finding", () => follow(`finding-${one.id}`), `${one.kind} ${one.kind.replaceAll("_", " ")} ${one.summary}`);
  });
  const ranks = run.ranks.map((rank) => {
    const { host = null, device = null } = run.places.get(rank) ?? {};
    return entry(run.locator(rank), "rank", panel("rank", rank), `rank ${rank}`, `host ${host ?? ""} device ${device ?? ""} npu ${device ?? ""}`);
  });
  const hosts = run.hosts.map((host) => entry(run.hostName(host), "host", panel("host", host), `host ${host}`));
  const groups = run.groups.map((group) => entry(groupName(group, group.group), "group", panel("group", group.group), `${group.group} ${group.name} ${group.role} group`));
  const kinds = [...new Set([...run.operators.map((one) => one.op_type), ...run.kernelKinds])];
  const operators = kinds.map((kind) => entry(kind, "operator", panel("operator", kind), "operator kernel"));
  const steps = run.bins.map((numbers, bin) => entry(run.stepsText(bin), "step", () => showStep(numbers[0]), `step ${numbers[0]}`, numbers.join(" ")));
  return [...findings, ...hosts, ...ranks, ...steps, ...operators, ...groups];
}

// All words must be there; a number only as a whole number. Names that begin so come first.
function search(run, index, text) {
  const asked = text.toLowerCase().split(/[\s=/·,]+/).filter(Boolean);
  const link = /^(?:rank\s*)?(\d+)\s*(?:-|>|→|->|to)\s*(?:rank\s*)?(\d+)$/i.exec(text);
  const links = link ? [`${link[1]}>${link[2]}`].filter((id) => linkPanel(run, id)) : [];
  const test = asked.map((word) => (/^\d+$/.test(word) ? new RegExp(`(?<!\\d)${word}(?!\\d)`) : { test: (words) => words.includes(word) }));
  const found = index.filter((one) => test.every((each) => each.test(one.words)));
  // A number alone is most likely a rank; what is named exactly stands first.
  const numbers = asked.filter((word) => /^\d+$/.test(word)), kind = [["host", "主机"], ["step", "步"]].find((names) => names.some((name) => asked.includes(name)))?.[0] ?? "rank";
  const isExact = (one) => Number(numbers.length === 1 && one.id === `${kind} ${numbers[0]}`);
  found.sort((a, b) => isExact(b) - isExact(a));
  return [...links.map((id) => ({ name: id.split(">").map((rank) => run.locator(Number(rank))).join(" → "), kind: t("search.link"), go: () => showPanel("link", id) })), ...found].slice(0, MAX_FOUND);
}
