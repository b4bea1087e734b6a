// The form is the settings object: every field comes from the server, which makes them from the fields of Plan.
import {el, fill} from "./dom.js";

function control(one, changed) {
  const id = `setting-${one.name}`;
  if (one.kind === "flag") return el("input", {id, type: "checkbox", checked: Boolean(one.default), onchange: changed});
  if (one.kind === "choice") return el("select", {id, onchange: changed}, one.choices.map((value) => el("option", {value, text: value, selected: value === one.default})));
  const list = one.suggestions.length ? `${id}-list` : null;
  const made = el("input", {id, type: "text", inputMode: {integer: "numeric", number: "decimal"}[one.kind] ?? "text", spellcheck: false, placeholder: one.default === null ? "" : String(one.default), "aria-describedby": `${id}-help`, oninput: changed});
  if (list) made.setAttribute("list", list);
  return made;
}

function field(one, changed) {
  const id = `setting-${one.name}`, made = control(one, changed);
  const help = el("small", {id: `${id}-help`, text: one.help});
  const list = one.suggestions.length && one.kind === "text" ? el("datalist", {id: `${id}-list`}, one.suggestions.map((value) => el("option", {value}))) : null;
  if (one.kind === "flag") return el("div", {class: "field"}, el("label", {class: "flag", for: id}, made, one.label), help);
  return el("div", {class: "field"}, el("label", {for: id, text: one.label}), made, list, help);
}

function read(all, id) {
  const found = {};
  for (const one of all) {
    const input = document.getElementById(id(one));
    const value = one.kind === "flag" ? input.checked : input.value.trim();
    if (value !== (one.kind === "flag" ? Boolean(one.default) : "")) found[one.name] = value;
  }
  return found;
}

// How the file is read: what is needed often in sight, the rest on request.
export function readingForm(place, all, changed) {
  const grid = (several) => el("div", {class: "grid-fields"}, several.map((one) => field(one, changed)));
  fill(place, grid(all.filter((one) => one.first)), el("details", {}, el("summary", {text: "More about how the file is read"}), grid(all.filter((one) => !one.first))));
  place.addEventListener("submit", (event) => event.preventDefault());
  const control = (name) => document.getElementById(`setting-${name}`);
  const hints = Object.fromEntries(all.map((one) => [one.name, control(one.name).placeholder]));
  return {
    values: () => read(all, (one) => `setting-${one.name}`),
    clear() { for (const one of all) Object.assign(control(one.name), {value: "", placeholder: hints[one.name]}); },
    // What the command that `inspect` proposes has; the sampling time that was found is what holds if none is given.
    propose(given, period) {
      for (const [name, value] of Object.entries(given)) if (control(name) && !control(name).value) control(name).value = value;
      if (period) control("sampling_time").placeholder = String(Number(period.toPrecision(6)));
    },
  };
}

export function planForm(place, groups, changed) {
  const all = groups.flatMap((group) => group.fields.map((one) => ({...one, computing: group.title === "Computing"})));
  const first = all.filter((one) => one.first);
  fill(place, el("div", {class: "grid-fields"}, first.map((one) => field(one, changed))),
    groups.map((group) => el("details", {}, el("summary", {text: group.title}), el("div", {class: "grid-fields"}, group.fields.filter((one) => !one.first).map((one) => field(one, changed))))));
  place.addEventListener("submit", (event) => event.preventDefault());
  return {
    values() {
      const of = (computing) => read(all.filter((one) => one.computing === computing), (one) => `setting-${one.name}`);
      return {plan: of(false), computing: of(true)};
    },
  };
}
