import {$, el, fill, get, post, page, complain, say, commands, number, duration, when, sentence} from "./dom.js";
import {chart, limits, line, range, show, source} from "./plots.js";
import {Cutter} from "./cutter.js";
import {planForm, readingForm} from "./planform.js";

const state = {file: null, columns: [], roles: {}, cutter: null, form: null, reading: null, layout: "", proposed: "", asked: 0, inspected: 0, timed: "", trial: null, named: false};
const ROLES = ["–", "input", "output", "time"];
const LAYOUT = ["sheet", "header_row", "skip_rows", "dates"];  // where the table stands in the file: columns follow from it

const of = (role) => state.columns.filter((column) => state.roles[column.key] === role).map((column) => column.key);

function draft() {
  const picked = (id) => [...($(id)?.selectedOptions ?? [])].map((one) => one.value);
  return {
    files: {training: state.file ? [state.file] : [], validation: picked("validation-files"), test: picked("test-files")},
    inputs: of("input"), outputs: of("output"), time: of("time")[0] ?? null, reading: state.reading.values(),
    cut: state.cutter?.cut ?? null, ...state.form.values(), run: state.named ? $("name").value : null,
  };
}

const said = (column) => column.notes.map((note) => el("p", {text: sentence(note)}));

function columnRow(column, i) {
  const choose = el("select", {"aria-label": `Role of ${column.name}`, onchange: (event) => {
    state.roles[column.key] = event.target.value;
    changed();
    inspectAgain();
  }}, ROLES.map((role) => el("option", {value: role, text: role, selected: state.roles[column.key] === role})));
  const notes = el("div", {class: "said"}, said(column));
  notes.dataset.column = column.key;
  return el("tr", {}, el("th", {scope: "row"}, column.name, notes), el("td", {}, choose), el("td", {text: column.unit ?? ""}),
    el("td", {class: "n", text: number(column.low)}), el("td", {class: "n", text: number(column.high)}), el("td", {class: "n", text: column.missing ? number(column.missing) : ""}));
}

// A file as `inspect` sees it. Notes stand with the column that they are about.
function notes(found) {
  fill($("inspection"), found.notes.length ? el("ul", {}, found.notes.map((note) => el("li", {text: sentence(note)}))) : null);
  commands($("inspect-commands"), found.command, found.python, "Inspect: ");
  for (const place of document.querySelectorAll("#columns .said")) {
    const column = found.columns.find((one) => one.key === place.dataset.column);
    fill(place, column ? said(column) : null);
  }
}

async function open(name) {
  state.file = name;
  state.cutter = null;
  state.roles = {};
  state.layout = state.proposed = "";
  history.replaceState(null, "", page("/new", {file: name}));
  state.reading.clear();
  await read(true);
}

// Read the file anew, after a change of how it is read too: roles of columns that are still there stay as they are.
async function read(fresh = false) {
  const mine = (state.inspected += 1), name = state.file, reading = state.reading.values();
  complain(null);
  const layout = JSON.stringify([name, LAYOUT.map((one) => reading[one])]), same = layout === state.layout;
  let found;
  try {
    found = await get("/api/file", {name, ...reading, ...(fresh ? {} : {time: of("time"), inputs: of("input"), outputs: of("output")})});
  } catch (error) {
    if (mine !== state.inspected) return;
    complain(error);
    if (same) return changed();
    state.layout = "";
    // How it is read can be said, so that a file that has to be told its sheet or its dates can be opened.
    for (const id of ["columns", "inspection", "inspect-commands"]) fill($(id));
    state.columns = [];
    $("reading").hidden = false;
    $("reading").querySelector("details").open = true;
    $("cut-section").hidden = $("plan-section").hidden = true;
    return;
  }
  if (mine !== state.inspected) return;
  if (state.proposed !== name) state.reading.propose(found.proposed, found.sampling_time);
  state.proposed = name;
  if (!same) {
    state.layout = layout;
    state.columns = found.columns;
    state.roles = Object.fromEntries(found.columns.map((column) => [column.key, state.roles[column.key] ?? column.role ?? "–"]));
    fill($("columns"), el("table", {}, el("caption", {class: "unseen", text: `Columns of ${name}`}),
      el("thead", {}, el("tr", {}, ["Column", "Role", "Unit", "From", "To", "Missing"].map((title, i) => el("th", {scope: "col", class: i > 2 ? "n" : null, text: title})))),
      el("tbody", {}, found.columns.map(columnRow))));
  }
  notes(found);
  $("reading").hidden = $("cut-section").hidden = $("plan-section").hidden = false;
  changed();
  if (!same) await channels(name);
}

// What is suspected of the plant is about the inputs and outputs that are chosen.
let inspecting = null;
function inspectAgain() {
  clearTimeout(inspecting);
  inspecting = setTimeout(() => read().catch(complain), 600);
}

function field(id, title, control, help) {
  return el("div", {class: "field"}, el("label", {for: id, text: title}), control, help ? el("small", {text: help}) : null);
}

const roleOf = (column) => state.roles[state.columns[column.number - 1]?.key];

async function channels(name) {
  const place = $("channels");
  fill(place, el("p", {class: "quiet", text: "Drawing …"}));
  let found;
  try {
    found = await get("/api/curves", {name, ...Object.fromEntries(Object.entries(state.reading.values()).filter(([one]) => LAYOUT.includes(one))), width: Math.min(1200, place.clientWidth)});
  } catch (error) {
    fill(place);
    complain(error);
    return;
  }
  place.replaceChildren();
  const charts = [];
  const x = range(0, Math.max(1, found.length - 1));
  const shown = found.columns.filter((column) => column.y.some((value) => value !== null) && roleOf(column) !== "time").slice(0, 12);
  for (const [i, column] of shown.entries()) {
    const last = i === shown.length - 1;
    const one = chart({height: shown.length < 4 ? 130 : 96, x, y: range(...limits(column.y)), title: column.name.slice(0, 14), unit: column.unit, xlabel: last ? "sample" : "", tools: false});
    line(one, source({x: column.x, y: column.y.map((v) => v ?? NaN)}), "x", "y", {input: "second", output: "accent", time: "soft"}[roleOf(column)] ?? "measured", 1.2);
    charts.push(one);
  }
  const view = await show(charts, place.appendChild(el("div", {role: "img", "aria-label": `Over the rows of the file: ${shown.map((column) => column.name).join(", ")}`})));
  const frame = (view.child_views?.[0] ?? view).frame?.bbox;
  state.cutter = new Cutter(place, found.length, found.rows, changed);
  if (frame) { state.cutter.layer.style.left = `${frame.left}px`; state.cutter.layer.style.right = "auto"; state.cutter.layer.style.width = `${frame.width}px`; }
  place.dataset.drawn = "yes";
}

const PRESETS = [["Let the data decide", [0, 1, 1, 1]], ["Train 70 %, validate 30 %", [0, 0.7, 1, 1]], ["60 / 20 / 20 %", [0, 0.6, 0.8, 1]]];
fill($("presets"), PRESETS.map(([text, parts]) => el("button", {type: "button", text, onclick: () => state.cutter?.set(parts.map((part) => part * state.cutter.length))})));

function cutWords() {
  const cut = state.cutter?.cut;
  if (!cut) return "Nothing is cut: how networks are scored follows from the length of the data.";
  return ["training", "validation", "test"].map((role) => (cut[role] ? `${role}: rows ${number(cut[role][0])} to ${number(cut[role][1])}` : `no ${role} data`)).join(", ") + ".";
}

let timer = null;
function changed() {
  $("cut-words").textContent = cutWords();
  clearTimeout(timer);
  timer = setTimeout(work, 250);
}

async function work() {
  const mine = (state.asked += 1);
  const content = draft();
  let found;
  try {
    found = await post("/api/numbers", content);
  } catch (error) {
    found = {error: error.message};
  }
  if (mine !== state.asked) return;
  const settled = found.settled;
  $("problem").hidden = !found.error;
  $("problem").textContent = found.error ? sentence(found.error) : "";
  if (!state.named && found.run) $("name").value = found.run;
  $("start").disabled = !settled;
  const drawn = content.plan.members > 1 ? "committees" : "networks";
  const families = settled?.families.length ?? 1;
  $("headline").textContent = found.networks ? `${content.plan.stop || content.plan.target ? "at least " : ""}${number(found.networks * families)} ${drawn}` : "Choose a file";
  const sampling = settled ? `every ${number(settled.sampling_time)} s` : "";
  fill($("facts"), pairs([
    ["certified", found.epsilon ? `epsilon ${number(found.epsilon)}, confidence 1 − ${number(found.beta)}` : null],
    ["drawn from", settled ? settled.law + (families > 1 ? ` (${families} families)` : "") : null],
    ["selected by", settled ? settled.scores[0] : null],
    ["data", settled ? `${number(settled.samples.training)} training${settled.samples.validation ? `, ${number(settled.samples.validation)} validation` : ""}${settled.samples.test ? `, ${number(settled.samples.test)} test` : ""} samples, ${sampling}` : null],
    ["validation", settled ? (settled.blocks ? `${settled.blocks} blocks in turn` : "held-out data") : null],
    ["washout", settled ? `${settled.washout} samples` : null],
  ]));
  before(settled);
  commands($("commands"), found.command, found.python);
  if (settled) await estimate(content, settled, mine); else $("time").textContent = "";
}

export function pairs(list) {
  return list.filter(([, value]) => value !== null && value !== undefined && value !== "").flatMap(([name, value]) => [el("dt", {text: name}), el("dd", {}, value)]);
}

function before(settled) {
  const earlier = settled?.before ?? [];
  const nth = settled?.search ?? 1;
  $("before").hidden = !earlier.length && nth < 2;
  if ($("before").hidden) return;
  const counted = nth > 1 ? `This is search number ${nth} on these records, and is certified as such. ` : earlier.length ? `These data were looked at before, by ${earlier.length === 1 ? "one run" : `${earlier.length} runs`}. ` : "";
  fill($("before"), el("p", {text: `${counted}Another run with other settings after that look is not covered by the first certificate; it has its own, and both stay in the list.`}),
    el("ul", {}, earlier.slice(-4).map((one) => el("li", {}, el("a", {href: page("/run", {name: one.name}), text: one.name}), `, ${when(one.made)}`))));
}

// Time depends on what is drawn and on the data, not on how many: a few draws are timed once for each.
async function estimate(content, settled, mine) {
  const {epsilon, beta, networks, bound, seed, discarded, joint, stop, target, committee, ...rest} = content.plan;
  const key = JSON.stringify([content.files, content.inputs, content.outputs, content.cut, content.reading, rest, content.computing, settled.blocks]);
  const words = () => { $("time").textContent = state.trial ? `about ${duration((state.trial.each * settled.networks * settled.families.length) / state.trial.workers + state.trial.rest)}, by ${state.trial.draws} trial draws that nobody looks at` : ""; };
  if (key === state.timed) return words();
  $("time").textContent = "timing a few draws …";
  let found;
  try { found = await post("/api/estimate", content); } catch { found = {}; }
  if (mine !== state.asked) return;
  if (found.busy) { setTimeout(() => mine === state.asked && work(), 1500); return; }
  if (!found.each) { $("time").textContent = ""; return; }
  state.timed = key;
  state.trial = found;
  words();
}

$("name").addEventListener("input", () => { state.named = true; changed(); });
$("start").addEventListener("click", async () => {
  $("start").disabled = true;
  try {
    const found = await post("/api/runs", draft());
    location.href = page("/run", {name: found.run});
  } catch (error) {
    complain(error);
    scrollTo({top: 0});
    $("start").disabled = false;
  }
});

async function begin() {
  const [folder, form] = await Promise.all([get("/api/folder"), get("/api/form")]);
  state.form = planForm($("plan"), form.groups, changed);
  state.reading = readingForm($("reading"), form.reading, inspectAgain);
  const names = folder.files.map((file) => file.name);
  const wanted = new URLSearchParams(location.search).get("file");
  fill($("file"), el("option", {value: "", text: names.length ? "Choose a file" : "No files yet: drop some on the first page"}), names.map((name) => el("option", {value: name, text: name, selected: name === wanted})));
  $("file").addEventListener("change", (event) => { state.named = false; state.timed = ""; if (event.target.value) open(event.target.value); });
  fill($("roles"), ["validation", "test"].map((role) => field(`${role}-files`, `Files for ${role}`, el("select", {id: `${role}-files`, multiple: true, size: 4, onchange: changed}, names.map((name) => el("option", {value: name, text: name}))), role === "test" ? "Opened once, at the very end." : "Networks are compared on these.")));
  if (names.includes(wanted)) await open(wanted);
}
begin().catch((error) => { console.error(error); complain(error); });
