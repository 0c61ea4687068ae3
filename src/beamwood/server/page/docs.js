// docs.js — the server's OpenAPI document in, a page for people out.
"use strict";

const theme = localStorage.getItem("theme");
if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;

function make(tag, text, ...children) {
  const element = document.createElement(tag);
  if (text !== null) element.textContent = text;
  element.append(...children);
  return element;
}

function kind(schema) {
  if (schema.const !== undefined) return String(schema.const);
  if (schema.enum) return `${schema.enum.join(" or ")}${schema.default !== undefined ? `, usually ${schema.default}` : ""}`;
  if (schema.oneOf && !schema.type) return schema.oneOf.map(kind).join(" or ");
  const bounds = schema.maximum !== undefined && schema.minimum !== undefined ? ` ${schema.minimum} to ${schema.maximum.toLocaleString("en")}` : "";
  const items = schema.type === "array" && schema.items ? ` of ${kind(schema.items) || "values"}s` : "";
  const usual = schema.default !== undefined ? `, usually ${schema.default}` : "";
  return `${[schema.type].flat().filter((name) => name && name !== "null").join(" or ")}${items}${bounds}${usual}`;
}

function fields(pairs) {
  const table = make("table", null);
  for (const [name, schema, required] of pairs) {
    table.append(make("tr", null, make("td", required ? `${name} *` : name), make("td", kind(schema)), make("td", schema.description ?? "")));
  }
  return table;
}

// JSON over several lines, where one does not hold it.
function written(value, indent = "") {
  const flat = JSON.stringify(value);
  if (value === null || typeof value !== "object" || flat.length + indent.length < 100) return flat;
  const [open, close] = Array.isArray(value) ? "[]" : "{}";
  const inner = `${indent}  `;
  const items = Object.entries(value).map(([name, item]) => `${inner}${open === "[" ? "" : `${JSON.stringify(name)}: `}${written(item, inner)}`);
  return `${open}\n${items.join(",\n")}\n${indent}${close}`;
}

function answer(content) {
  const [kind, { example: sample }] = Object.entries(content)[0];
  return make("pre", kind === "application/json" ? written(sample) : sample);
}

function example(method, path, parameters, form, body, secured) {
  let address = path;
  for (const { name, in: place, schema, required } of parameters) {
    const value = encodeURIComponent(schema.examples?.[0] ?? "");
    if (place === "path") address = address.replace(`{${name}}`, value);
    else if (required) address += `${address.includes("?") ? "&" : "?"}${name}=${value}`;
  }
  const parts = [`curl '${location.origin}${address}'`];
  if (secured) parts.push("-H 'authorization: Bearer TOKEN'");
  if (form) for (const [name, value] of Object.entries(body.examples[0])) parts.push(`-d '${name}=${value}'`);
  else if (body?.examples) parts.push(`-d '${JSON.stringify(body.examples[0])}'`);
  else if (method === "post") parts.push("-X POST");
  return make("pre", parts.join(" \\\n  "));
}

async function begin() {
  const api = await (await fetch("openapi.json")).json();
  const find = (thing) => (thing?.$ref ? thing.$ref.split("/").slice(1).reduce((at, name) => at[name], api) : thing);
  document.getElementById("about").textContent = api.info.description;
  for (const [path, methods] of Object.entries(api.paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      const verb = make("span", method.toUpperCase());
      verb.className = "verb";
      const card = make("section", null, make("h2", null, verb, path), make("p", operation.summary));
      card.className = "card";
      const [kindOfBody, sent] = Object.entries(operation.requestBody?.content ?? {})[0] ?? ["", null];
      const body = find(sent?.schema);
      const given = (operation.parameters ?? []).map((p) => [p.name, p.schema, p.required]);
      for (const [name, schema] of Object.entries(body?.properties ?? {})) given.push([name, schema, (body.required ?? []).includes(name)]);
      if (given.length) card.append(fields(given));
      const form = kindOfBody.endsWith("form-urlencoded");
      card.append(example(method, path, operation.parameters ?? [], form, body, operation.security?.length));
      card.append(make("p", "An answer, long lists cut short:"), answer(operation.responses["200"].content));
      document.getElementById("operations").append(card);
    }
  }
}

begin().catch(() => { document.getElementById("about").textContent = "The document cannot be read."; });
