import {$, el, fill, get, post, page, complain, commands, number, sentence} from "./dom.js";
import {chart, limits, line, range, show, source} from "./plots.js";

const COLOURS = ["accent", "second", "third", "fourth", "alert", "dot", "soft", "measured"];
const state = {runs: [], models: [], record: null, x: null, sources: [], span: [0, 1], asked: 0};

async function choices() {
  const folder = await get("/api/folder");
  const finished = folder.runs.filter((run) => run.certified === "certified");
  const wanted = new URLSearchParams(location.search).getAll("run");
  state.runs = wanted.filter((name) => finished.some((run) => run.name === name));
  if (!state.runs.length && finished.length) state.runs = finished.slice(0, 2).map((run) => run.name);
  fill($("runs"), finished.length ? finished.map((run) => el("label", {}, el("input", {type: "checkbox", value: run.name, checked: state.runs.includes(run.name), onchange: runsChanged}), el("span", {text: run.name}))) : el("p", {class: "quiet", text: "No finished run yet."}));
  if (state.runs.length) await modelsOf();
}

async function runsChanged() {
  state.runs = [...$("runs").querySelectorAll("input:checked")].map((box) => box.value);
  history.replaceState(null, "", page("/compare", {run: state.runs}));
  await modelsOf().catch(complain);
}

const key = (model) => `${model.run} ${model.model}`;

async function modelsOf() {
  complain(null);
  const found = await get("/api/compare", {run: state.runs});
  if (found.problems.length) complain(new Error(found.problems.map(sentence).join(" ")));
  const before = new Set(state.models.map(key));
  const all = found.models;
  state.models = all.filter((model) => (before.size && before.has(key(model))) || (!state.models.some((one) => one.run === model.run) && model.delivered));
  fill($("models"), all.map((model) => el("label", {}, el("input", {type: "checkbox", checked: state.models.some((one) => key(one) === key(model)), onchange: (event) => {
    state.models = event.target.checked ? [...state.models, model] : state.models.filter((one) => key(one) !== key(model));
    draw().catch(complain);
  }}), el("span", {}, `${model.run} `, el("small", {text: model.model + (model.delivered ? ", delivered" : "")})))));
  const last = $("record").value;
  fill($("record"), found.records.map((record) => el("option", {value: record.key, text: record.title, selected: record.key === last})));
  await draw();
}

async function ask(start = null, stop = null) {
  return post("/api/compare", {models: state.models.map((model) => [model.run, model.model]), record: $("record").value, start, stop, width: Math.min(1400, $("plots").clientWidth)});
}

const clean = (values) => values.map((value) => value ?? NaN);

async function draw() {
  const mine = (state.asked += 1);
  $("empty").hidden = state.models.length > 0;
  $("zoom").hidden = !state.models.length;
  if (!state.models.length) { fill($("plots")); fill($("table")); fill($("commands")); return; }
  $("plots").setAttribute("aria-busy", "true");
  let found;
  try { found = await ask(); } finally { $("plots").removeAttribute("aria-busy"); }
  if (mine !== state.asked) return;
  state.span = found.span;
  state.x = range(...found.span, found.span);
  state.sources = [];
  $("plots").replaceChildren();
  const names = found.outputs[0].curves.map((curve) => curve.name);
  $("plots").append(el("div", {class: "keys"}, el("span", {}, swatch("measured"), "measured"), names.map((name, i) => el("span", {}, swatch(COLOURS[i]), name))));
  const charts = [];
  for (const output of found.outputs) {
    const top = chart({height: 230, x: state.x, y: range(...limits([...output.measured.y, ...output.curves.flatMap((curve) => near(curve.y, output.measured.y))])), title: output.name, unit: output.unit});
    state.sources.push(add(top, "measured", output.measured.x, output.measured.y, (now) => { const one = now.outputs.find((other) => other.name === output.name).measured; return [one.x, one.y]; }));
    output.curves.forEach((curve, i) => state.sources.push(add(top, COLOURS[i], curve.x, curve.y, (now) => { const one = now.outputs.find((other) => other.name === output.name).curves[i]; return [one.x, one.y]; })));
    charts.push(top);
    const errors = chart({height: 100, x: state.x, y: range(...limits(output.curves.flatMap((curve) => clip(curve.e[1], output.measured.y)))), title: "error", unit: output.unit});
    output.curves.forEach((curve, i) => state.sources.push(add(errors, COLOURS[i], ...curve.e, (now) => now.outputs.find((other) => other.name === output.name).curves[i].e)));
    charts.push(errors);
  }
  for (const [i, input] of found.inputs.entries()) {
    const one = chart({height: 80, x: state.x, y: range(...limits(input.y)), title: input.name, unit: input.unit, xlabel: i === found.inputs.length - 1 ? "time (s)" : ""});
    state.sources.push(add(one, "measured", input.x, input.y, (now) => [now.inputs[i].x, now.inputs[i].y]));
    charts.push(one);
  }
  const label = `${found.record}: ${found.outputs.map((output) => output.name).join(", ")} measured and simulated by ${names.join(", ")}, the errors, and the inputs`;
  await show(charts, $("plots").appendChild(el("div", {role: "img", "aria-label": label})));
  state.x.properties.start.change.connect(zoomed);
  state.x.properties.end.change.connect(zoomed);
  $("plots").dataset.drawn = String(state.asked);
  table(found);
  commands($("commands"), found.command, found.python);
}

// A model that runs away must not flatten the others: it leaves the picture after half a span beyond what was measured.
function near(values, measured) {
  const [low, high] = limits(measured), beyond = 0.5 * (high - low);
  return values.filter((value) => value !== null && value >= low - beyond && value <= high + beyond);
}

// An error far beyond the signal itself is off the scale; the table says how bad it is.
function clip(values, measured) {
  const [low, high] = limits(measured);
  return values.filter((value) => value !== null && Math.abs(value) <= high - low);
}

const swatch = (name) => { const made = el("i"); made.style.borderColor = `var(--${name})`; return made; };

function add(chart, colour, x, y, pick) {
  const data = source({x, y: clean(y)});
  line(chart, data, "x", "y", colour, colour === "measured" ? 1.6 : 1.4);
  return {data, pick};
}

function table(found) {
  const several = found.outputs.length > 1;
  const rows = Object.entries(found.scores).map(([name, one]) => el("tr", {}, el("th", {scope: "row", text: name}), el("td", {class: "n", text: `${number(one.fit)} %`}),
    found.outputs.map((output) => { const each = one.per_output[output.name]; return el("td", {class: "n", text: each ? `${several ? `${number(each.fit)} %, ` : ""}${number(each.rmse)} ${output.unit}` : ""}); }),
    el("td", {text: one.notes.map(sentence).join(" ")})));
  fill($("table"), el("table", {}, el("caption", {class: "unseen", text: "Scores on the same samples"}), el("thead", {}, el("tr", {}, [["Model", ""], ["FIT", "n"], ...found.outputs.map((output) => [several ? `${output.name}: FIT, RMSE` : "RMSE", "n"]), ["", ""]].map(([text, kind]) => el(text ? "th" : "td", {scope: text ? "col" : null, class: kind || null, text})))), el("tbody", {}, rows)), found.notes.length ? el("ul", {class: "quiet"}, found.notes.map((note) => el("li", {text: sentence(note)}))) : null);
}

// All plots share one range; what is in sight is asked for again with every detail.
let timer = null;
function zoomed() {
  clearTimeout(timer);
  timer = setTimeout(async () => {
    const mine = state.asked;
    try {
      const now = await ask(state.x.start, state.x.end);
      if (mine !== state.asked) return;
      for (const one of state.sources) { const [x, y] = one.pick(now); one.data.data = {x, y: clean(y)}; }
    } catch (error) { complain(error); }
  }, 250);
}

$("zoom").addEventListener("click", (event) => {
  const what = event.target.dataset.do;
  if (!what || !state.x) return;
  const [low, high] = state.span, width = state.x.end - state.x.start, middle = (state.x.start + state.x.end) / 2;
  let [start, end] = {in: [middle - 0.3 * width, middle + 0.3 * width], out: [middle - 0.85 * width, middle + 0.85 * width], left: [state.x.start - 0.25 * width, state.x.end - 0.25 * width], right: [state.x.start + 0.25 * width, state.x.end + 0.25 * width], all: [low, high]}[what];
  const shift = Math.max(low - start, 0) - Math.max(end - high, 0);
  if (end - start >= high - low) [start, end] = [low, high]; else [start, end] = [start + shift, end + shift];
  state.x.setv({start, end});
});
$("record").addEventListener("change", () => draw().catch(complain));
choices().catch(complain);
