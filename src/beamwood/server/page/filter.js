// filter.js — labels that a reader wants, or does not want, in: what every question of the page says about them out.
// Labels are typed by key or by name, or taken from a hit; page.js calls what is here.
"use strict";

const SIDES = { allow: ["only", "only "], deny: ["not", "not "] }; // field of a question: name in the address, before the label
const LOOKED_AT = 50; // labels that are looked through for a name

const chosen = { allow: new Map(), deny: new Map() }; // key → name

/** Fields of a question. */
function filtered() {
  const fields = {};
  for (const side of Object.keys(SIDES)) if (chosen[side].size) fields[side] = [...chosen[side].keys()];
  if ($("least").value) fields[state.model.calibrated ? "threshold" : "min_score"] = Number($("least").value);
  return fields;
}

/** The same in the address of the page. */
function rememberFilter(fields) {
  for (const [side, [name]] of Object.entries(SIDES)) for (const key of chosen[side].keys()) fields.append(name, key);
  if ($("least").value) fields.set("least", $("least").value);
}

async function filterOf(fields) {
  $("least").value = fields.get("least") ?? "";
  for (const [side, [name]] of Object.entries(SIDES)) {
    chosen[side].clear();
    for (const key of fields.getAll(name)) await add(side, key);
  }
  showFilter();
}

/** The label that a name or a key means, or null. A name is searched for, as labels are found by their words. */
async function labelOf(text) {
  const plain = (name) => name.toLocaleLowerCase();
  const meant = (hit) => hit.key === text || plain(hit.name) === plain(text);
  const { name, labels } = state.model;
  const asked = { text, k: Math.min(LOOKED_AT, labels), model: name };
  const found = state.hits.find(meant) ?? (await ask("v1/search", asked)).value.hits.find(meant);
  if (found) return found;
  try {
    return (await ask(`v1/labels/${encodeURIComponent(text)}?by=key&model=${encodeURIComponent(name)}`)).value;
  } catch (error) {
    if (error.status === 404) return null;
    throw error;
  }
}

async function add(side, text) {
  const label = await labelOf(text);
  $("filter-said").textContent = label ? "" : `No label has the key or the name “${text}”.`;
  if (!label) return false;
  for (const other of Object.keys(SIDES)) chosen[other].delete(label.key);
  chosen[side].set(label.key, label.name);
  return true;
}

/** Leaves a label out of all answers from now on. */
function leaveOut(hit) {
  chosen.allow.delete(hit.key);
  chosen.deny.set(hit.key, hit.name);
  $("filter").open = true;
  changed();
}

function changed() {
  showFilter();
  search();
}

function showFilter() {
  const chip = (side, key, name) => make("li", {},
    make("button", { type: "button", title: key, "aria-label": `Take back: ${SIDES[side][1]}${name}`, onclick: () => { chosen[side].delete(key); changed(); } },
      make("span", { class: "quiet" }, SIDES[side][1]), make("span", { dir: "auto" }, name), " ×"));
  const chips = Object.keys(SIDES).flatMap((side) => [...chosen[side]].map(([key, name]) => chip(side, key, name)));
  $("filter-labels").replaceChildren(...chips);
  const parts = chips.length + ($("least").value ? 1 : 0);
  $("filter-count").textContent = parts ? String(parts) : "";
  $("filter-count").hidden = !parts;
  $("least-of").textContent = state.model?.calibrated ? "probable (0 to 1)" : "as score";
}

$("filter-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = $("filter-label").value.trim();
  if (!text) return;
  add(event.submitter?.value ?? "allow", text)
    .then((known) => {
      if (!known) return;
      $("filter-label").value = "";
      changed();
    })
    .catch((error) => { $("filter-said").textContent = error.message; });
});
$("least").addEventListener("input", changed);
