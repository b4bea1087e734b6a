// Elements are made, never parsed from text: names of files and columns cannot become markup.
export function el(tag, given = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(given)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "text") made.textContent = value;
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name in made && name !== "list" && typeof value !== "string") made[name] = value;
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat().filter((one) => one !== null && one !== undefined));
  return made;
}

export const $ = (id) => document.getElementById(id);

export function fill(parent, ...children) {
  parent.replaceChildren(...children.flat().filter((one) => one !== null && one !== undefined));
}

export function say(text) {
  $("said").textContent = text;
}

export function complain(error) {
  const place = $("alert");
  place.hidden = !error;
  place.textContent = error ? sentence(error.message ?? String(error)) : "";
}

export function sentence(text) {
  const first = text.slice(0, 1).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(first) ? first : first + ".";
}

// Ask the studio. What changes something carries a header that no foreign page can send.
async function ask(method, path, body, headers = {}) {
  let answer;
  try {
    answer = await fetch(path, {method, body, headers: {"X-Echobound": "1", ...headers}, credentials: "same-origin"});
  } catch {
    throw new Error("the studio does not answer: is it still running? Runs go on without it");
  }
  let content = {};
  try { content = await answer.json(); } catch { /* no JSON: the status says enough */ }
  if (!answer.ok) throw new Error(content.error ?? `the studio answered ${answer.status}`);
  return content;
}

const query = (path, given = {}) => {
  const found = new URLSearchParams();
  for (const [name, value] of Object.entries(given))
    for (const one of Array.isArray(value) ? value : [value]) if (one !== null && one !== undefined) found.append(name, one);
  return `${path}?${found}`;
};
export const get = (path, given) => ask("GET", query(path, given));
export const post = (path, content) => ask("POST", path, JSON.stringify(content), {"Content-Type": "application/json"});
export const put = (path, given, body) => ask("PUT", query(path, given), body);
export const page = query;

export function copyable(title, text, open = false) {
  const shown = el("pre", {text, tabindex: "0"});
  const button = el("button", {type: "button", text: "Copy", "aria-label": `Copy: ${title}`});
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(shown.textContent);
    } catch {
      getSelection().selectAllChildren(shown);
      document.execCommand("copy");
    }
    button.textContent = "Copied";
    say(`${title} copied`);
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
  return el("details", {class: "command", open}, el("summary", {text: title}), el("div", {}, shown, button));
}

export function commands(place, command, python, what = "") {
  const open = [...place.querySelectorAll("details")].map((one) => one.open);
  fill(place, command ? copyable(`${what}Command line`, command, open[0]) : null, python ? copyable(`${what}Python`, python, open[command ? 1 : 0]) : null);
}

export function number(value, digits = 4) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (Number.isInteger(value) && Math.abs(value) < 1e7) return value.toLocaleString("en");
  const size = Math.abs(value);
  return size !== 0 && (size >= 1e6 || size < 1e-3) ? value.toExponential(2).replace(/\.?0+e/, "e").replace("e-", "e−").replace("e+", "e") : String(Number(value.toPrecision(digits)));
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return "–";
  if (seconds < 90) return `${Math.max(1, Math.round(seconds))} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 90) return `${minutes} min`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

export function when(seconds) {
  return new Date(seconds * 1000).toLocaleString(undefined, {dateStyle: "medium", timeStyle: "short"});
}

export function size(bytes) {
  return bytes < 1e6 ? `${Math.max(1, Math.round(bytes / 1e3))} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}
