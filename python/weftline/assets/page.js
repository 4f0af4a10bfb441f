// Draws the figures of a page: in the colours of the reader's theme, all as wide as there is room.
(() => {
  const specs = JSON.parse(document.getElementById("figures").textContent);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const AXES = 92; // pixels that an axis with its labels takes beside a panel

  // A copy of a specification that is as wide as the room, its panels in as many columns as fit.
  const fitted = (spec, room) => {
    const fit = structuredClone(spec);
    if (fit.hconcat) {
      fit.concat = fit.hconcat;
      delete fit.hconcat;
      const least = Math.min(...fit.concat.map((unit) => unit.width || 0)) * 0.8 + AXES;
      fit.columns = Math.max(1, Math.min(fit.concat.length, Math.floor(room / least)));
      for (const unit of fit.concat) unit.width = Math.max(140, Math.floor(room / fit.columns) - AXES);
      fit.spacing = 14;
    } else {
      fit.width = room;
      fit.autosize = { type: "fit-x", contains: "padding" };
    }
    const legend = (node) => {
      for (const channel of Object.values(node?.encoding || {}))
        if (channel.legend?.columns)
          channel.legend.columns = Math.min(channel.legend.columns, Math.max(1, Math.floor(room / 150)));
      for (const inner of [node?.spec, ...(node?.concat || []), ...(node?.layer || [])]) if (inner) legend(inner);
    };
    legend(fit);
    return fit;
  };

  // On dark paper bright is much, as dark is on light paper.
  const turned = (node) => {
    for (const channel of Object.values(node?.encoding || {}))
      if (channel.scale?.scheme === "yelloworangebrown") channel.scale.reverse = true;
    for (const inner of [node?.spec, ...(node?.concat || []), ...(node?.layer || [])]) if (inner) turned(inner);
  };

  const look = (isDark) => {
    const ink = isDark ? "#e6e8eb" : "#1c1e21", rule = isDark ? "#30353c" : "#e4e6ea";
    const axis = isDark ? "#767f8a" : "#8a9199";
    return {
      background: null, font: getComputedStyle(document.body).fontFamily, view: { stroke: null },
      title: { color: ink },
      axis: { labelColor: ink, titleColor: ink, gridColor: rule, domainColor: axis, tickColor: axis,
              titleFontWeight: "normal", labelFontSize: 11, titleFontSize: 12 },
      axisY: { minExtent: 40 }, axisX: { labelOverlap: true },
      legend: { labelColor: ink, titleColor: ink, labelFontSize: 12, labelLimit: 260 },
      header: { labelColor: ink }, text: { color: ink },
    };
  };

  const places = [...document.querySelectorAll(".plot")];
  const drawn = new Map();
  const draw = (isDark, room) => Promise.all(places.map((place) => {
    const spec = fitted(specs[Number(place.dataset.figure)], room || place.parentElement.clientWidth);
    if (isDark) turned(spec);
    const options = { actions: false, renderer: "svg", config: look(isDark), tooltip: { theme: isDark ? "dark" : "light" } };
    return vegaEmbed(place, spec, options)
      .then((result) => { drawn.get(place)?.finalize(); drawn.set(place, result); })
      .catch((error) => { place.textContent = "This figure could not be drawn: " + error.message; });
  })).then(() => { document.documentElement.dataset.drawn = String(Number(document.documentElement.dataset.drawn || 0) + 1); });

  let width = document.body.clientWidth, later;
  addEventListener("resize", () => {
    if (document.body.clientWidth === width) return;
    clearTimeout(later);
    later = setTimeout(() => { width = document.body.clientWidth; draw(dark.matches); }, 150);
  });
  draw(dark.matches);
  dark.addEventListener("change", (event) => draw(event.matches));
  addEventListener("beforeprint", () => draw(false, 700));
  addEventListener("afterprint", () => draw(dark.matches));
})();
