// why.js — the server's explanation of a label in, its elements out: the way through the tree, and each word's share.
// Loaded before page.js, which uses what is here to make elements and to write numbers for people.
"use strict";

const $ = (id) => document.getElementById(id);

/** An element with attributes, properties that begin with a dot, listeners that begin with "on", and children. */
function make(tag, options = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(options)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "class") element.className = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

function width(element, share) {
  element.style.width = `${(Math.max(0, Math.min(1, share)) * 100).toFixed(2)}%`;
  return element;
}

// --- numbers for people --------------------------------------------------------------------------------------------

const microseconds = (us) => (us < 1000 ? `${us < 100 ? us.toFixed(1) : us.toFixed(0)} µs` : `${(us / 1000).toFixed(us < 10000 ? 2 : 1)} ms`);

function number(value, digits = 4) {
  if (value === null) return "−∞";
  if (value === 0) return "0";
  const size = Math.abs(value);
  const plain = size < 0.01 ? value.toPrecision(2) : value.toFixed(size >= 100 ? 2 : digits);
  const text = size >= 1e-4 && size < 1e5 ? plain : value.toExponential(2);
  return text.replace("-", "−");
}

const signed = (value) => (value > 0 ? "+" : "") + number(value);

/** A term as people can tell it from others: runs of letters begin or end with a space where a word does. */
const shown = (term) => term.replace(/^ | $/g, "·");

/** The length of a bar: the score itself up to 1, else beside the best one's. Scores below 0 are logarithms. */
function share(score, best) {
  if (score === null) return 0;
  if (best !== null && best > 0) return best <= 1 ? score : score / best;
  return Math.exp(score - (best ?? 0));
}

// What found a hit, of models that have trees and words.
const MEMBERS = { trees: "found by the trees", words: "found by its words", both: "found by the trees and by its words" };
const SHORT = { trees: "trees", words: "words", both: "trees + words" };

// --- why -----------------------------------------------------------------------------------------------------------

function explanation(value) {
  const parts = value.trees.map((tree, i) => {
    const inner = [
      ...(tree.steps[0].layer === null ? [] : [make("h3", {}, "The way through the tree", make("span", {}, value.path === "product" ? "× this node → score" : "this node → score")), way(tree, value)]),
      make("h3", {}, "Each word’s share of the sum"), ledger(tree, value),
    ];
    if (value.trees.length === 1) return make("div", {}, ...inner);
    const title = `Tree ${tree.tree + 1} of ${value.number_of_trees}: score ${number(tree.score)}`;
    return make("details", { open: i === 0 }, make("summary", {}, title), ...inner);
  });
  return value.head ? [together(value), ...parts] : parts;
}

/** Of a model that has trees and words: what each word of the label adds, and how both members became one score. */
function together(value) {
  const { head, words } = value;
  const shares = [...words.shares].sort((a, b) => b.product - a.product).slice(0, 8);
  const cells = (...all) => all.map((one, i) => make(i ? "td" : "th", i ? {} : { scope: "row" }, make("span", {}, one)));
  const listed = head.tree_score === null ? "not listed" : number(head.tree_score);
  return make("div", {},
    make("h3", {}, "Trees and words together"),
    make("div", { class: "ledger", tabindex: "0", role: "group", "aria-label": "Trees and words together" }, make("table", {},
      make("thead", {}, make("tr", {}, ...["", "score", "counts as", "times", "adds"].map((name) => make("th", { scope: "col" }, name)))),
      make("tbody", {},
        make("tr", {}, ...cells("trees", listed, number(head.evidence), number(head.trees), signed(head.trees * head.evidence))),
        make("tr", {}, ...cells("words", number(head.word_sum), number(head.share), number(head.words), signed(head.words * head.share))),
        make("tr", {}, ...cells("always", "", "", "", signed(head.bias)))),
      make("tfoot", {}, make("tr", {}, ...cells("sum z → score", number(head.score), "", "", number(head.z)))))),
    make("p", { class: "quiet small" }, shares.length ? `Words: ${shares.map((s) => `${shown(s.word)} ${signed(s.product)}`).join(", ")}` : "No word in common."));
}

/** The nodes from the top to the label, each with the words that it is about; those of the query stand out. */
function way(tree, value) {
  return make("ol", { class: "path" }, ...tree.steps.map((step, i) => {
    const met = new Set(step.shares.filter((s) => s.product > 0).map((s) => s.word));
    const last = i === tree.steps.length - 1;
    const words = make("span", { class: "words" });
    if (last) words.append(make("span", { class: "leaf" }, value.name));
    const about = step.words.filter((telling) => !last || telling.word !== value.name);
    for (const telling of about.slice(0, last ? 5 : 8)) words.append(make("span", { class: met.has(telling.word) ? "met" : null, title: `weight ${telling.weight}` }, shown(telling.word)));
    const run = make("span", { class: "run", title: String(step.score) }, `${value.path === "product" ? "×" : ""}${number(step.activation, 3)} → `, make("b", {}, number(step.score, 3)));
    return make("li", {}, words, run);
  }));
}

/** A row per word, a column per layer: what the word adds to that layer's z. Down a column the numbers add up to z. */
function ledger(tree, value) {
  const words = new Map();
  tree.steps.forEach((step, layer) => {
    for (const s of step.shares.filter((one) => one.word !== ENCODED)) {
      if (!words.has(s.feature)) words.set(s.feature, { word: s.word, shares: [] });
      words.get(s.feature).shares[layer] = s;
    }
    const encoded = step.shares.filter((one) => one.word === ENCODED);
    if (!encoded.length) return;
    if (!words.has(ENCODED)) words.set(ENCODED, { word: ENCODED, shares: [] });
    const product = encoded.reduce((sum, one) => sum + one.product, 0);
    words.get(ENCODED).shares[layer] = { product, value: `${encoded.length} numbers`, weight: "their weights" };
  });
  const rows = [...words.values()].sort((a, b) => weight(b) - weight(a));
  const most = Math.max(1e-30, ...rows.flatMap((row) => row.shares.filter(Boolean).map((s) => Math.abs(s.product))));
  const cell = (amount, title, shaded) => {
    if (amount === null || amount === undefined) return make("td", {}, make("span", { class: "quiet" }, "·"));
    const made = make("td", { class: !shaded ? null : amount < 0 ? "against" : "for", title }, make("span", {}, signed(amount)));
    made.style.setProperty("--amount", (Math.abs(amount) / most).toFixed(3));
    return made;
  };
  const line = (name, amounts) => make("tr", {}, make("th", { scope: "row" }, name), ...amounts.map((a) => make("td", { title: String(a) }, make("span", {}, number(a)))));
  const head = make("tr", {}, make("th", { scope: "col" }, "Word"), ...tree.steps.map((_, i) => make("th", { scope: "col" }, i === tree.steps.length - 1 ? "Label" : `Layer ${i + 1}`)));
  const body = rows.map((r) => make("tr", {}, make("th", { scope: "row" }, shown(r.word)), ...tree.steps.map((_, i) => cell(r.shares[i]?.product, r.shares[i] && `${r.shares[i].value} × ${r.shares[i].weight} = ${r.shares[i].product}`, true))));
  if (tree.steps.some((step) => step.bias)) body.push(make("tr", {}, make("th", { scope: "row", class: "quiet" }, "bias"), ...tree.steps.map((step) => cell(step.bias, String(step.bias), false))));
  return make("div", { class: "ledger", tabindex: "0", role: "group", "aria-label": "Shares of the words" },
    make("table", {}, make("thead", {}, head), make("tbody", {}, ...body), make("tfoot", {},
      line("sum z", tree.steps.map((step) => step.z)),
      ...(tree.steps[0].layer === null ? [] : [line(value.activation, tree.steps.map((step) => step.activation)),
        line("score so far", tree.steps.map((step) => step.score))]))));
}

/** What the numbers of an encoder are called: they are one row of the table. */
const ENCODED = "(meaning)";

const weight = (row) => row.shares.reduce((sum, s) => sum + (s ? Math.abs(s.product) : 0), 0);
