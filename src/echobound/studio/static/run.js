import {$, el, fill, get, post, page, complain, say, commands, copyable, number, duration, when, sentence} from "./dom.js";
import {LiveDots} from "./livedots.js";
import {actionCards} from "./actions.js";

const name = new URLSearchParams(location.search).get("name") ?? "";
const state = {content: null, progress: null, dots: null, finished: false, result: null, working: false};
$("title").textContent = name;
document.title = `${name}: ${document.title}`;

const pairs = (list) => list.filter(([, value]) => value !== null && value !== undefined && value !== "").flatMap(([title, value]) => [el("dt", {text: title}), el("dd", {}, value)]);

function figures() {
  const now = state.progress, facts = state.content?.facts ?? {};
  if (!now) {
    fill($("figures"), figure(facts.state === "queued" ? "waits for its turn" : "starting", "state"));
    return;
  }
  fill($("figures"),
    figure(`${number(now.done)} / ${number(now.planned)}`, now.stream === "fresh networks" ? "fresh networks" : "networks", "done"),
    figure(number(now.best, 5), now.running ? `best ${now.score} so far` : `best ${now.score}`, "best", "lead"),
    now.running ? figure(now.rate ? `${number(now.rate, 3)} /s` : "–", "rate", "rate") : null,
    now.running ? (now.planned && now.done >= now.planned ? figure("finishing", "models, verdict, page", "left") : figure(now.remaining === null ? "–" : duration(now.remaining), "time left", "left")) : null,
    now.diverged ? figure(number(now.diverged), "diverged", "diverged") : null);
  $("progress").hidden = !now.running && now.finished;
  $("progress").value = now.planned ? now.done / now.planned : 0;
  const thinned = now.shown < now.done ? ` ${number(now.shown)} of ${number(now.done)} networks are shown: the first few of each stretch, which is a fair sample since draws are independent, and every improvement.` : "";
  const off = state.dots?.off ? ` Off the scale: ${number(state.dots.off)}.` : "";
  $("dots-words").textContent = `Each dot is a network, the line is the best so far.${thinned}${off}`;
}

function figure(value, title, key, kind = "") {
  return el("div", {class: kind, "data-key": key ?? title}, el("dt", {text: title}), el("dd", {text: value}));
}

function controls() {
  const {facts, jobs} = state.content;
  const running = jobs.find((job) => job.state === "running"), queued = jobs.find((job) => job.state === "queued");
  const last = [...jobs].reverse().find((job) => job.kind === "identify");
  const ended = last && ["stopped", "failed", "interrupted"].includes(last.state) && !["running", "finished"].includes(facts.state) ? last : null;
  const tell = (job, what) => async () => {
    try { await post("/api/job", {key: job.key, what}); say(what === "stop" ? "Asked to stop" : "Goes on"); await look(); } catch (error) { complain(error); }
  };
  fill($("controls"), el("span", {class: `state ${facts.state}`, text: facts.state}),
    running ? el("button", {type: "button", text: "Stop", title: "As Ctrl-C: what is finished is kept", onclick: tell(running, "stop")}) : null,
    queued && !running ? el("button", {type: "button", text: "Take off the queue", onclick: tell(queued, "stop")}) : null,
    ended ? el("button", {type: "button", text: "Go on", onclick: tell(ended, "go on")}) : null);
  const alone = facts.state === "unfinished" && !jobs.length;
  $("ended").hidden = !ended && !alone;
  $("ended").textContent = ended ? sentence(ended.sentence || ended.state) : alone ? "This run was started elsewhere and is not finished: the command that started it goes on." : "";
  if (!running && facts.state === "running" && !state.foreign) {
    state.foreign = true;
    say("This run was started elsewhere and is watched here");
  }
}

function plan() {
  const {plan: found, facts, jobs} = state.content;
  fill($("plan"), pairs([
    ["networks", found.networks ? number(found.networks) + (facts.families > 1 ? ` of each of ${facts.families} families` : "") : null],
    ["epsilon, beta", found.epsilon ? `${number(found.epsilon)}, ${number(found.beta)}` : null],
    ["rule", found.rule === "fixed" ? "the number of networks is fixed" : found.rule],
    ["law", facts.law], ["scores", found.scores?.join(", ")], ["validation", found.validation], ["horizon", found.horizon ? `${found.horizon} samples ahead` : found.scores ? "free run" : null],
    ["committee", found.committee ? `the best ${found.committee} networks` : null], ["seed", found.seed === undefined ? null : String(found.seed)],
    ["digest", found.digest ? el("code", {text: found.digest.slice(0, 16)}) : null], ["made", facts.made ? when(facts.made) : null],
  ]));
  commands($("commands"), state.content.command, state.content.python);
}

function looks() {
  const list = state.content.looks;
  $("looks-section").hidden = !list.length;
  $("afterwards").textContent = state.content.afterwards;
  fill($("looks"), el("table", {}, el("thead", {}, el("tr", {}, ["Look", "Run", "Law", "Networks", "Best", "When"].map((text, i) => el("th", {scope: "col", class: i > 2 ? "n" : null, text})))),
    el("tbody", {}, list.map((one, i) => el("tr", {}, el("td", {text: String(i + 1)}), el("th", {scope: "row"}, one.name === name ? `${name} (this one)` : one.gone ? `${one.name} (its folder is gone)` : el("a", {href: page("/run", {name: one.name}), text: one.name})), el("td", {text: one.law ?? ""}), el("td", {class: "n", text: number(one.networks)}), el("td", {class: "n", text: number(one.best)}), el("td", {class: "n", text: one.made ? when(one.made) : ""}))))));
}

function verdict(found) {
  const one = found.verdict;
  if (!one) return null;
  return el("div", {class: "verdict"}, el("span", {class: `grade ${one.grade}`, text: one.grade}), el("div", {}, found.summary ? el("p", {text: found.summary}) : null,
    el("ul", {}, [...(one.reasons ?? []), ...(one.next ?? [])].map((text) => el("li", {text: sentence(text)})))));
}

function diagnostics(list) {
  $("diagnostics").hidden = !list.length;
  const loud = list.filter((one) => one.alarm);
  $("diagnostics").querySelector("summary").textContent = loud.length ? `Diagnostics: ${loud.map((one) => one.name).join(", ")}` : "Diagnostics: nothing stands out";
  fill($("diagnostics-list"), [...list].sort((a, b) => Number(b.alarm) - Number(a.alarm)).flatMap((one) => [el("dt", {}, one.alarm ? "▲ " : "", one.name), el("dd", {text: `${sentence(one.words)}${one.advice ? ` ${sentence(one.advice)}` : ""}`})]));
}

async function result() {
  $("result").hidden = $("actions").hidden = false;
  if ($("live").nextElementSibling === $("result")) $("live").before($("result"));  // what came out comes first
  if (!state.result) fill($("verdict"), el("p", {class: "quiet", text: "Deriving every number again …"}));
  let found;
  try {
    found = await get("/api/result", {name});
  } catch (error) {
    fill($("verdict"), el("p", {class: "problem", text: sentence(error.message)}));
    return;
  }
  state.result = found;
  const certificate = found.certificate;
  fill($("verdict"), verdict(found));
  $("statement").textContent = certificate.statement;
  diagnostics(found.diagnostics ?? []);
  const search = certificate.provenance?.search?.words;
  $("afterwards").textContent = search ? `${search} ${state.content.afterwards}` : state.content.afterwards;
  const scores = found.scores ? Object.entries(found.scores).filter(([, one]) => one).map(([role, one]) => [`${role} data`, `FIT ${number(one.fit)} %${Object.keys(one.per_output ?? {}).length < 2 ? `, RMSE ${number(one.rmse)}` : ""}`]) : [];
  fill($("scores"), pairs([
    ...scores, found.linear?.fit !== undefined && found.linear ? ["linear model", `FIT ${number(found.linear.fit)} %`] : ["", null],
    ["delivered", found.delivered ? `${found.delivered}. ${found.reason ?? ""}` : null], ["bound", found.bounded],
    ["fresh networks", found.verification ? `${found.verification.statement}` : null],
    ["test data", found.generalisation ? "opened; the second certificate is on the page" : "not opened"],
  ]));
  fill($("page-link"), el("a", {class: "button", href: page("/report", {run: name}), target: "_blank", rel: "noopener", text: "Open the page in a tab"}), " ", el("a", {class: "button", href: page("/compare", {run: name}), text: "Compare with others"}));
  actionCards($("action-cards"), name, state.content, look);
  $("report-section").hidden = !state.content.page;
  const address = page("/report", {run: name}), frame = $("report");
  if (state.content.page && frame.dataset.shown !== stampOf()) { frame.dataset.shown = stampOf(); frame.src = address; }
}

const stampOf = () => JSON.stringify([state.content.facts.fresh, state.content.facts.tested, state.content.facts.best]);

let shown = "";
async function look() {
  state.content = await get("/api/run", {name});
  const now = JSON.stringify(state.content);
  if (now === shown) return;
  shown = now;
  controls();
  figures();
  plan();
  looks();
  if (state.content.facts.best !== undefined && state.content.facts.best !== null || state.content.facts.certified) await result();
  else if (state.content.jobs.some((job) => job.state === "done")) await result();
}

async function live(event) {
  state.progress = event.progress;
  if (!state.dots) {
    if (state.working) return false;
    state.working = true;
    const made = new LiveDots($("dots"));
    await made.begin(event.progress);
    state.dots = made;
  }
  state.dots.take(event);
  figures();
  return true;
}

async function begin() {
  await look();
  const stream = new EventSource(page("/events", {run: name}));
  let queue = Promise.resolve();
  stream.onmessage = (message) => {
    const event = JSON.parse(message.data);
    const was = state.progress;
    queue = queue.then(() => live(event)).catch(complain);
    if (was && (was.running !== event.progress.running || was.finished !== event.progress.finished)) setTimeout(() => look().catch(complain), 200);
  };
  stream.onopen = () => { document.body.dataset.live = "yes"; complain(null); };
  stream.onerror = () => { document.body.dataset.live = "no"; };
  const again = async () => { try { await look(); } catch (error) { complain(error); } setTimeout(again, document.hidden ? 10000 : 2000); };
  setTimeout(again, 2000);
}
begin().catch(complain);
