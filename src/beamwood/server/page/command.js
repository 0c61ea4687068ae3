// command.js — the question that the page asks in, the same as a command for a shell out: shown, and copied where a page may.
"use strict";

/** Text as one word of a shell. */
const quoted = (text) => `'${text.replaceAll("'", String.raw`'\''`)}'`;

/** The request as people repeat it; the token stays where it is. */
function command(path, body, token) {
  const header = token ? `-H "authorization: Bearer $TOKEN" ` : "";
  return `curl ${header}-d ${quoted(JSON.stringify(body))} ${new URL(path, location.href)}`;
}

/** Shows a command below the hits, and says whether it was copied too. */
async function showCommand(text) {
  $("command").textContent = text;
  $("command").hidden = false;
  try {
    await navigator.clipboard.writeText(text); // not there, or refused, on pages that came without TLS from elsewhere
    $("status").textContent = "Copied.";
  } catch {
    getSelection().selectAllChildren($("command"));
    $("status").textContent = "The command is selected.";
  }
}
