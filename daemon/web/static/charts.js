// Charts as SVG by hand: an area over time and bars. Each has its figures as text for screen readers.
import { html } from "./preact-htm.js";

const W = 600;
const H = 140;

// `points` are {label, value}; the label names a point in the summary.
export function Area({ points, title, unit = "" }) {
	if (points.length < 2) return html`<p class="soft">${title}: not enough data yet.</p>`;
	const most = Math.max(1, ...points.map((it) => it.value));
	const x = (index) => (index / (points.length - 1)) * W;
	const y = (value) => H - 4 - (value / most) * (H - 22);
	const line = points.map((it, index) => `${index ? "L" : "M"}${x(index).toFixed(1)} ${y(it.value).toFixed(1)}`).join("");
	const last = points[points.length - 1];
	const about = `${title}: from ${points[0].value}${unit} (${points[0].label}) to ${last.value}${unit} (${last.label}), at most ${most}${unit}.`;
	return html`<figure class="figure"><svg class="chart" viewBox=${`0 0 ${W} ${H}`} role="img" aria-label=${about}>
		<path class="area" d=${`${line}L${W} ${H}L0 ${H}Z`} /><path class="stroke" d=${line} />
		<text x="4" y="12">${most.toLocaleString()}${unit}</text><text x="4" y=${H - 8}>${points[0].label}</text><text x=${W - 4} y=${H - 8} text-anchor="end">${last.label}</text></svg></figure>`;
}

export function Bars({ values, title, labels }) {
	const most = Math.max(1, ...values);
	const step = W / values.length;
	const total = values.reduce((sum, it) => sum + it, 0);
	return html`<figure class="figure"><svg class="chart" viewBox=${`0 0 ${W} ${H}`} role="img" aria-label=${`${title}: ${total} in all, at most ${most}.`}>
		<line class="axis" x1="0" x2=${W} y1=${H - 18} y2=${H - 18} />
		${values.map((value, index) => value > 0 && html`<rect class="bar-mark" x=${index * step + 1} width=${Math.max(1, step - 2)} y=${H - 18 - (value / most) * (H - 36)} height=${(value / most) * (H - 36)} rx="1.5" />`)}
		<text x="4" y="12">${most}</text><text x="4" y=${H - 4}>${labels[0]}</text><text x=${W - 4} y=${H - 4} text-anchor="end">${labels[1]}</text></svg></figure>`;
}
