"use strict";
// Draws the figures of the page in its colours, when they come near the screen; again when light turns dark.
(() => {
  const config = {
    displaylogo: false, responsive: true, modeBarButtons: [["zoom2d", "pan2d", "resetScale2d", "toImage"]],
  };

  const coloured = (value, style) => {
    if (typeof value === "string") {
      const name = /^var\((--[\w-]+)\)$/.exec(value);
      return name ? style.getPropertyValue(name[1]).trim() : value;
    }
    if (Array.isArray(value)) return value.map((one) => coloured(one, style));
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, coloured(one, style)]));
  };

  const dressed = (layout, height) => {
    const common = {
      height, font: { family: getComputedStyle(document.body).fontFamily, size: 13, color: "var(--text)" },
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", margin: { l: 12, r: 40, t: 36, b: 12 },
      hovermode: "x unified", dragmode: "zoom",
      hoverlabel: {
        bgcolor: "var(--raised)", bordercolor: "var(--rule)", font: { color: "var(--text)" }, namelength: 40,
      },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: "var(--muted)", activecolor: "var(--text)", orientation: "v" },
    };
    const merged = { ...common, ...layout };
    merged.legend = {
      orientation: "h", x: 0, xanchor: "left", y: 1, yanchor: "bottom", yref: "container",
      ...(layout.legend || {}),
    };
    merged.legend.y = 0.995;
    merged.legend.yanchor = "top";
    for (const key of Object.keys(merged)) {
      if (/^[xy]axis\d*$/.test(key)) {
        merged[key] = {
          gridcolor: "var(--grid)", linecolor: "var(--rule)", zerolinecolor: "var(--rule)",
          tickcolor: "var(--rule)", ...merged[key],
        };
      }
    }
    return merged;
  };

  const draw = (place) => {
    const figure = JSON.parse(document.getElementById(place.id + "-data").textContent);
    const style = getComputedStyle(document.documentElement);
    const layout = coloured(dressed(figure.layout, figure.height), style);
    Plotly.react(place, coloured(figure.traces, style), layout, config);
    place.dataset.drawn = "yes";
  };

  const places = [...document.querySelectorAll(".chart")];
  const near = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (entry.isIntersecting && !entry.target.dataset.drawn) draw(entry.target);
    }
  }, { rootMargin: "600px" });
  places.forEach((place) => near.observe(place));
  const redraw = () => places.filter((place) => place.dataset.drawn).forEach(draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  addEventListener("beforeprint", () => places.filter((place) => !place.dataset.drawn).forEach(draw));
})();
