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

function example(method, path, parameters, body, secured) {
  let address = path;
  for (const { name, in: place, schema, required } of parameters) {
    const value = encodeURIComponent(schema.examples?.[0] ?? "");
    if (place === "path") address = address.replace(`{${name}}`, value);
    else if (required) address += `${address.includes("?") ? "&" : "?"}${name}=${value}`;
  }
  const parts = [`curl '${location.origin}${address}'`];
  if (secured) parts.push("-H 'authorization: Bearer TOKEN'");
  if (body?.examples) parts.push(`-d '${JSON.stringify(body.examples[0])}'`);
  else if (method === "post") parts.push(path.endsWith("suggest") ? "-d text=jazz -d limit=5" : "-X POST");
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
      const body = find(Object.values(operation.requestBody?.content ?? {})[0]?.schema);
      const given = (operation.parameters ?? []).map((p) => [p.name, p.schema, p.required]);
      for (const [name, schema] of Object.entries(body?.properties ?? {})) given.push([name, schema, (body.required ?? []).includes(name)]);
      if (given.length) card.append(fields(given));
      card.append(example(method, path, operation.parameters ?? [], body, operation.security?.length));
      document.getElementById("operations").append(card);
    }
  }
}

begin().catch(() => { document.getElementById("about").textContent = "The document cannot be read."; });
