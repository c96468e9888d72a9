"use strict";
// The payload: a JSON header and typed columns, see packing.py. Times are µs; NaN means "not measured".

const ARRAY_OF = { f4: Float32Array, i4: Int32Array, u1: Uint8Array };

function decoded64(text) {
  // Ten times as fast where browsers have it.
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const letters = atob(text), bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i);
  return bytes;
}

async function unpack(text) {
  const packed = decoded64(text);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const content = await new Response(stream).arrayBuffer();
  const length = new DataView(content).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(content, 8, length)));
  const start = 8 + Math.ceil(length / 8) * 8;
  const columns = {};
  for (const [name, [type, offset, count]] of Object.entries(header.columns)) {
    columns[name] = new ARRAY_OF[type](content, start + offset, count);
  }
  return { header, columns };
}

// Everything the widgets ask about ranks, steps and places.
class Run {
  constructor({ header, columns }) {
    Object.assign(this, {
      document: header.document, addresses: header.addresses, ranks: header.ranks, bins: header.bins,
      hosts: header.hosts, groups: header.groups, operators: header.operators, chains: header.chains,
      transports: header.transports, opTypes: header.op_types, linksTotal: header.links_total,
      changes: header.changes, metricNames: header.metric_names, hostKinds: header.host_kinds, columns,
      kernelKinds: header.kernel_kinds, memoryComponents: header.memory_components, ticket: header.ticket, lanes: header.lanes,
      whoWaits: header.who_waits, bubbles: header.bubbles, limits: header.limits,
    });
    this.nBins = this.bins.length;
    this.places = new Map(header.placed.map((rank, i) => {
      const [host, device, stage, tp, dp] = header.places[i];
      return [rank, { host, device, stage, tp, dp }];
    }));
    this.row = new Map(this.ranks.map((rank, row) => [rank, row]));
    this.groupById = new Map(this.groups.map((group) => [group.group, group]));
    // Only alarms mark anything in the charts: what costs nothing must not draw the eye.
    this.alarms = this.document.findings.filter((one) => one.severity !== "info");
    this.blamed = new Set(this.alarms.filter((one) => header.unit_kinds.includes(one.kind)).flatMap((one) => one.ranks));
    this.markedLinks = new Set(this.alarms.flatMap((one) => one.links.map(({ src, dst }) => `${src}>${dst}`)));
    this.top = this.alarms[0] ?? null;
    this.metrics = this.#derive(header.metrics);
    this.peerCache = new Map();
    // How long a rank of a group waits a step for one of the others: {group, rank, us}.
    const waits = ["group", "rank", "us"].map((name) => columns[`wait.${name}`] ?? []);
    this.waits = Array.from(waits[0], (group, i) => ({ group: header.wait_groups[group], rank: waits[1][i], us: waits[2][i] }));
  }

  // µs a step of a kind of kernel on a rank; NaN where it was not measured.
  kernel(rank, kind) { return this.columns.kernels?.[this.row.get(rank) * this.kernelKinds.length + kind] ?? NaN; }

  // Metrics made of others: name → function of a cell.
  #derive(measured) {
    const of = (name) => this.columns[name] ?? new Float32Array(this.ranks.length * this.nBins);
    const [computing, overlapped, exposed, bubble, free, preparing] =
      ["computing", "overlapped", "exposed", "bubble", "free", "preparing"].map(of);
    const hidden = (cell) => Math.min(zero(bubble[cell]), exposed[cell]);
    const cells = Object.fromEntries(measured.map((name) => [name, (cell) => this.columns[name][cell]]));
    if (this.columns.computing) {
      cells.compute_only = (cell) => Math.max(0, computing[cell] - zero(overlapped[cell]));
      cells.exposed_only = (cell) => exposed[cell] - hidden(cell);
      cells.total = (cell) => computing[cell] + exposed[cell] + zero(free[cell]) + Math.max(0, zero(preparing[cell]));
    }
    return cells;
  }

  // Value of a metric for a rank in one bin of steps, or its mean over all (bin = -1).
  value(metric, rank, bin = -1) {
    const row = this.row.get(rank);
    const cell = this.metrics[metric];
    if (row === undefined || !cell) return NaN;
    if (bin >= 0) return cell(row * this.nBins + bin);
    let sum = 0, weight = 0;
    for (let i = 0; i < this.nBins; i++) {
      const one = cell(row * this.nBins + i);
      if (!Number.isNaN(one)) { sum += one * this.bins[i].length; weight += this.bins[i].length; }
    }
    return weight ? sum / weight : NaN;
  }

  bin(step) { return this.bins.findIndex((steps) => steps.includes(step)); }

  // Findings that name a rank, its host, or a link that ends there.
  findingsOf(rank) {
    const host = this.places.get(rank)?.host ?? null;
    return this.document.findings.filter((one) => one.ranks.includes(rank) || (this.hostKinds.includes(one.kind) && one.hosts.includes(host)) ||
      one.links.some(({ src, dst }) => src === rank || dst === rank));
  }

  stage(rank) { return this.places.get(rank)?.stage ?? null; }

  // Ranks that a rank is compared with: its own stage, itself included.
  peers(rank) {
    const stage = this.stage(rank);
    return stage === null ? this.ranks : this.ranks.filter((one) => this.stage(one) === stage);
  }

  // Median of a metric over the stage of a rank.
  peerMedian(metric, rank, bin = -1) {
    const key = `${metric}/${this.stage(rank)}/${bin}`;
    if (!this.peerCache.has(key)) {
      this.peerCache.set(key, median(this.peers(rank).map((one) => this.value(metric, one, bin))));
    }
    return this.peerCache.get(key);
  }

  // How far above (+) or below (-) the peers' median, as a share; of the whole step's median for small metrics.
  deviation(metric, rank, bin = -1) {
    const middle = this.peerMedian(metric, rank, bin);
    const whole = this.metrics.total ? this.peerMedian("total", rank, bin) : middle;
    return (this.value(metric, rank, bin) - middle) / Math.max(Math.abs(middle), 0.02 * whole, 1e-9);
  }

  // 1024 rows of step numbers need short labels.
  binName(bin) {
    const steps = this.bins[bin];
    return steps.length === 1 ? `${steps[0]}` : `${steps[0]}–${steps[steps.length - 1]}`;
  }

  stepsText(bin) { return t(this.bins[bin].length === 1 ? "run.step" : "finding.steps", { steps: this.binName(bin) }); }

  hostName(host) {
    if (host === null || host === undefined) return t("unknown");
    const address = this.addresses[host];
    return t("map.host", { host: address ? `${host}${bracketed(address)}` : host });
  }

  // The one way to say where a rank is, as places.py does: "rank 13 = host 2 / device 5".
  locator(rank) {
    const place = this.places.get(rank), parts = [];
    if (place && place.host !== null) parts.push(this.addresses[place.host] ?? this.hostName(place.host));
    if (place && place.device !== null) parts.push(t("device", { device: place.device }));
    return parts.length ? t("locator", { rank: t("rank", { rank }), place: parts.join(" / ") }) : t("rank", { rank });
  }

  locatorOfHosts(hosts) { return hosts.map((host) => this.hostName(host)).join(", "); }

  stageName(rank) {
    const stage = this.stage(rank);
    return stage === null ? "" : t("map.stage", { stage });
  }
}

const zero = (value) => (Number.isNaN(value) || value === undefined ? 0 : value);

function sorted(values) {
  return Float64Array.from(values).filter((value) => !Number.isNaN(value)).sort();
}

// Linear interpolation between order statistics, as numpy's default.
function quantile(ordered, share) {
  if (!ordered.length) return NaN;
  const place = share * (ordered.length - 1), low = Math.floor(place);
  return ordered[low] + (place - low) * ((ordered[low + 1] ?? ordered[low]) - ordered[low]);
}

function median(values) { return quantile(sorted(values), 0.5); }
