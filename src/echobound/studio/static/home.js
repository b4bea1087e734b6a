import {$, el, fill, get, put, post, page, complain, say, number, when, size} from "./dom.js";

const chosen = new Set();
let runs = [], sorted = {by: "made", up: false}, last = "";

const COLUMNS = [
  ["name", "Run", (r) => r.name],
  ["state", "State", (r) => r.state],
  ["grade", "Verdict", (r) => ["unusable", "poor", "usable", "good"].indexOf(r.grade)],
  ["fit", "FIT", (r) => fit(r) ?? -Infinity, true],
  ["law", "Law", (r) => r.law ?? ""],
  ["networks", "Networks", (r) => r.networks ?? 0, true],
  ["epsilon", "Epsilon", (r) => r.epsilon ?? 0, true],
  ["best", "Certified", (r) => r.best ?? -Infinity, true],
  ["made", "Made", (r) => r.made, true],
];

// On test data where they were opened, else on validation data.
const fit = (run) => run.scores?.test?.fit ?? run.scores?.validation?.fit ?? null;

function row(run) {
  const box = el("input", {type: "checkbox", checked: chosen.has(run.name), disabled: run.state !== "finished", "aria-label": `Compare ${run.name}`,
    onchange: (event) => { event.target.checked ? chosen.add(run.name) : chosen.delete(run.name); $("compare").disabled = !chosen.size; }});
  const said = [run.fresh ? `${number(run.fresh)} fresh` : "", run.tested ? "tested" : ""].filter(Boolean).join(", ");
  return el("tr", {},
    el("td", {}, box),
    el("th", {scope: "row"}, el("a", {href: page("/run", {name: run.name}), text: run.name})),
    el("td", {}, el("span", {class: `state ${run.state}`, text: run.state}), said ? el("small", {class: "quiet", text: ` ${said}`}) : null),
    el("td", {}, run.grade ? el("span", {class: `word ${run.grade}`, text: run.grade}) : null),
    el("td", {class: "n", text: fit(run) === null ? "" : `${number(fit(run), 3)} %`}),
    el("td", {text: run.law ?? ""}),
    el("td", {class: "n", text: run.networks ? number(run.networks * (run.families ?? 1)) : ""}),
    el("td", {class: "n", text: run.epsilon ? number(run.epsilon) : ""}),
    el("td", {class: "n", text: run.best === null || run.best === undefined ? "" : `${run.title ?? run.score} ${number(run.best)}`}),
    el("td", {class: "n", text: when(run.made)}));
}

function table() {
  const wanted = $("search").value.trim().toLowerCase();
  const shown = runs.filter((run) => `${run.name} ${run.state} ${run.law ?? ""} ${run.score ?? ""}`.toLowerCase().includes(wanted));
  const key = COLUMNS.find(([name]) => name === sorted.by)[2];
  shown.sort((a, b) => (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : 0) * (sorted.up ? 1 : -1));
  if (!shown.length) {
    fill($("runs"), el("p", {class: "empty", text: runs.length ? "No run has that in its name, state, law or score." : "No runs yet. Choose a file above, or start one on the command line: it appears here."}));
    return;
  }
  const heads = COLUMNS.map(([name, title, , right]) => el("th", {scope: "col", class: right ? "n" : null, "aria-sort": sorted.by === name ? (sorted.up ? "ascending" : "descending") : null},
    el("button", {type: "button", text: title + (sorted.by === name ? (sorted.up ? " ↑" : " ↓") : ""), onclick: () => { sorted = {by: name, up: sorted.by === name ? !sorted.up : name === "name"}; table(); }})));
  fill($("runs"), el("table", {}, el("thead", {}, el("tr", {}, el("th", {scope: "col"}, el("span", {class: "unseen", text: "Compare"})), heads)), el("tbody", {}, shown.map(row))));
}

function files(found) {
  fill($("files"), found.map((file) => el("li", {}, el("span", {}, file.name, el("small", {text: size(file.size)})), el("a", {class: "button", href: page("/new", {file: file.name}), text: "Identify", "aria-label": `Identify ${file.name}`}))));
}

function queue(jobs) {
  const open = jobs.filter((job) => ["running", "queued"].includes(job.state));
  $("queue-section").hidden = !open.length;
  fill($("queue"), open.map((job) => el("li", {}, el("span", {class: `state ${job.state}`, text: `${job.kind}, ${job.state}`}), " ", el("a", {href: page("/run", {name: job.run}), text: job.run}), " ",
    el("button", {type: "button", class: "link", text: job.state === "queued" ? "take off" : "stop", "aria-label": `Stop ${job.kind} of ${job.run}`, onclick: async () => { try { await post("/api/job", {key: job.key, what: "stop"}); await look(); } catch (error) { complain(error); } }}))));
}

async function look() {
  const found = await get("/api/folder");
  const now = JSON.stringify(found);
  if (now === last) return;
  last = now;
  runs = found.runs;
  files(found.files);
  table();
  queue(found.jobs);
}

async function upload(several) {
  const limit = Number($("drop").dataset.limit), bar = $("upload");
  complain(null);
  bar.hidden = false;
  let done = 0;
  for (const file of several) {
    try {
      if (file.size > limit) throw new Error(`${file.name} is larger than ${Math.round(limit / 1048576)} MiB: put it into the folder yourself`);
      await put("/api/files", {name: file.name}, file);
      say(`${file.name} is in the folder`);
    } catch (error) {
      complain(error);
    }
    done += 1;
    bar.value = done / several.length;
  }
  bar.hidden = true;
  await look();
}

const drop = $("drop");
for (const name of ["dragenter", "dragover"]) drop.addEventListener(name, (event) => { event.preventDefault(); drop.classList.add("over"); });
for (const name of ["dragleave", "drop"]) drop.addEventListener(name, () => drop.classList.remove("over"));
drop.addEventListener("drop", (event) => { event.preventDefault(); upload([...event.dataTransfer.files]); });
for (const name of ["dragover", "drop"]) addEventListener(name, (event) => event.preventDefault());
$("picker").addEventListener("change", (event) => upload([...event.target.files]).then(() => { event.target.value = ""; }));
$("search").addEventListener("input", table);
$("compare").addEventListener("click", () => { location.href = page("/compare", {run: [...chosen]}); });

async function follow() {
  try { await look(); complain(null); } catch (error) { complain(error); }
  setTimeout(follow, document.hidden ? 10000 : 2000);
}
follow();
