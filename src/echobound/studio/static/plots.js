// Figures by Bokeh, in the colours of the style sheet, light or dark.
const painted = new Set();
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

function paint(model) {
  for (const tag of model.tags)
    if (typeof tag === "object" && tag !== null)
      for (const [property, name] of Object.entries(tag)) model[property] = colour(name);
}

// A model that goes is let go of: a page that is open for days must not grow.
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  for (const found of [...painted]) {
    const model = found.deref();
    if (model) paint(model); else painted.delete(found);
  }
});

export function coloured(model, colours) {
  model.tags = [colours];
  painted.add(new WeakRef(model));
  paint(model);
  return model;
}

export function range(start, end, bounds = null) {
  return new Bokeh.Range1d({start, end, bounds});
}

export function chart({height, x, y, title, unit = "", xlabel = "", tools = true, left = 66}) {
  const chart = Bokeh.Plotting.figure({
    height: height + (xlabel ? 26 : 4), sizing_mode: "stretch_width", x_range: x, y_range: y, toolbar_location: null, tools: [],
    background_fill_color: null, border_fill_color: null, outline_line_color: null, output_backend: "canvas",
    min_border_left: left, min_border_right: 10, min_border_top: 6, min_border_bottom: xlabel ? 40 : 6,
  });
  const font = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";
  const [below] = chart.below, [beside] = chart.left;
  for (const [axis, label] of [[below, xlabel], [beside, unit ? `${title} (${unit})` : title]]) {
    axis.axis_label = label ? new Bokeh.PlainText({text: label}) : null;
    axis.axis_label_text_font = axis.major_label_text_font = font;
    axis.axis_label_text_font_size = "12px";
    axis.axis_label_text_font_style = "normal";
    axis.major_label_text_font_size = "11px";
    axis.ticker.desired_num_ticks = axis === below ? 8 : height < 130 ? 3 : 6;
    axis.minor_tick_line_color = axis.major_tick_line_color = null;
    coloured(axis, {axis_label_text_color: "soft", major_label_text_color: "soft", axis_line_color: "line"});
  }
  if (!xlabel) below.major_label_text_font_size = "0px";
  for (const grid of chart.center) coloured(grid, {grid_line_color: "grid"});
  if (tools) {
    chart.add_tools(new Bokeh.PanTool({dimensions: "width"}));
    const wheel = new Bokeh.WheelZoomTool({dimensions: "width"});
    chart.add_tools(wheel);
    chart.toolbar.active_scroll = null;
  }
  return chart;
}

export function line(chart, source, x, y, name, width = 1.4) {
  const made = chart.line({field: x}, {field: y}, {source, line_width: width});
  coloured(made.glyph, {line_color: name});
  made.nonselection_glyph = made.muted_glyph = null;
  return made;
}

export function dots(chart, source, name, size = 5, alpha = 0.75) {
  const made = chart.scatter({field: "x"}, {field: "y"}, {source, size, fill_alpha: alpha, line_color: null});
  coloured(made.glyph, {fill_color: name});
  made.nonselection_glyph = made.muted_glyph = null;
  return made;
}

export const source = (data) => new Bokeh.ColumnDataSource({data});

// One above the other; plots that share a range belong to one document.
export async function show(charts, place) {
  const whole = charts.length === 1 ? charts[0] : new Bokeh.Column({children: charts, sizing_mode: "stretch_width", spacing: 4});
  const view = await Bokeh.Plotting.show(whole, place);
  for (const canvas of place.querySelectorAll("[tabindex]")) canvas.tabIndex = -1;
  place.dataset.drawn = "yes";
  return view;
}

// Limits with a margin, of numbers that may be missing.
export function limits(values, margin = 0.06) {
  let low = Infinity, high = -Infinity;
  for (const value of values) if (value !== null && Number.isFinite(value)) { low = Math.min(low, value); high = Math.max(high, value); }
  if (!(low <= high)) return [0, 1];
  const pad = margin * (high - low) || Math.abs(high) * 0.05 || 1;
  return [low - pad, high + pad];
}
