// calculator.js — counts that a reader types in, what each preset would take out. The same as `beamwood estimate`:
// tests/sizing/test_estimate.py compares the two.
const RATES = {
  "fast": [9.5, 84.0, 12.0, 1.8e8, 293.0],
  "balanced": [54.0, 305.0, 50.0, 2.0e8, 547.0],
  "best": [103.0, 573.0, 78.0, 2.5e8, 810.0]
};
const TRAINING = [0.77, 0.18], FILE = [0.82, 0.25], QUERY = [0.1, 0.0];

function expected(counts) {
  const pairs = counts.rows * counts.labels_per_row, per = pairs / counts.labels;
  const whole = ([byRows, byWords]) => counts.labels * per ** byRows * counts.words ** byWords;
  return Object.entries(RATES).map(([preset, [training, file, query, fixed, pair]]) => ({
    preset,
    training_s: training * whole(TRAINING) / 1e6,
    memory: fixed + pair * pairs,
    file: file * whole(FILE),
    query_us: query * per ** QUERY[0],
  }));
}

function inBytes(count) {
  for (const unit of ["bytes", "kB", "MB", "GB"]) {
    if (count < 1000 || unit === "GB") return `${count < 100 ? count.toFixed(1) : count.toFixed(0)} ${unit}`;
    count /= 1000;
  }
}

function inTime(seconds) {
  if (seconds >= 7200) return `${(seconds / 3600).toFixed(0)} h`;
  if (seconds >= 120) return `${(seconds / 60).toFixed(0)} min`;
  return seconds >= 1 ? `${seconds.toFixed(0)} s` : "under 1 s";
}

function show(form, table) {
  const counts = Object.fromEntries([...new FormData(form)].map(([name, value]) => [name, Number(value)]));
  const bad = Object.values(counts).some((value) => !(value > 0)) || counts.rows * counts.labels_per_row < counts.labels;
  table.replaceChildren(...(bad ? [] : expected(counts)).map((each) => {
    const row = document.createElement("tr");
    const cells = [each.preset, inTime(each.training_s), inBytes(each.memory), inBytes(each.file),
      `${each.query_us.toFixed(0)} µs`];
    row.append(...cells.map((text) => Object.assign(document.createElement("td"), {textContent: text})));
    return row;
  }));
  if (bad) table.innerHTML = '<tr><td colspan="5">Numbers above 0, and at least one row for each label.</td></tr>';
}

if (typeof document !== "undefined") {
  const form = document.getElementById("calculator"), table = document.getElementById("calculated");
  if (form && table) {
    form.addEventListener("input", () => show(form, table));
    form.addEventListener("submit", (event) => event.preventDefault());
    show(form, table);
  }
}
