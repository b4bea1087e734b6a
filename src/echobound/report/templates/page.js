"use strict";
(() => {
  const page = document.documentElement;
  page.classList.add("js");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const mouse = matchMedia("(pointer: fine)");
  const drawn = [];

  // Bokeh's script is packed: it would be half of the page. Where a browser cannot unpack it, the printed figures stay.
  async function unpacked(source) {
    const packed = Uint8Array.from(atob(source.textContent), (letter) => letter.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    const script = document.createElement("script");
    script.textContent = await new Response(stream).text();
    document.head.append(script);
    return true;
  }
  const ready = unpacked(document.getElementById("bokeh")).catch(() => {
    page.classList.remove("js");
    return false;
  });

  // Colours are those of the style sheet; a tag of a model says which of its properties has which.
  function paint(root) {
    const style = getComputedStyle(page);
    for (const model of root.references())
      for (const tag of model.tags)
        if (typeof tag === "object")
          for (const [property, colour] of Object.entries(tag))
            model[property] = style.getPropertyValue(`--${colour}`).trim();
  }

  function of(root, type) {
    return [...root.references()].filter((model) => model.type === type);
  }

  // The wheel and a finger belong to the page until a figure is clicked; a mouse may drag at any time.
  function wake(root, awake) {
    for (const tool of of(root, "WheelZoomTool")) tool.active = awake;
    for (const tool of of(root, "PanTool")) tool.active = awake || mouse.matches;
  }

  function move(root, what) {
    if (what === "reset") {
      for (const range of of(root, "Range1d")) range.reset();
      return;
    }
    for (const range of of(root, "Range1d").filter((range) => range.tags.includes("x"))) {
      const [there, back] = range.tags.includes("log") ? [Math.log, Math.exp] : [(x) => x, (x) => x];
      const [least, most] = [range.bounds[0], range.bounds[1]].map(there);
      let [low, high] = [range.start, range.end].map(there);
      const width = high - low, middle = (low + high) / 2;
      if (what === "in" || what === "out") {
        const half = Math.min((what === "in" ? 0.3 : 0.85) * width, (most - least) / 2);
        [low, high] = [middle - half, middle + half];
      } else {
        const step = (what === "left" ? -0.25 : 0.25) * width;
        [low, high] = [low + step, high + step];
      }
      const shift = Math.max(least - low, 0) - Math.max(high - most, 0);
      range.setv({start: back(low + shift), end: back(high + shift)});
    }
  }

  const keys = {"+": "in", "=": "in", "-": "out", ArrowLeft: "left", ArrowRight: "right", "0": "reset", Home: "reset"};

  async function draw(figure) {
    if (!await ready) return;
    const plot = figure.querySelector(".plot");
    const item = JSON.parse(figure.querySelector("script").textContent);
    const views = await Bokeh.embed.embed_item(item);
    const [view] = views.roots;
    const root = view.model;
    // One stop for the keyboard a figure, not one a panel.
    for (const panel of view.child_views) {
      panel.canvas_view.events_el.tabIndex = -1;
      panel.canvas_view.events_el.style.outline = "none";
    }
    drawn.push(root);
    paint(root);
    wake(root, false);
    figure.querySelector(".tools").addEventListener("click", (event) => {
      const what = event.target.dataset.do;
      if (what) move(root, what);
    });
    plot.addEventListener("focusin", () => wake(root, true));
    plot.addEventListener("focusout", (event) => wake(root, plot.contains(event.relatedTarget)));
    plot.addEventListener("keydown", (event) => {
      if (event.key === "Escape") document.activeElement.blur();
      if (!(event.key in keys) || event.ctrlKey || event.metaKey || event.altKey) return;
      move(root, keys[event.key]);
      event.preventDefault();
    });
    plot.dataset.drawn = "yes";
  }

  // Figures are drawn shortly before they come into view, so that a page with many opens at once.
  const near = new IntersectionObserver((entries) => {
    for (const entry of entries.filter((entry) => entry.isIntersecting)) {
      near.unobserve(entry.target);
      draw(entry.target);
    }
  }, {rootMargin: "600px"});
  for (const figure of document.querySelectorAll("figure.drawing")) near.observe(figure);
  dark.addEventListener("change", () => drawn.forEach(paint));

  for (const button of document.querySelectorAll("[data-copies]"))
    button.addEventListener("click", async () => {
      const source = document.getElementById(button.dataset.copies);
      try {
        await navigator.clipboard.writeText(source.textContent);
      } catch {
        getSelection().selectAllChildren(source);
        document.execCommand("copy");
      }
      document.getElementById("copied").textContent = "Copied";
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 2000);
    });
})();
