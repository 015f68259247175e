// A map of a bank by meaning. The daemon computes the places; this draws them, with zoom and a list.
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState, go, inBank, link, number, plural, useChanges, useGet, Button, Empty, Head, Loaded, Pick } from "./ui.js";

const COLOURS = ["#3b6fe0", "#d9730d", "#2a9d6f", "#b83280", "#8a63d2", "#b08800", "#0f8fa8", "#c0392b", "#607080"];
const BY = [["kind", "Kind"], ["session", "Session"], ["age", "Age"]];
const HEIGHT = 520;
const NEAR = 10;

const bandOf = (at) => {
	const days = (Date.now() - Date.parse(at)) / 86_400_000;
	return days < 1 ? "today" : days < 7 ? "this week" : days < 31 ? "this month" : days < 366 ? "this year" : "older";
};
const groupOf = (point, by) => (by === "age" ? bandOf(point.at) : point[by] || "none");

function Plot({ points, colourOf, bank }) {
	const canvas = useRef(null);
	const drag = useRef(null);
	const [view, setView] = useState({ x: 0, y: 0, zoom: 1 });
	const [over, setOver] = useState(null);
	const [width, setWidth] = useState(800);
	const scale = (Math.min(width, HEIGHT) / 2.15) * view.zoom;
	const at = (point) => [width / 2 + (point.x - view.x) * scale, HEIGHT / 2 - (point.y - view.y) * scale];
	useLayoutEffect(() => {
		const watch = new ResizeObserver(() => setWidth(canvas.current.parentNode.clientWidth));
		watch.observe(canvas.current.parentNode);
		return () => watch.disconnect();
	}, []);
	useLayoutEffect(() => {
		const ratio = devicePixelRatio || 1;
		const box = canvas.current;
		box.width = width * ratio;
		box.height = HEIGHT * ratio;
		const pen = box.getContext("2d");
		pen.scale(ratio, ratio);
		pen.clearRect(0, 0, width, HEIGHT);
		pen.globalAlpha = 0.8;
		const radius = Math.min(7, (points.length > 2000 ? 2.2 : 3.6) * Math.sqrt(view.zoom));
		for (const point of points) {
			const [x, y] = at(point);
			if (x < -9 || y < -9 || x > width + 9 || y > HEIGHT + 9) continue;
			pen.fillStyle = colourOf(point);
			pen.beginPath();
			pen.arc(x, y, point === over ? radius + 4 : radius, 0, 7);
			pen.fill();
		}
	});
	const nearest = (e) => {
		const box = canvas.current.getBoundingClientRect();
		let best = null;
		let least = NEAR ** 2;
		for (const point of points) {
			const [x, y] = at(point);
			const distance = (x - e.clientX + box.left) ** 2 + (y - e.clientY + box.top) ** 2;
			if (distance < least) (best = point), (least = distance);
		}
		return best;
	};
	const zoom = (factor) => setView((old) => ({ ...old, zoom: Math.min(60, Math.max(1, old.zoom * factor)) }));
	const move = (dx, dy) => setView((old) => ({ ...old, x: old.x + dx / scale, y: old.y + dy / scale }));
	const onMove = (e) => {
		if (!drag.current) return setOver(nearest(e));
		move(drag.current.x - e.clientX, e.clientY - drag.current.y);
		drag.current = { x: e.clientX, y: e.clientY, moved: true };
	};
	const onUp = (e) => {
		const moved = drag.current?.moved;
		drag.current = null;
		const point = !moved && nearest(e);
		if (point) go("memory", point.id, { bank });
	};
	const onKey = (e) => {
		const step = { ArrowLeft: [-60, 0], ArrowRight: [60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] }[e.key];
		if (step) move(...step);
		else if (e.key === "+" || e.key === "=") zoom(1.4);
		else if (e.key === "-") zoom(1 / 1.4);
		else return;
		e.preventDefault();
		e.stopPropagation();
	};
	useEffect(() => {
		const onWheel = (e) => (e.preventDefault(), zoom(e.deltaY < 0 ? 1.15 : 1 / 1.15));
		canvas.current.addEventListener("wheel", onWheel, { passive: false });
		return () => canvas.current?.removeEventListener("wheel", onWheel);
	}, []);
	const seen = points.filter((point) => {
		const [x, y] = at(point);
		return x >= 0 && y >= 0 && x <= width && y <= HEIGHT;
	});
	return html`<div class="mapbox"><canvas ref=${canvas} height=${HEIGHT} style=${{ height: `${HEIGHT}px` }} tabindex="0" role="img" aria-label=${`Map of ${points.length} memories; arrows move, plus and minus zoom; the list below has the same memories`}
			onPointerDown=${(e) => (drag.current = { x: e.clientX, y: e.clientY })} onPointerMove=${onMove} onPointerUp=${onUp} onPointerLeave=${() => ((drag.current = null), setOver(null))} onKeyDown=${onKey} />
			${over && html`<div class="tip" style=${{ left: `${Math.min(at(over)[0] + 12, width - 220)}px`, top: `${at(over)[1] + 12}px` }}>${over.label}</div>`}</div>
		<div class="row tools"><${Button} kind="small" onClick=${() => zoom(1.4)}>Zoom in<//><${Button} kind="small" onClick=${() => zoom(1 / 1.4)}>Zoom out<//><${Button} kind="small" onClick=${() => setView({ x: 0, y: 0, zoom: 1 })}>Whole map<//></div>
		<h2>In view: ${plural(seen.length, "memory", "memories")}</h2>
		<ul class="list">${seen.slice(0, 30).map((point) => html`<li class="line" data-row><a href=${link("memory", point.id, { bank })} data-id=${point.id}>${point.label}</a></li>`)}</ul>
		${seen.length > 30 && html`<p class="soft">Zoom in to list the others.</p>`}`;
}

export default function MapScreen({ bank }) {
	const [by, setBy] = useState("kind");
	const found = useGet(inBank(bank, "/map"), { limit: 5000 });
	useChanges(bank, found.reload);
	const groups = useMemo(() => {
		const counts = new Map();
		for (const point of found.data?.points || []) counts.set(groupOf(point, by), (counts.get(groupOf(point, by)) || 0) + 1);
		return [...counts].sort((a, b) => b[1] - a[1]);
	}, [found.data, by]);
	const last = COLOURS.length - 1;
	const colours = new Map(groups.map(([name], index) => [name, COLOURS[Math.min(index, last)]]));
	return html`<${Head} title="Map" about="Memories with a similar meaning are close together."><${Pick} label="Colour by" value=${by} options=${BY} onPick=${setBy} /><//>
		<${Loaded} from=${found}>${(data) => (data.points.length === 0 ? html`<${Empty} title="There is nothing to draw yet"><p>The map needs memories with vectors.</p><//>` : html`
			<p class="legend row">${groups.slice(0, last).map(([name, count]) => html`<span><i style=${{ background: colours.get(name) }} />${name.slice(0, 28)} <small class="soft">${count}</small></span>`)}${groups.length > last && html`<span><i style=${{ background: COLOURS[last] }} />others</span>`}</p>
			${data.total > data.points.length && html`<p class="soft">${number(data.points.length)} of ${number(data.total)} memories are drawn.</p>`}
			<${Plot} points=${data.points} colourOf=${(point) => colours.get(groupOf(point, by))} bank=${bank} />`)}<//>`;
}
