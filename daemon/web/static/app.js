// The frame of the page: navigation, bank, token, live events and keys. Screens load on demand.
import { html, render, useEffect, useRef, useState, Failure, followEvents, get, go, here, keepQuery, link, plural, setToken, timeOf, undoList, useChanges, Button, Dialog, Empty, Icon, Messages, Problem, Text, notify, onListKey, undoLast, undoNow } from "./ui.js";

const SCREENS = [
	["search", "Search", "s"],
	["timeline", "Timeline", "t"],
	["memories", "Memories", "m"],
	["map", "Map", "p"],
	["knowledge", "Knowledge", "k"],
	["sources", "Sources", "o"],
	["banks", "Banks", "b"],
	["health", "Health", "h"],
	["connect", "Connect", "c"],
];
const NAMES = ["memory", ...SCREENS.map(([name]) => name)];
const loaded = {};

function useScreen(name) {
	const [state, setState] = useState({});
	useEffect(() => {
		if (!NAMES.includes(name)) return setState({ name, missing: true });
		let isCurrent = true;
		loaded[name] ||= import(`./${name}.js`);
		loaded[name].then(
			(module) => isCurrent && setState({ name, Screen: module.default }),
			(error) => {
				delete loaded[name];
				if (isCurrent) setState({ name, error });
			},
		);
		return () => (isCurrent = false);
	}, [name]);
	return state;
}

function TokenDialog({ onDone }) {
	const [text, setText] = useState("");
	const save = (e) => {
		e.preventDefault();
		setToken(text.trim());
		onDone();
	};
	return html`<${Dialog} title="A token is needed" onClose=${onDone}>
		<form onSubmit=${save}><p>This daemon needs a bearer token. It stays in this tab only.
			<code>recalld token add</code> makes one.</p>
			<${Text} label="Token" type="password" autocomplete="off" required value=${text} set=${setText} />
			<div class="row end"><button class="button main" type="submit">Use this token</button></div></form><//>`;
}

const KEYS = [
	["/", "go to the search box"],
	["↓ ↑ or j k", "move in a list"],
	["e", "edit the memory in focus"],
	["x", "forget it"],
	["u", "undo the last forget"],
	["g, then a letter", SCREENS.map(([, title, key]) => `${key} ${title}`).join(", ")],
];

const Help = ({ onClose }) => html`<${Dialog} title="Keys" onClose=${onClose}>
	<dl class="keys">${KEYS.map(([key, text]) => html`<dt><kbd>${key}</kbd></dt><dd>${text}</dd>`)}</dl><//>`;

function UndoMenu({ onClose }) {
	const entries = undoList();
	return html`<${Dialog} title="Undo" onClose=${onClose}>
		${entries.length === 0 && html`<p>Nothing was forgotten in this browser during the last day.</p>`}
		<ul class="list">${entries.map(
			(it) => html`<li class="line"><div>${it.what || plural(it.count, "memory", "memories")}</div>
				<div class="meta"><span>${it.bank}</span><span>possible until ${timeOf(it.until)}</span></div>
				<${Button} onClick=${() => (onClose(), undoNow(it))}>Undo<//></li>`,
		)}</ul><//>`;
}

function App() {
	const [place, setPlace] = useState(here());
	const [banks, setBanks] = useState(null);
	const [problem, setProblem] = useState(null);
	const [needsToken, setNeedsToken] = useState(false);
	const [generation, setGeneration] = useState(0);
	const [session, setSession] = useState(0);
	const [dialog, setDialog] = useState("");
	const [isLive, setLive] = useState(null);
	const main = useRef(null);
	const { Screen, error, missing, name: shown } = useScreen(place.screen);

	const loadBanks = () =>
		get("/banks").then(
			(found) => (setBanks(found.banks), setProblem(null)),
			(failure) => failure.status !== 401 && setProblem(failure),
		);
	useEffect(() => {
		const move = () => {
			const next = here();
			setPlace(next);
			setGeneration((n) => n + 1);
			scrollTo(0, 0);
			if (next.screen !== "search") main.current?.focus({ preventScroll: true });
		};
		const ask = () => setNeedsToken(true);
		addEventListener("hashchange", move);
		addEventListener("token-needed", ask);
		return () => (removeEventListener("hashchange", move), removeEventListener("token-needed", ask));
	}, []);
	useEffect(() => {
		loadBanks();
		const stop = new AbortController();
		followEvents(stop.signal, setLive);
		return () => stop.abort();
	}, [session]);
	useChanges("", () => banks && loadBanks());

	const named = place.query.get("bank");
	const bank = named || (banks?.some((it) => it.name === "default") ? "default" : banks?.[0]?.name) || "default";
	useEffect(() => {
		if (banks && !named) keepQuery({ bank }), setPlace(here());
	}, [banks, named, place.screen]);

	const pending = useRef("");
	useEffect(() => {
		const onKey = (e) => {
			if (document.querySelector("dialog[open]")) return;
			const isTyping = e.target.matches("input:not([type=checkbox]):not([type=radio]), textarea, select");
			if (!isTyping && !e.ctrlKey && !e.metaKey && !e.altKey) {
				const target = pending.current === "g" && SCREENS.find(([, , key]) => key === e.key);
				pending.current = e.key === "g" ? "g" : "";
				if (target) return e.preventDefault(), go(target[0]);
				if (e.key === "?") return setDialog("help");
				if (e.key === "u") return void undoLast();
				if (e.key === "/") {
					e.preventDefault();
					const box = document.querySelector("main input[type=search]");
					if (box) box.focus();
					else go("search");
					return;
				}
			}
			onListKey(e, bank);
		};
		addEventListener("keydown", onKey);
		return () => removeEventListener("keydown", onKey);
	}, [bank]);

	const pickBank = (e) => {
		const screen = place.screen === "memory" ? "search" : place.screen;
		go(screen, "", { bank: e.target.value });
	};
	const live = isLive ? "Live: changes appear at once" : "Not live";
	const names = banks?.map((it) => it.name) || [];
	if (!names.includes(bank)) names.unshift(bank);
	const active = place.screen === "memory" ? "memories" : place.screen;
	return html`
		<a class="skip" href="#main" onClick=${(e) => (e.preventDefault(), main.current.focus())}>Skip to the content</a>
		<header class="bar">
			<a class="logo" href=${link("search", "", { bank })}>recalld</a>
			<label class="bank"><span>Bank</span><select value=${bank} onChange=${pickBank}>${names.map((name) => html`<option value=${name} selected=${name === bank}>${name}</option>`)}</select></label>
			<span class="grow" />
			<span class="live ${isLive ? "on" : ""}" role="img" aria-label=${live} title=${live} />
			<${Button} kind="small" onClick=${() => setDialog("undo")}>Undo …<//>
			<button class="plain" type="button" aria-label="Keys" onClick=${() => setDialog("help")}><kbd>?</kbd></button>
		</header>
		<nav class="menu" aria-label="Screens">${SCREENS.map(
			([name, title]) => html`<a href=${link(name, "", { bank })} aria-current=${active === name ? "page" : undefined}><${Icon} name=${name} /><span>${title}</span></a>`,
		)}</nav>
		<main class="page" id="main" tabindex="-1" ref=${main}>
			${problem && html`<${Problem} error=${problem} retry=${loadBanks} />`}
			${error && html`<${Problem} error=${error} retry=${() => location.reload()} />`}
			${missing && html`<${Empty} title="There is no such screen"><a href=${link("search")}>Go to the search</a><//>`}
			${Screen && shown === place.screen && (banks || problem) && html`<${Screen} key=${`${bank} ${generation}`} bank=${bank} banks=${banks || []} arg=${place.arg} query=${place.query} />`}
		</main>
		${needsToken && html`<${TokenDialog} onDone=${() => (setNeedsToken(false), setSession((n) => n + 1), setGeneration((n) => n + 1))} />`}
		${dialog === "help" && html`<${Help} onClose=${() => setDialog("")} />`}
		${dialog === "undo" && html`<${UndoMenu} onClose=${() => setDialog("")} />`}
		<${Messages} />`;
}

addEventListener("unhandledrejection", (e) => {
	if (e.reason?.name === "AbortError") e.preventDefault();
	else if (e.reason instanceof Failure) e.preventDefault(), notify(e.reason.message, { bad: true });
});
const root = document.getElementById("app");
root.textContent = "";
render(html`<${App} />`, root);
