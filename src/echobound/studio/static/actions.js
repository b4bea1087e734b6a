// What can be done with a finished run: what it means is said first, then it is done.
import {el, fill, get, post, page, commands, complain, number, sentence} from "./dom.js";

const FIELDS = {
  verify: () => [field("fresh", "Fresh networks", el("input", {name: "fresh", value: "500", inputMode: "numeric"}))],
  audit: () => [field("sample", "Networks to train again beside those that carry a claim", el("input", {name: "sample", value: "20", inputMode: "numeric"})), el("div", {class: "field"}, el("label", {class: "flag"}, el("input", {name: "everything", type: "checkbox"}), "all of them"))],
  generalise: (files) => [field("files", "Test files, each an episode of its own; none: those of the run", el("select", {name: "files", multiple: true, size: 4}, files.map((file) => el("option", {value: file.name, text: file.name})))), field("criterion", "What each episode must satisfy (optional)", el("input", {name: "criterion", placeholder: "fit>80"}))],
  export: (files, content) => [field("to", "Format", el("select", {name: "to"}, content.actions.export.choices.map(([value, text]) => el("option", {value, text, selected: value === "fmu"})))), el("div", {class: "field"}, el("label", {class: "flag"}, el("input", {name: "check", type: "checkbox"}), "run it against the model"), el("small", {text: "Needs what runs it: a C compiler, FMPy, onnxruntime, ..."}))],
};

function field(name, title, control) {
  control.id = `act-${name}`;
  return el("div", {class: "field"}, el("label", {for: control.id, text: title}), control);
}

function values(form) {
  const found = {};
  for (const control of form.querySelectorAll("[name]"))
    found[control.name] = control.type === "checkbox" ? control.checked : control.multiple ? [...control.selectedOptions].map((one) => one.value) : control.value.trim();
  return found;
}

async function ask(kind, run, content, done) {
  const action = content.actions[kind];
  const files = kind === "generalise" ? (await get("/api/folder")).files : [];
  const form = el("form", {class: "grid-fields", method: "dialog"}, FIELDS[kind]?.(files, content) ?? []);
  const place = el("div", {}), problem = el("p", {class: "problem", role: "status", hidden: true});
  const go = el("button", {type: "button", class: "primary", text: action.title});
  const dialog = el("dialog", {"aria-labelledby": "act-title"}, el("h2", {id: "act-title", text: action.title}),
    el("div", {class: "note"}, el("h3", {text: "What it means for the certificate"}), action.meaning.map((text) => el("p", {text}))),
    form, place, problem, el("div", {class: "tools"}, el("button", {type: "button", text: "Cancel", onclick: () => dialog.close()}), go));
  const show = async (now) => {
    try {
      const found = await post("/api/act", {kind, run, given: values(form), go: now});
      problem.hidden = true;
      commands(place, found.command, found.python);
      return found;
    } catch (error) {
      problem.hidden = false;
      problem.textContent = sentence(error.message);
      return null;
    }
  };
  form.addEventListener("input", () => show(false));
  form.addEventListener("submit", (event) => { event.preventDefault(); go.click(); });
  go.addEventListener("click", async () => { if (await show(true)) { dialog.close(); await done(); } });
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  await show(false);
}

const outcomes = new Map();
async function outcome(job, place) {
  if (job.state !== "done") {
    place.textContent = {queued: "waits for its turn", running: "is being done …"}[job.state] ?? sentence(job.sentence || job.state);
    return;
  }
  if (!outcomes.has(job.key)) outcomes.set(job.key, await get("/api/job", {key: job.key}));
  const answer = outcomes.get(job.key).answer ?? {};
  const second = answer.generalisation;
  const words = answer.statement ?? (second ? `FIT on test data ${number(second.optimism?.test)}; the page has all statements.` : null) ?? (answer.files ? `written${answer.largest_difference === null ? "" : ` and run: the largest difference from the model is ${number(answer.largest_difference)}`}` : "done");
  place.textContent = sentence(String(words));
}

export function actionCards(place, run, content, done) {
  fill(place, Object.entries(content.actions).map(([kind, action]) => {
    const last = [...content.jobs].reverse().find((job) => job.kind === kind);
    const said = el("p", {class: "outcome", role: "status"});
    if (last) outcome(last, said).catch(complain);
    const exports = kind === "export" && content.exports.length ? el("ul", {}, content.exports.map((file) => el("li", {}, el("a", {href: page("/download", {run, file}), text: file, download: true})))) : null;
    const go = el("button", {type: "button", text: action.title, disabled: content.facts.state !== "finished", onclick: () => ask(kind, run, content, done).catch(complain)});
    return el("div", {class: "card", "data-action": kind}, el("h3", {text: action.title}), el("p", {text: action.meaning[0]}), last ? said : null, exports, go);
  }));
}
