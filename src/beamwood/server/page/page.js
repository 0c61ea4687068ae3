// page.js — what is typed in, ranked labels out, and why they rank so (why.js). Talks to the server it came from, and to no other.
"use strict";

const BEAMS = [1, 2, 3, 5, 10, 20, 50, 100, 200, 500];
const CHART_BEAMS = [1, 2, 5, 10, 20, 50, 100];
const HITS = "10"; // labels that are shown, unless the address says otherwise
const LONGEST_QUERY = 2000; // characters that the address keeps
const MOST_WORDS = 200; // of a text, that are looked up one by one
const EXAMPLES = [
  "history of jazz in new orleans", "how to bake sourdough bread", "machine learning for beginners",
  "climate change and farming", "women painters of the 19th century",
];
const THEMES = {
  system: ["as the system", "M4 5h16v11H4zM9 20h6M12 16v4"],
  light: ["light", "M12 3v2M12 19v2M3 12h2M19 12h2M5.6 5.6 7 7M17 17l1.4 1.4M5.6 18.4 7 17M17 7l1.4-1.4M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8"],
  dark: ["dark", "M20 14.5A8.5 8.5 0 0 1 9.5 4 8.5 8.5 0 1 0 20 14.5"],
};

const state = { model: null, models: [], hits: [], open: null, asked: 0, running: null, comparing: null, chart: null, naming: null, token: sessionStorage.getItem("token") };

// --- the server ----------------------------------------------------------------------------------------------------

class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

async function ask(path, body, signal) {
  const headers = { "content-type": "application/json" };
  if (state.token) headers.authorization = `Bearer ${state.token}`;
  const begun = performance.now();
  const answer = await fetch(path, body ? { method: "POST", headers, body: JSON.stringify(body), signal } : { headers, signal });
  const value = await answer.json();
  const took = onTheWire(answer.url, begun) ?? performance.now() - begun;
  if (!answer.ok) throw new Refused(answer.status, value.error ? value.error.message : answer.statusText);
  return { value, took: took * 1000 };
}

/** Milliseconds from the request's first byte to the answer's, as the browser's network saw them; a search's answer is one
 * packet. What the browser does to hand it to the page, and the page to draw, is no part of the call. */
function onTheWire(url, begun) {
  const entry = performance.getEntriesByName(url, "resource").find((found) => found.startTime >= begun - 1);
  performance.clearResourceTimings();
  return entry?.requestStart ? entry.responseStart - entry.requestStart : null;
}

const question = (text, beam) => ({ text, k: Number($("count").value), beam, model: state.model.name, ...filtered() });
const beam = () => state.beams[Number($("beam").value)];

async function search() {
  const text = $("query").value;
  grow();
  if (!state.model) return; // begin() asks what is typed until then
  remember(text);
  state.running?.abort();
  state.comparing?.abort();
  clearTimeout(state.chart);
  clearTimeout(state.naming);
  state.running = state.comparing = null;
  if (!text.trim()) return showNothing();
  const mine = ++state.asked;
  const control = (state.running = new AbortController());
  const late = setTimeout(() => $("results").classList.add("stale"), 150);
  try {
    const { value, took } = await ask("v1/search", question(text, beam()), control.signal);
    if (mine === state.asked) show(text, value, took);
  } catch (error) {
    if (error.name !== "AbortError" && mine === state.asked) showError(error);
  } finally {
    clearTimeout(late);
    if (mine === state.asked) $("results").classList.remove("stale");
  }
}

// --- results -------------------------------------------------------------------------------------------------------

function show(text, value, took) {
  const same = state.text === text && state.open;
  state.text = text;
  state.hits = value.hits;
  $("engine").textContent = microseconds(value.engine_us);
  $("call").textContent = microseconds(took);
  $("known").textContent = String(value.known_terms);
  $("strip").hidden = $("filter").hidden = false;
  document.body.classList.remove("start");
  $("examples").hidden = true;
  const open = same && value.hits.some((hit) => hit.label === state.open) ? state.open : null;
  const best = value.hits.length ? value.hits[0].score : null;
  $("results").replaceChildren(...value.hits.map((hit, i) => row(hit, i, best)));
  state.open = null;
  if (open !== null) toggle(document.querySelector(`[data-label="${open}"]`));
  $("empty").hidden = value.hits.length > 0;
  if (!value.hits.length) {
    const reason = value.known_terms
      ? ["Nothing was found.", Object.keys(filtered()).length ? "Take something out of the filter." : "Try other words, or a wider beam."]
      : ["The model knows none of these words.", "Try others; words that it never saw are left out."];
    $("empty").replaceChildren(make("strong", {}, reason[0]), reason[1]);
  }
  state.naming = setTimeout(() => nameUnknown(text).catch(() => {}), 200);
  const first = value.hits.length ? `. First: ${value.hits[0].name}` : "";
  $("status").textContent = `${value.hits.length} hits in ${microseconds(value.engine_us)}${first}`;
  $("side").hidden = $("after").hidden = !value.hits.length;
  $("command").hidden = true;
  if (value.hits.length) state.chart = setTimeout(() => compareBeams(text).catch(() => {}), 250);
}

/** Says which words of the text the model does not know: each is asked by itself, all in one request. */
async function nameUnknown(text) {
  const mine = state.asked;
  const words = [...new Set(text.match(/[\p{L}\p{M}\p{N}_]{2,}/gu) ?? [])].slice(0, MOST_WORDS);
  const { value } = words.length ? await ask("v1/search", { texts: words, k: 1, model: state.model.name }) : { value: { results: [] } };
  if (mine !== state.asked) return;
  const unknown = words.filter((_, i) => !value.results[i].known_terms);
  $("unknown").hidden = !unknown.length;
  $("unknown").textContent = unknown.length ? `Left out, not known to the model: ${unknown.join(", ")}` : "";
}

/** The box is as high as its text, up to what its style allows. */
function grow() {
  const { style } = $("query");
  style.height = "auto";
  style.height = `${$("query").scrollHeight}px`;
}

function row(hit, i, best) {
  const bar = make("span", { class: "bar", "aria-hidden": "true" }, width(make("i"), hit.probability ?? share(hit.score, best)));
  const button = make(
    "button",
    { type: "button", "aria-expanded": "false", "aria-controls": `why-${hit.label}`, onclick: (e) => toggle(e.currentTarget.parentElement),
      "aria-label": `${i + 1}. ${hit.name}, ${meant(hit)}. Explain` },
    make("span", { class: "rank" }, String(i + 1)),
    make("span", {}, make("span", { class: "name", dir: "auto" }, hit.name), hit.key === hit.name ? null : make("span", { class: "key" }, ` ${hit.key}`),
      hit.found_by ? make("span", { class: "member", title: MEMBERS[hit.found_by] }, SHORT[hit.found_by]) : null),
    make("span", { class: "score", title: `score ${hit.score}` }, hit.probability === undefined ? number(hit.score, 3) : percent(hit.probability)),
    arrow(),
    make("span"),
    bar,
  );
  return make("li", { class: "hit", "data-label": hit.label }, button);
}

// What a hit's number says, for those who hear it.
function meant(hit) {
  return hit.probability === undefined ? `score ${number(hit.score)}` : `${percent(hit.probability)} probable`;
}

function percent(share) {
  return `${(100 * share).toFixed(share < 0.1 ? 1 : 0)} %`;
}

function arrow() {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const line = document.createElementNS("http://www.w3.org/2000/svg", "path");
  for (const [name, value] of [["viewBox", "0 0 24 24"], ["width", "16"], ["height", "16"], ["class", "arrow"], ["aria-hidden", "true"]]) svg.setAttribute(name, value);
  line.setAttribute("d", "m6 9 6 6 6-6");
  svg.append(line);
  return svg;
}

function showNothing() {
  state.asked += 1;
  state.hits = [];
  state.open = null;
  $("results").replaceChildren();
  $("side").hidden = $("after").hidden = $("command").hidden = true;
  $("strip").hidden = $("filter").hidden = true;
  $("empty").hidden = true;
  $("examples").hidden = false;
  $("unknown").hidden = true;
  document.body.classList.add("start");
  $("status").textContent = "";
}

function showError(error) {
  if (error.status === 401) {
    $("token-form").hidden = false;
    $("token").focus();
  }
  $("results").replaceChildren();
  $("side").hidden = $("after").hidden = $("command").hidden = true;
  $("empty").hidden = false;
  $("unknown").hidden = true;
  const busy = error.status === 503;
  const title = busy ? "The server is busy." : error.status ? "The server refused." : "The server does not answer.";
  $("empty").replaceChildren(make("strong", {}, title), error.status ? error.message : "Is it still running?");
  $("status").textContent = title;
}

// --- why -----------------------------------------------------------------------------------------------------------

async function toggle(item) {
  const label = Number(item.dataset.label);
  const wasOpen = item.classList.contains("open");
  for (const other of document.querySelectorAll(".hit.open")) close(other);
  state.open = null;
  if (wasOpen) return;
  state.open = label;
  item.classList.add("open");
  item.firstElementChild.setAttribute("aria-expanded", "true");
  const panel = make("div", { class: "why", id: `why-${label}`, role: "region", "aria-label": `Why ${state.hits.find((hit) => hit.label === label).name}` });
  item.append(panel);
  try {
    const { value } = await ask("v1/explain", { text: state.text, label, model: state.model.name });
    if (state.open !== label) return;
    panel.replaceChildren(...explanation(value), make("button", { type: "button", class: "leave", onclick: () => leaveOut(value) }, "Leave this label out"));
  } catch (error) {
    panel.replaceChildren(make("p", { class: "quiet" }, error.message));
  }
}

function close(item) {
  item.classList.remove("open");
  item.firstElementChild.setAttribute("aria-expanded", "false");
  item.querySelector(".why")?.remove();
}

// --- what the beam changes -----------------------------------------------------------------------------------------

async function compareBeams(text) {
  const mine = state.asked;
  const { signal } = (state.comparing = new AbortController());
  const answers = [];
  for (const width of CHART_BEAMS) {
    let best = null;
    for (let i = 0; i < 3; i++) {
      const { value } = await ask("v1/search", question(text, width), signal);
      if (mine !== state.asked) return;
      if (!best || value.engine_us < best.engine_us) best = value;
    }
    answers.push(best);
  }
  const widest = new Set(answers[answers.length - 1].hits.map((hit) => hit.label));
  const slowest = Math.max(...answers.map((answer) => answer.engine_us));
  $("chart").replaceChildren(...answers.map((answer, i) => {
    const same = answer.hits.filter((hit) => widest.has(hit.label)).length;
    return make("button", { type: "button", "aria-pressed": String(CHART_BEAMS[i] === beam()), onclick: () => setBeam(CHART_BEAMS[i]),
      "aria-label": `Beam ${CHART_BEAMS[i]}: ${microseconds(answer.engine_us)}, ${same} of ${widest.size} hits as at beam ${CHART_BEAMS.at(-1)}` },
      make("span", {}, String(CHART_BEAMS[i])),
      make("span", { class: "track" }, width_of(answer.engine_us / slowest)),
      make("span", {}, microseconds(answer.engine_us)),
      make("span", { class: same === widest.size ? "same all" : "same" }, `${same}/${widest.size}`));
  }));
  $("beam-story").textContent = story(answers, widest);
}

const width_of = (amount) => width(make("i"), amount);

function story(answers, widest) {
  const enough = answers.findIndex((answer) => answer.hits.length === widest.size && answer.hits.every((hit) => widest.has(hit.label)));
  const ratio = answers.at(-1).engine_us / answers[enough].engine_us;
  if (enough === answers.length - 1) return "Every wider beam finds something new for this query.";
  const speed = ratio >= 1.05 ? `, ${ratio.toFixed(1)} times as fast` : "";
  return `For this query beam ${CHART_BEAMS[enough]} finds what beam ${CHART_BEAMS.at(-1)} finds${speed}.`;
}

function setBeam(width) {
  $("beam").value = String(state.beams.indexOf(width));
  beamMoved();
}

function beamMoved() {
  if (!state.model) return;
  $("beam-value").textContent = String(beam());
  $("beam").setAttribute("aria-valuetext", `beam ${beam()}`);
  for (const button of $("chart").children) button.setAttribute("aria-pressed", String(Number(button.firstElementChild.textContent) === beam()));
  search();
}

// --- page ----------------------------------------------------------------------------------------------------------

function remember(text) {
  const fields = new URLSearchParams();
  if (text.length <= LONGEST_QUERY) fields.set("q", text);
  if (!text) fields.delete("q");
  if (beam() !== state.model.beam) fields.set("beam", String(beam()));
  if ($("count").value !== HITS) fields.set("k", $("count").value);
  rememberFilter(fields);
  if (state.models.length > 1) fields.set("model", state.model.name);
  history.replaceState(null, "", `${location.pathname}${fields.size ? `?${fields}` : ""}`);
}

function choose(name) {
  state.model = state.models.find((model) => model.name === name) ?? state.models[0];
  const { labels, features, trees, depth } = state.model;
  const shape = trees > 1 ? `${trees} trees` : `One tree of ${depth} layers`;
  $("title").textContent = state.model.text ? `Search ${labels.toLocaleString("en")} labels` : "Labels for numbers";
  $("facts").textContent = state.model.text
    ? `${shape}, ${features.toLocaleString("en")} terms known.`
    : "This model was trained from numbers and knows no words; ask it through the API with features.";
  $("query").disabled = !state.model.text;
  state.beams = [...new Set([...BEAMS, state.model.beam])].sort((one, other) => one - other);
  $("beam").max = String(state.beams.length - 1);
  $("beam").value = String(state.beams.indexOf(state.model.beam));
  if (state.model.text) examples().catch(() => {});
}

/** Examples that this model knows something about. */
async function examples() {
  const { value } = await ask("v1/search", { texts: EXAMPLES, k: 1, model: state.model.name });
  const known = EXAMPLES.filter((_, i) => value.results[i].known_terms > 1);
  const use = (text) => () => { $("query").value = text; $("query").focus(); search(); };
  $("examples").replaceChildren(...known.map((text) => make("li", {}, make("button", { type: "button", onclick: use(text) }, text))));
}

async function begin() {
  const { value } = await ask("v1/models");
  $("token-form").hidden = true;
  $("empty").hidden = true;
  state.models = value.models;
  const fields = new URLSearchParams(location.search);
  choose(fields.get("model"));
  $("model").replaceChildren(...state.models.map((model) => make("option", { value: model.name, selected: model === state.model }, model.name)));
  $("model-pick").hidden = state.models.length < 2;
  if ([...$("count").options].some((choice) => choice.value === fields.get("k"))) $("count").value = fields.get("k");
  const asked = Number(fields.get("beam"));
  if (state.beams.includes(asked)) $("beam").value = String(state.beams.indexOf(asked));
  $("beam-value").textContent = String(beam());
  $("beam").setAttribute("aria-valuetext", `beam ${beam()}`);
  await filterOf(fields);
  $("filter").open = Object.keys(filtered()).length > 0;
  if (fields.get("q")) $("query").value = fields.get("q");
  if ($("query").value) search();
  else showNothing();
}

function theme(name) {
  const [title, path] = THEMES[name];
  if (name === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  $("theme").setAttribute("aria-label", `Colours: ${title}`);
  $("theme").title = `Colours: ${title}`;
  $("theme-icon").setAttribute("d", path);
  $("theme").dataset.now = name;
  localStorage.setItem("theme", name);
}

function keys(event) {
  const buttons = [...document.querySelectorAll(".hit > button")];
  const at = buttons.indexOf(document.activeElement);
  const typing = document.activeElement === $("query");
  const last = typing && (!$("query").value.includes("\n") || $("query").selectionEnd === $("query").value.length);
  if (typing && event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    $("form").requestSubmit();
  } else if (event.key === "/" && !/^(input|select|textarea)$/i.test(document.activeElement.tagName)) {
    event.preventDefault();
    $("query").focus();
    $("query").select();
  } else if (event.key === "ArrowDown" && (last || at >= 0) && buttons.length) {
    event.preventDefault();
    buttons[Math.min(at + 1, buttons.length - 1)].focus();
  } else if (event.key === "ArrowUp" && at >= 0) {
    event.preventDefault();
    (at === 0 ? $("query") : buttons[at - 1]).focus();
  } else if (event.key === "Escape") {
    const open = document.querySelector(".hit.open");
    if (open) {
      close(open);
      state.open = null;
      open.firstElementChild.focus();
    } else if (at >= 0) $("query").focus();
    else if (typing && $("query").value) {
      $("query").value = "";
      search();
    }
  }
}

$("form").addEventListener("submit", (event) => {
  event.preventDefault();
  const first = document.querySelector(".hit > button");
  if (first && $("query").value === state.text) first.focus();
  else search();
});
$("query").addEventListener("input", search);
$("beam").addEventListener("input", beamMoved);
$("count").addEventListener("change", search);
$("curl").addEventListener("click", () => showCommand(command("v1/search", question(state.text, beam()), state.token)));
$("model").addEventListener("change", () => { choose($("model").value); filterOf(new URLSearchParams()).then(search); });
$("theme").addEventListener("click", () => {
  const names = Object.keys(THEMES);
  theme(names[(names.indexOf($("theme").dataset.now) + 1) % names.length]);
});
$("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  state.token = $("token").value.trim();
  sessionStorage.setItem("token", state.token);
  begin().catch(showError);
});
document.addEventListener("keydown", keys);
theme(THEMES[localStorage.getItem("theme")] ? localStorage.getItem("theme") : "system");
$("strip").hidden = $("filter").hidden = true;
begin().catch(showError);
