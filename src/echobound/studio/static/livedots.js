// Networks as dots, as they arrive. What is held here is bounded: the server thins, and this replaces, never piles up.
import {chart, dots, line, range, show, source, coloured} from "./plots.js";

export class LiveDots {
  constructor(place) {
    this.place = place;
    this.version = -1;
    this.data = {x: [], y: []};
    this.steps = {x: [], y: []};
  }

  async begin(progress) {
    this.larger = progress.larger;
    this.x = range(-0.5, Math.max(1, progress.planned) - 0.5);
    this.y = range(0, 1);
    this.chart = chart({height: 320, x: this.x, y: this.y, title: progress.score, xlabel: "network", tools: false});
    this.kept = source({x: [], y: []});
    this.fresh = source({x: [], y: []});
    this.best = source({x: [], y: []});
    dots(this.chart, this.kept, "dot", 5, 0.6);
    dots(this.chart, this.fresh, "second", 7, 0.9);
    line(this.chart, this.best, "x", "y", "accent", 2);
    await show([this.chart], this.place);
  }

  // One event: all dots of a new version, or those that came since.
  take(event) {
    if (event.version !== this.version || event.from === undefined) {
      this.version = event.version;
      this.data = {x: [], y: []};
    }
    const from = event.from ?? 0;
    this.data.x.length = this.data.y.length = Math.min(from, this.data.x.length);
    for (const [x, y] of event.dots) {
      this.data.x.push(x);
      this.data.y.push(y === null ? NaN : y);
    }
    const fresh = event.progress.running ? event.newest.filter((dot) => dot[1] !== null) : [];
    const planned = Math.max(1, event.progress.planned);
    if (this.x.end !== planned - 0.5) this.x.setv({start: -0.5 - planned * 0.01, end: planned - 0.5 + planned * 0.01});
    this.scale();
    this.kept.data = {x: Float64Array.from(this.data.x), y: Float64Array.from(this.data.y)};
    this.fresh.data = {x: fresh.map((dot) => dot[0]), y: fresh.map((dot) => dot[1])};
    this.staircase(planned);
    this.place.dataset.dots = String(this.data.x.length);
    this.place.dataset.newest = event.newest.length ? String(event.newest[event.newest.length - 1][0]) : "";
  }

  staircase(planned) {
    const order = [...this.data.x.keys()].filter((i) => Number.isFinite(this.data.y[i])).sort((a, b) => this.data.x[a] - this.data.x[b]);
    const steps = {x: [], y: []};
    let best = null;
    for (const i of order) {
      const y = this.data.y[i];
      if (best !== null && !(this.larger ? y > best : y < best)) continue;
      if (best !== null) { steps.x.push(this.data.x[i]); steps.y.push(best); }
      best = y;
      steps.x.push(this.data.x[i]);
      steps.y.push(best);
    }
    if (best !== null && order.length) { steps.x.push(this.data.x[order[order.length - 1]]); steps.y.push(best); }
    this.best.data = steps;
  }

  // A network far off must not flatten the others: the picture spans from the worst quarter to the best.
  scale() {
    const sorted = this.data.y.filter(Number.isFinite).sort((a, b) => a - b);
    if (!sorted.length) return;
    const at = (share) => sorted[Math.min(sorted.length - 1, Math.max(0, Math.round(share * (sorted.length - 1))))];
    const [best, middle, far] = this.larger ? [at(1), at(0.5), at(0.25)] : [at(0), at(0.5), at(0.75)];
    const span = Math.max(Math.abs(best - far) * 1.15, Math.abs(best - middle) * 1.5) || Math.abs(best) * 0.05 || 1;
    const [low, high] = this.larger ? [best - span, best + 0.08 * span] : [best - 0.08 * span, best + span];
    if (Math.abs(low - this.y.start) + Math.abs(high - this.y.end) > 0.01 * span) this.y.setv({start: low, end: high});
    this.off = sorted.filter((y) => y < low || y > high).length;
  }
}
