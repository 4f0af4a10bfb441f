// Draws the network of a page: links coloured by what was measured, a slider over time, and what is under the pointer.
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const dark = matchMedia("(prefers-color-scheme: dark)");
  // Lightness falls (or, on dark paper, rises) all the way, so that the order survives print in grey.
  const RAMPS = {
    light: ["#dde5ec", "#f3c46b", "#e07a2f", "#a32020", "#3d0a1e"],
    dark: ["#2f3842", "#6b3a2a", "#c65a22", "#f5a742", "#fff2b0"],
  };
  const parts = (colour) => [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16));
  const ramp = (share) => {
    const stops = RAMPS[dark.matches ? "dark" : "light"];
    const at = Math.min(Math.max(share, 0), 1) * (stops.length - 1), low = Math.min(Math.floor(at), stops.length - 2);
    const [a, b] = [parts(stops[low]), parts(stops[low + 1])];
    return `rgb(${a.map((v, i) => Math.round(v + (b[i] - v) * (at - low))).join(" ")})`;
  };
  const time = (ns) => {
    const [unit, size] = [["s", 1e9], ["ms", 1e6], ["us", 1e3], ["ns", 1]].find(([, size]) => ns >= size) || ["ns", 1];
    return `${Number((ns / size).toPrecision(4))} ${unit}`;
  };
  const element = (parent, name, attributes = {}, text = "") => {
    const made = name === "svg" || parent instanceof SVGElement
      ? document.createElementNS(SVG, name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text) made.textContent = text;
    return parent.appendChild(made);
  };
  const choice = (parent, label, names, change) => {
    const box = element(parent, "label", {}, label + " ");
    const select = element(box, "select");
    names.forEach((name, i) => element(select, "option", { value: i }, name));
    select.addEventListener("change", change);
    box.hidden = names.length < 2;
    return select;
  };

  const show = (place, data) => {
    const tiered = data.tiered;
    const controls = element(place, "div", { class: "controls" });
    const run = choice(controls, "run", data.runs.map((r) => r.label), () => rewind());
    const measure = choice(controls, "colour", [], () => rewind(true));
    const play = element(controls, "button", { type: "button" }, "Play");
    const slider = element(controls, "input", { type: "range", min: 0, max: 0, value: 0, step: 1, "aria-label": "time" });
    const clock = element(controls, "output");
    const picture = element(place, "svg", { role: "img", "aria-label": "the network" });
    const scale = element(place, "div", { class: "scale" });
    const dead = element(place, "p", { class: "dead-links" });
    const command = element(place, "pre", { class: "command", hidden: "" });
    element(command, "code");
    const tip = element(place, "div", { class: "tip", role: "status" });
    let lines = [], crosses = [], timer = null, under = null;

    const measured = () => data.runs[Number(run.value)].measures;
    const current = () => measured()[Number(measure.value)];
    const value = (direction) => current()?.values[Number(slider.value)]?.[direction];

    // What is down at some time of the frame that is shown; of a run that measured nothing, at its end.
    const failures = () => {
      const shown = current(), frame = Number(slider.value);
      const [start, end] = shown ? [frame * shown.length_ns, (frame + 1) * shown.length_ns] : [Infinity, Infinity];
      const down = new Map(), texts = [];
      for (const [time_ns, links, change, text] of data.runs[Number(run.value)].failures) {
        if (time_ns >= end) continue;
        if (change !== "rate") for (const link of links) change === "down" ? down.set(link, text) : time_ns <= start && down.delete(link);
        texts.push(`${text} at ${time(time_ns)}`);
      }
      return { down, texts };
    };

    const draw = () => {
      const width = place.clientWidth, rows = new Set(data.nodes.map((node) => node[3])).size;
      const height = tiered ? 40 + 105 * Math.max(1, rows - 1) : Math.min(width * 0.6, 620);
      const margin = { x: 34, top: 22, bottom: 26 };
      const at = ([, , x, y]) => [margin.x + x * (width - 2 * margin.x), margin.top + y * (height - margin.top - margin.bottom)];
      picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
      picture.setAttribute("height", height);
      picture.replaceChildren();
      lines = [];
      const below = element(picture, "g"), above = element(picture, "g");
      crosses = [];
      data.links.forEach(([a, b], i) => {
        const [x1, y1] = at(data.nodes[a]), [x2, y2] = at(data.nodes[b]);
        const length = Math.hypot(x2 - x1, y2 - y1) || 1, dx = 1.7 * (y2 - y1) / length, dy = 1.7 * (x1 - x2) / length;
        [1, -1].forEach((side, end) => {
          const ends = { x1: x1 + side * dx, y1: y1 + side * dy, x2: x2 + side * dx, y2: y2 + side * dy };
          lines[2 * i + end] = element(below, "line", { class: "link", ...ends });
          element(above, "line", { class: "hit", "data-direction": 2 * i + end, ...ends });
        });
        // Beyond the middle, where others may cross.
        crosses[i] = element(below, "text", { class: "cross", x: x1 + 0.4 * (x2 - x1), y: y1 + 0.4 * (y2 - y1) + 6 }, "✕");
      });
      const room = {};
      data.nodes.forEach((node) => { room[node[3]] = (room[node[3]] || 0) + 1; });
      data.nodes.forEach((node) => {
        const [x, y] = at(node), host = node[1], size = host ? 3.2 : 6;
        const shape = host ? { x: x - size, y: y - size, width: 2 * size, height: 2 * size } : { cx: x, cy: y, r: size };
        element(picture, host ? "rect" : "circle", { class: "node", ...shape });
        if (!host || width / data.nodes.length > 40 || (tiered && width / room[node[3]] > 46))
          if (!tiered || width / room[node[3]] > 9 * String(node[0]).length * 0.75)
            element(picture, "text", { x, y: host ? y + 16 : y - 10 }, node[0]);
      });
      paint();
    };

    const paint = () => {
      const shown = current(), { down, texts } = failures();
      crosses.forEach((cross, link) => { cross.style.display = down.has(link) ? "" : "none"; });
      dead.textContent = texts.join(", ");
      lines.forEach((line, direction) => {
        line.classList.toggle("dead", down.has(direction >> 1));
        const found = value(direction), share = found == null || !shown.most ? 0 : found / shown.most;
        line.style.stroke = found == null ? "var(--rule)" : ramp(share);
        line.style.strokeWidth = found == null ? 1 : 1.6 + 2.6 * share;
        line.dataset.value = found ?? "";
      });
      const frame = Number(slider.value);
      clock.textContent = shown ? `${time(frame * shown.length_ns)} to ${time((frame + 1) * shown.length_ns)}` : "";
      slider.setAttribute("aria-valuetext", clock.textContent);
      if (under !== null) tell(under);
    };

    const rewind = (keep = false) => {
      if (!keep) measure.replaceChildren(...measured().map((m, i) => new Option(m.title, i)));
      measure.parentElement.hidden = measured().length < 2;
      const shown = current(), frames = shown ? shown.values.length : 0;
      slider.max = Math.max(0, frames - 1);
      if (!keep) slider.value = Math.floor(frames / 3);
      slider.hidden = play.hidden = frames < 2;
      scale.replaceChildren();
      if (shown) {
        element(scale, "span", {}, shown.title + ": 0");
        element(scale, "span", { class: "bar" }).style.background =
          `linear-gradient(90deg, ${[0, 0.25, 0.5, 0.75, 1].map(ramp).join(", ")})`;
        element(scale, "span", {}, `${shown.most} ${shown.unit}`.trim());
      }
      paint();
    };

    const tell = (direction) => {
      const [a, b, aPort, bPort, rate] = data.links[direction >> 1], back = direction & 1;
      const [from, to] = back ? [b, a] : [a, b], found = value(direction), shown = current();
      const what = shown ? `\n${shown.title}: ${found == null ? "not measured" : `${found} ${shown.unit}`.trim()}` : "";
      const broken = failures().down.get(direction >> 1);
      tip.textContent = `${data.nodes[from][0]} to ${data.nodes[to][0]} (${back ? bPort : aPort}, ${rate})${what}`
        + (broken ? `\n✕ ${broken}` : "") + "\nClick: why do flows wait here?";
    };
    picture.addEventListener("pointermove", (event) => {
      const direction = event.target.dataset?.direction;
      under = direction === undefined ? null : Number(direction);
      if (under === null) { tip.textContent = ""; return; }
      tell(under);
      const box = place.getBoundingClientRect(), left = event.clientX - box.left + 12;
      tip.style.left = `${Math.max(0, Math.min(left, box.width - tip.offsetWidth - 4))}px`;
      tip.style.top = `${event.clientY - box.top + 14}px`;
    });
    picture.addEventListener("click", (event) => {
      const direction = event.target.dataset?.direction;
      if (direction === undefined) return;
      const [a, b] = data.links[direction >> 1], [from, to] = direction & 1 ? [b, a] : [a, b];
      const link = `${data.nodes[from][0]}->${data.nodes[to][0]}`;
      command.hidden = false;
      command.querySelector("code").textContent = `weftline why ${data.runs[Number(run.value)].folder} --link '${link}'`;
    });
    picture.addEventListener("pointerleave", () => { under = null; tip.textContent = ""; });
    slider.addEventListener("input", paint);
    const stop = () => { clearInterval(timer); timer = null; play.textContent = "Play"; };
    play.addEventListener("click", () => {
      if (timer) return stop();
      play.textContent = "Pause";
      if (slider.value === slider.max) slider.value = 0;
      timer = setInterval(() => {
        if (slider.value === slider.max) return stop();
        slider.value = Number(slider.value) + 1;
        paint();
      }, 120);
    });
    dark.addEventListener("change", () => rewind(true));
    let width = place.clientWidth;
    new ResizeObserver(() => { if (place.clientWidth !== width) { width = place.clientWidth; draw(); } }).observe(place);
    rewind();
    draw();
  };

  const networks = JSON.parse(document.getElementById("networks").textContent);
  for (const place of document.querySelectorAll(".network")) show(place, networks[Number(place.dataset.network)]);
})();
