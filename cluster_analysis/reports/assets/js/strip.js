// A strip plot: every peer a dot, the ranks of the finding large and labelled, median and middle 80 % behind them.

// dots: [{value, label, isNamed}]; format writes a value.
function drawStrip(holder, { dots, format, label, open = null, height = 110 }) {
  const width = Math.max(280, holder.clientWidth || 480), pad = 14, axis = 26;
  const { canvas, paint } = canvasFor(holder, width, height, label);
  const known = dots.filter((dot) => !Number.isNaN(dot.value));
  if (!known.length) return;
  const ordered = sorted(known.map((dot) => dot.value));
  const [low, high] = [ordered[0], ordered[ordered.length - 1]];
  // Not narrower than 5 % to each side: peers that agree must look as if they did.
  const centre = quantile(ordered, 0.5), least = LEAST_DEVIATION * Math.abs(centre);
  const margin = (high - low || Math.abs(high) || 1) * 0.06;
  const [from, to] = [Math.min(low - margin, centre - least), Math.max(high + margin, centre + least)];
  const x = (value) => pad + ((value - from) / (to - from)) * (width - 2 * pad);
  const middle = (height - axis) / 2 + 6;
  const peers = sorted(known.filter((dot) => !dot.isNamed).map((dot) => dot.value));
  paint.fillStyle = colour("sunken");
  if (peers.length) {
    const left = x(quantile(peers, 0.1));
    paint.fillRect(left, 14, Math.max(2, x(quantile(peers, 0.9)) - left), height - axis - 18);
  }
  drawStripAxis(paint, { from, to, x, width, height, axis, format });
  const spread = (height - axis) / 2 - 16;
  const placed = known.map((dot, i) => ({ dot, x: x(dot.value), y: dot.isNamed ? middle : middle + jitter(i) * spread }));
  paint.fillStyle = colour("compute");
  paint.globalAlpha = known.length > 400 ? 0.35 : 0.7;
  for (const one of placed) if (!one.dot.isNamed) circle(paint, one.x, one.y, known.length > 400 ? 2 : 3);
  paint.globalAlpha = 1;
  if (peers.length) {
    paint.strokeStyle = colour("ink");
    paint.setLineDash([3, 3]);
    line(paint, x(quantile(peers, 0.5)), 12, x(quantile(peers, 0.5)), height - axis);
    paint.setLineDash([]);
  }
  labelNamed(paint, placed.filter((one) => one.dot.isNamed), width);
  pointer(canvas, {
    cellAt: (px, py) => nearest(placed, px, py),
    textOf: (one) => `${one.dot.label}\n${format(one.dot.value)}`,
    click: open ? (one) => open(one.dot) : null,
  });
}

function labelNamed(paint, named, width) {
  paint.textAlign = "center";
  for (const one of named) {
    paint.fillStyle = colour("mark");
    circle(paint, one.x, one.y, 5.5);
  }
  if (named.length && named.length <= 3) {
    let free = -Infinity;
    for (const one of [...named].sort((a, b) => a.x - b.x)) {
      const half = paint.measureText(one.dot.short).width / 2;
      // A label that would lie on another one is left to the tooltip.
      if (one.x - half < free) continue;
      free = Math.max(half, one.x) + half + 6;
      paint.fillText(one.dot.short, Math.max(half, Math.min(width - half, one.x)), one.y - 11);
    }
  }
}

function drawStripAxis(paint, { from, to, x, width, height, axis, format }) {
  paint.strokeStyle = colour("line");
  line(paint, 0, height - axis + 0.5, width, height - axis + 0.5);
  paint.fillStyle = colour("muted");
  paint.textAlign = "center";
  for (const value of ticks(from, to, Math.max(2, Math.floor(width / 110)))) {
    const text = format(value), half = paint.measureText(text).width / 2;
    if (x(value) - half < 0 || x(value) + half > width) continue;
    line(paint, x(value), height - axis, x(value), height - axis + 4);
    paint.fillText(text, x(value), height - 8);
  }
}

// Spread without chance: the same page looks the same each time.
const jitter = (i) => (((i * 0.61803398875) % 1) - 0.5) * 1.6;

function nearest(placed, x, y) {
  let best = null, distance = 12 ** 2;
  for (const one of placed) {
    const away = (one.x - x) ** 2 + (one.y - y) ** 2;
    if (away < distance) { best = one; distance = away; }
  }
  return best;
}

function circle(paint, x, y, radius) {
  paint.beginPath();
  paint.arc(x, y, radius, 0, 2 * Math.PI);
  paint.fill();
}

function line(paint, x1, y1, x2, y2) {
  paint.beginPath();
  paint.moveTo(x1, y1);
  paint.lineTo(x2, y2);
  paint.stroke();
}
