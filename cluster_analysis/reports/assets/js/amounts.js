// How times, sizes, shares and numbers of ranks are written.

// The same rules as cluster_words/amounts.py (format_ms).
function formatMs(ms) {
  const size = Math.abs(ms);
  if (Number.isNaN(ms)) return t("heat.missing");
  if (size >= 10000) return `${(ms / 1000).toFixed(1)}\u00a0s`;
  if (size >= 1000) return `${(ms / 1000).toFixed(2)}\u00a0s`;
  if (size >= 100) return `${ms.toFixed(0)}\u00a0ms`;
  if (size === 0) return "0\u00a0ms";
  if (size >= 1) return `${ms.toFixed(1)}\u00a0ms`;
  return `${(ms * 1000).toFixed(0)}\u00a0µs`;
}
const formatUs = (us) => formatMs(us / 1000);
const formatGbps = (gbps) => (Number.isNaN(gbps) ? "–" : `${gbps.toPrecision(3)}\u00a0GB/s`);
function formatShare(share) {
  const text = Math.abs(100 * share).toFixed(Math.abs(share) < 0.1 ? 1 : 0);
  return `${Number(text) === 0 ? "±" : share > 0 ? "+" : "−"}${text}\u00a0%`;
}

function formatBytes(bytes) {
  if (!(bytes > 0)) return "0\u00a0MB";
  const units = ["B", "kB", "MB", "GB", "TB"];
  const power = Math.min(units.length - 1, Math.floor(Math.log10(bytes) / 3));
  return `${(bytes / 1000 ** power).toPrecision(3)}\u00a0${units[power]}`;
}

// 0-7,12 as in cluster_run.ids.
function formatRanges(numbers) {
  const ordered = [...new Set(numbers)].sort((a, b) => a - b);
  const parts = [];
  for (let i = 0; i < ordered.length; ) {
    let j = i;
    while (ordered[j + 1] === ordered[j] + 1) j++;
    parts.push(i === j ? `${ordered[i]}` : `${ordered[i]}-${ordered[j]}`);
    i = j + 1;
  }
  return parts.join(",");
}

const shortRanges = (numbers, limit = 46) => {
  const text = formatRanges(numbers);
  return text.length > limit ? `${text.slice(0, limit)}…` : text;
};

// 3,11,19,27,… in equal steps: "3, 11 … 251 (32)".
function strided(numbers) {
  const step = numbers[1] - numbers[0];
  const isEven = numbers.length > 4 && step > 1 && numbers.every((one, i) => i === 0 || one - numbers[i - 1] === step);
  return isEven ? `${numbers[0]}, ${numbers[1]} … ${numbers[numbers.length - 1]} (${numbers.length})` : shortRanges(numbers);
}
