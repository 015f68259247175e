// The base of all screens: requests, addresses, live changes, formats and the recent undo tokens.
import { useCallback, useEffect, useRef, useState } from "./preact-htm.js";
export * from "./preact-htm.js";

export class Failure extends Error {
	constructor(status, message, seconds) {
		super(message);
		Object.assign(this, { status, seconds });
	}
}

const TOKEN = "recalld-token";
export const enc = encodeURIComponent;
export const token = () => sessionStorage.getItem(TOKEN) || "";
export function setToken(text) {
	if (text) sessionStorage.setItem(TOKEN, text);
	else sessionStorage.removeItem(TOKEN);
}

export function headers(more = {}) {
	const given = { "X-Recalld-Request": "1", ...more };
	if (token()) given.Authorization = `Bearer ${token()}`;
	return given;
}

// Sends a request and returns the JSON of its answer, or throws a Failure that a person can read.
export async function send(verb, path, body, options = {}) {
	const given = headers();
	if (body !== undefined) given["Content-Type"] = "application/json";
	if (options.version) given["If-Match"] = `"${options.version}"`;
	let answer;
	try {
		answer = await fetch(path, {
			method: verb,
			headers: given,
			body: body === undefined ? undefined : JSON.stringify(body),
			signal: options.signal,
		});
	} catch (error) {
		if (error.name === "AbortError") throw error;
		throw new Failure(0, "The daemon does not answer. `recalld serve` starts it.");
	}
	if (answer.ok) return options.text ? answer.text() : answer.status === 204 ? null : answer.json();
	const found = await answer.json().catch(() => ({}));
	if (answer.status === 401) dispatchEvent(new Event("token-needed"));
	const message = found.error?.message || `The daemon answered ${answer.status}.`;
	throw new Failure(answer.status, message, Number(answer.headers.get("Retry-After")));
}

const API = "/api/v1";
export const get = (path, query, signal) => send("GET", API + path + queryOf(query), undefined, { signal });
export const post = (path, body = {}, options) => send("POST", API + path, body, options);
export const patch = (path, body, version) => send("PATCH", API + path, body, { version });
export const del = (path, query) => send("DELETE", API + path + queryOf(query));
export const inBank = (bank, rest = "") => `/banks/${enc(bank)}${rest}`;

export const memoryPath = (bank, id, rest = "") => inBank(bank, `/memories/${enc(id)}${rest}`);

export function queryOf(values = {}) {
	const query = new URLSearchParams();
	for (const [name, value] of Object.entries(values)) {
		if (Array.isArray(value)) value.forEach((it) => query.append(name, it));
		else if (value !== undefined && value !== null && value !== "") query.set(name, value);
	}
	const text = query.toString();
	return text && `?${text}`;
}

// Loads data when the inputs change; keeps the old data while it loads again.
export function useLoad(load, inputs) {
	const [state, setState] = useState({});
	const run = useRef(null);
	const start = useCallback(() => {
		run.current?.abort();
		const mine = (run.current = new AbortController());
		Promise.resolve(load(mine.signal)).then(
			(data) => mine.signal.aborted || setState({ data }),
			(error) => mine.signal.aborted || setState(({ data }) => ({ data, error })),
		);
	}, inputs);
	useEffect(() => {
		start();
		return () => run.current?.abort();
	}, [start]);
	return { ...state, reload: start, set: (data) => setState({ data }) };
}

export const useGet = (path, query) => useLoad((signal) => get(path, query, signal), [path, JSON.stringify(query)]);

export function here() {
	const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
	const [screen, ...rest] = path.split("/").map((piece) => {
		try {
			return decodeURIComponent(piece);
		} catch {
			return piece;
		}
	});
	return { screen: screen || "search", arg: rest.join("/"), query: new URLSearchParams(query || "") };
}

export function link(screen, arg = "", query = {}) {
	const bank = query.bank || here().query.get("bank");
	return `#/${screen}${arg ? `/${enc(arg)}` : ""}${queryOf({ bank, ...query })}`;
}

export const go = (...where) => (location.hash = link(...where));
export const memoryLink = (memory, bank, query = {}) => link("memory", memory.id, { bank, ...query });

// Changes the query of the address, without an entry in the history.
export function keepQuery(values) {
	const { screen, arg, query } = here();
	for (const [name, value] of Object.entries(values)) {
		if (value) query.set(name, value);
		else query.delete(name);
	}
	const text = query.toString();
	history.replaceState(null, "", `#/${screen}${arg ? `/${enc(arg)}` : ""}${text && `?${text}`}`);
}

const listeners = new Set();
const tell = (e) => listeners.forEach((listener) => listener(e));

// Called after a change by this page; the event stream tells other pages.
export const changed = (bank) => tell({ type: "change", bank });

export function useEvents(listener) {
	const latest = useRef(listener);
	latest.current = listener;
	useEffect(() => {
		const call = (e) => latest.current(e);
		listeners.add(call);
		return () => listeners.delete(call);
	}, []);
}

// Calls `reload` once, soon after one or more changes of the bank.
export function useChanges(bank, reload) {
	const timer = useRef(0);
	useEvents((e) => {
		if (e.type !== "change" || (bank && e.bank && e.bank !== bank)) return;
		clearTimeout(timer.current);
		timer.current = setTimeout(reload, 120);
	});
	useEffect(() => () => clearTimeout(timer.current), []);
}

// Reads the events of the daemon; `onState` gets true while the stream is open.
export async function followEvents(signal, onState) {
	let wait = 500;
	while (!signal.aborted) {
		try {
			const answer = await fetch(`${API}/events`, { headers: headers({ Accept: "text/event-stream" }), signal });
			if (answer.status === 404) return;
			if (answer.ok) {
				wait = 500;
				onState(true);
				await readEvents(answer.body.getReader());
			}
		} catch {
			/* the daemon left; try again below */
		}
		onState(false);
		if (signal.aborted) return;
		await new Promise((resolve) => setTimeout(resolve, wait));
		wait = Math.min(wait * 2, 15_000);
	}
}

async function readEvents(reader) {
	const decoder = new TextDecoder();
	let rest = "";
	for (;;) {
		const { done, value } = await reader.read();
		if (done) return;
		const blocks = (rest + decoder.decode(value, { stream: true })).split("\n\n");
		rest = blocks.pop();
		for (const block of blocks) {
			const [, type, data] = /^event: (\w+)\ndata: (.*)$/s.exec(block) || [];
			if (data) tell({ ...JSON.parse(data), type });
		}
	}
}

const UNDO = "recalld-undo";

// The undo tokens of the last day: bank, token, count and time, never content.
export function undoList() {
	try {
		const kept = JSON.parse(localStorage.getItem(UNDO)) || [];
		return kept.filter((it) => Date.parse(it.until) > Date.now());
	} catch {
		return [];
	}
}

export function keepUndo(bank, done, what) {
	if (!done.undo) return null;
	const entry = { bank, undo: done.undo, until: done.undo_until, count: done.count, what, at: Date.now() };
	localStorage.setItem(UNDO, JSON.stringify([entry, ...undoList()].slice(0, 50)));
	return entry;
}

export async function undo(entry) {
	const done = await post(inBank(entry.bank, "/undo"), { undo: entry.undo });
	localStorage.setItem(UNDO, JSON.stringify(undoList().filter((it) => it.undo !== entry.undo)));
	changed(entry.bank);
	return done;
}

const day = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
const moment = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const clock = new Intl.DateTimeFormat(undefined, { timeStyle: "short" });
const relative = new Intl.RelativeTimeFormat(undefined, { numeric: "auto" });
const STEPS = [[60, "second", 1], [3600, "minute", 60], [86400, "hour", 3600], [604800, "day", 86400]];

const on = (format) => (iso) => {
	const time = new Date(iso);
	return iso && !Number.isNaN(time.getTime()) ? format.format(time) : "–";
};
export const dayOf = on(day);
export const timeOf = on(moment);
export const clockOf = on(clock);

export function ago(iso) {
	const seconds = (Date.parse(iso) - Date.now()) / 1000;
	if (Number.isNaN(seconds)) return "–";
	for (const [limit, unit, size] of STEPS) {
		if (Math.abs(seconds) < limit) return relative.format(Math.round(seconds / size), unit);
	}
	return dayOf(iso);
}

export const number = (value) => (value ?? 0).toLocaleString();
export const plural = (count, word, words = `${word}s`) => `${number(count)} ${count === 1 ? word : words}`;

export function size(bytes) {
	let value = bytes || 0;
	for (const unit of ["B", "KB", "MB", "GB"]) {
		if (value < 1000 || unit === "GB") return `${value < 10 && unit !== "B" ? value.toFixed(1) : Math.round(value)} ${unit}`;
		value /= 1000;
	}
}

// An address that may become a link.
export const webAddress = (text) => (/^https?:\/\//i.test(text || "") ? text : null);

export const headline = (memory) => memory.title || memory.text.split("\n", 1)[0].slice(0, 140) || "(empty)";
