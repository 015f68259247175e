// Health: problems with remedies, pending vectors, calls, search latency, slow calls and clients.
import { html, useEffect, ago, clockOf, link, number, plural, size, useGet, Chip, Head, Loaded } from "./ui.js";
import { Area, Bars } from "./charts.js";

const SECONDS = 5;

const Tile = ({ name, children }) => html`<div class="card"><span class="soft">${name}</span><b>${children}</b></div>`;

export default function Health() {
	const found = useGet("/health");
	const clients = useGet("/clients");
	useEffect(() => {
		const timer = setInterval(() => document.hidden || (found.reload(), clients.reload()), SECONDS * 1000);
		return () => clearInterval(timer);
	}, []);
	return html`<${Head} title="Health" about=${`Refreshed every ${SECONDS} seconds.`}><//><${Loaded} from=${found}>${(data) => html`
		<div class="tiles"><${Tile} name="Status">${data.status}<//><${Tile} name="Version">${data.version}<//>
			${data.uptime_seconds !== undefined && html`<${Tile} name="Running for">${(data.uptime_seconds / 3600).toFixed(1)} h<//><${Tile} name="Memory">${size(data.rss_bytes)}<//>
			<${Tile} name="Pending vectors">${number(data.pending_vectors)}<//><${Tile} name="Calls running">${number(data.calls?.in_flight)}<//>`}</div>
		<section class="card"><h2>Problems</h2>${(data.problems || []).length === 0 ? html`<p class="good-note">Nothing is degraded.</p>` : html`<ul class="list">${data.problems.map((it) => html`<li class="line"><b>${it.text}</b>${it.remedy && html`<div class="soft">Remedy: ${it.remedy}</div>`}</li>`)}</ul>`}
			${data.model && html`<p class="soft">Vectors by ${data.model}.</p>`}</section>
		${data.calls && html`<section class="card"><h2>Calls per minute</h2><${Bars} title="Calls in the last hour" values=${data.calls.per_minute} labels=${["an hour ago", "now"]} /></section>`}
		${data.search_latency_ms && html`<section class="card"><h2>Search latency</h2><p class="soft">p50 ${data.search_latency_ms.p50 ?? "–"} ms, p95 ${data.search_latency_ms.p95 ?? "–"} ms</p>
			<${Area} title="Search latency" unit=" ms" points=${data.search_latency_ms.recent.map((it) => ({ label: clockOf(it.at), value: it.ms }))} /></section>`}
		${data.slow_calls && html`<section class="card"><h2>Slow calls</h2><p class="soft">Names and lengths only, never content.</p>${data.slow_calls.length === 0 ? html`<p>There were none.</p>` : html`<div class="scroll" tabindex="0" role="region" aria-label="Slow calls"><table class="data"><thead><tr><th>When</th><th>Call</th><th>Time</th><th>Length</th></tr></thead><tbody>
			${data.slow_calls.map((it) => html`<tr><td>${clockOf(it.at)}</td><td><code>${it.name}</code></td><td class="num">${number(Math.round(it.milliseconds))} ms</td><td class="num">${number(it.length)}</td></tr>`)}</tbody></table></div>`}</section>`}<//>
		${clients.error?.status !== 403 && html`<section class="card"><h2>Connected clients</h2><${Loaded} from=${clients}>${(data) => (data.clients.length === 0 ? html`<p>No client is connected. <a href=${link("connect")}>Connect one</a>.</p>` : html`<ul class="list">${data.clients.map((it) => html`<li class="line"><b>${it.name || "unnamed"}</b> ${it.version}
			<div class="meta"><${Chip}>${it.transport}<//>${it.connected_at && html`<span>since ${ago(it.connected_at)}</span>`}<span>${plural(it.calls, "call")}</span></div></li>`)}</ul>`)}<//></section>`}`}<//>`;
}
