// Training, validation and test as parts of one record: four lines over the plots, to drag or to move by keys.
import {el} from "./dom.js";

const NAMES = ["start of training", "end of training", "end of validation", "end of test"];
const PARTS = ["unused", "training", "validation", "test", "unused"];

export class Cutter {
  constructor(place, length, rows, changed) {
    this.length = length;
    this.rows = rows;  // samples before which rows of the file are passed over, and their rows there
    this.changed = changed;
    this.lines = [0, length, length, length];
    this.layer = el("div", {class: "cutter"});
    this.parts = PARTS.map((name) => this.layer.appendChild(el("div", {class: `part ${name}`})));
    this.handles = NAMES.map((name, i) => this.layer.appendChild(this.handle(name, i)));
    place.append(this.layer);
    this.draw();
  }

  handle(name, i) {
    const made = el("div", {class: "handle", role: "slider", tabindex: "0", "aria-label": `Row of the ${name}`, "aria-valuemin": "0", "aria-valuemax": String(this.length)});
    made.addEventListener("keydown", (event) => {
      const small = Math.max(1, Math.round(this.length / 100));
      const steps = {ArrowLeft: -small, ArrowDown: -small, ArrowRight: small, ArrowUp: small, PageDown: -10 * small, PageUp: 10 * small};
      const to = event.key in steps ? this.lines[i] + (event.shiftKey ? Math.sign(steps[event.key]) : steps[event.key]) : {Home: 0, End: this.length}[event.key];
      if (to === undefined) return;
      event.preventDefault();
      this.move(i, to);
    });
    made.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      made.focus();
      made.setPointerCapture(event.pointerId);
      // Where lines lie on each other, the one that can go that way is taken.
      const from = this.lines[i];
      let which = i;
      made.onpointermove = (move) => {
        const box = this.layer.getBoundingClientRect();
        const to = Math.round(((move.clientX - box.left) / box.width) * this.length);
        if (which === i && to < from) while (which > 0 && this.lines[which - 1] === from && from === this.length) which -= 1;
        this.move(which, to);
      };
      made.onpointerup = () => { made.onpointermove = null; };
    });
    return made;
  }

  move(i, to) {
    const row = Math.max(0, Math.min(this.length, to));
    this.lines = this.lines.map((line, j) => (j === i ? row : j < i ? Math.min(line, row) : Math.max(line, row)));
    this.draw();
    this.changed();
  }

  set(lines) {
    this.lines = lines.map((one) => Math.round(one));
    this.draw();
    this.changed();
  }

  draw() {
    const edges = [0, ...this.lines, this.length];
    const share = (row) => `${(100 * row) / this.length}%`;
    this.parts.forEach((part, i) => { part.style.left = share(edges[i]); part.style.width = share(edges[i + 1] - edges[i]); });
    this.handles.forEach((handle, i) => {
      handle.style.left = share(this.lines[i]);
      handle.setAttribute("aria-valuenow", String(this.lines[i]));
      handle.setAttribute("aria-valuetext", `row ${this.row(Math.min(this.lines[i], this.length - 1))} of the file`);
      // The one that opens a part that is empty so far is on top.
      handle.style.zIndex = String(i === 1 ? 4 : 3 - (i === 3 ? 2 : 0));
    });
  }

  // The row of a sample in the file.
  row(sample) {
    const [at, row] = this.rows.findLast(([first]) => first <= sample) ?? [0, 1];
    return row + sample - at;
  }

  // The first and the last row of each part, by their numbers in the file; null where nothing is cut off.
  get cut() {
    const [start, train, validate, test] = this.lines;
    if (start === 0 && train === this.length) return null;
    const part = (low, high) => (high > low ? [this.row(low), this.row(high - 1)] : null);
    return {training: part(start, train), validation: part(train, validate), test: part(validate, test)};
  }
}
