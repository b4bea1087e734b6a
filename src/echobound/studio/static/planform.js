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

export function planForm(place, groups, changed) {
  const all = groups.flatMap((group) => group.fields.map((one) => ({...one, computing: group.title === "Computing"})));
  const first = all.filter((one) => one.first);
  fill(place, el("div", {class: "grid-fields"}, first.map((one) => field(one, changed))),
    groups.map((group) => el("details", {}, el("summary", {text: group.title}), el("div", {class: "grid-fields"}, group.fields.filter((one) => !one.first).map((one) => field(one, changed))))));
  place.addEventListener("submit", (event) => event.preventDefault());
  return {
    values() {
      const found = {plan: {}, computing: {}};
      for (const one of all) {
        const input = document.getElementById(`setting-${one.name}`);
        const value = one.kind === "flag" ? input.checked : input.value.trim();
        if (value !== "" && value !== false) found[one.computing ? "computing" : "plan"][one.name] = value;
      }
      return found;
    },
  };
}
