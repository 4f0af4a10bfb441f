// The list of runs: filtered, sorted, compared; and questions in SQL. Whatever a run is called stands here as text.
(() => {
  const SHOWN = 500; // rows in the list at a time
  const at = (id) => document.getElementById(id);
  const chosen = new Set();
  let rows = [], columns = [], order = { column: "run", down: false };
  // Columns of every run that stand behind "All columns"; what limits a run's value is in one column of flags.
  const DETAILS = ["status", "flows_done", "end_ns", "slowdown_p95", "drops", "pauses", "cpu_seconds", "fingerprint"];
  const TITLES = { slowdown_p50: "p50 slowdown", slowdown_p95: "p95 slowdown", slowdown_p99: "p99 slowdown" };
  const flags = (row) => [
    row.status && row.status !== "done" ? row.status : "",
    row.flows > row.flows_done ? `${(row.flows - row.flows_done).toLocaleString("en")} unfinished` : "",
    row.drops ? `${row.drops.toLocaleString("en")} dropped` : "",
  ].filter(Boolean).join(", ");
  const shown = () => at("details").checked ? columns : columns.filter((name) => !DETAILS.includes(name));

  const make = (parent, name, text = "", attributes = {}) => {
    const made = parent.appendChild(document.createElement(name));
    if (text !== "") made.textContent = text;
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  };
  // Four digits of a fraction, and never fewer than all before the point.
  const said = (value) => value === null || value === undefined ? "–"
    : typeof value !== "number" || Number.isInteger(value) ? String(value)
    : String(Math.abs(value) < 1000 ? Number(value.toPrecision(4)) : Math.round(value));
  const human = (name, value) => {
    if (typeof value !== "number") return said(value);
    if (!name.endsWith("_ns")) return Number.isInteger(value) && value >= 1e4 && name !== "seed" ? value.toLocaleString("en") : said(value);
    const [unit, size] = [["s", 1e9], ["ms", 1e6], ["us", 1e3], ["ns", 1]].find(([, size]) => value >= size) || ["ns", 1];
    return `${Number((value / size).toPrecision(4))} ${unit}`;
  };

  const named = (runs) => runs.map((run) => "runs=" + encodeURIComponent(run)).join("&");

  const plain = /^-?\d+(\.\d+)?$/;
  // Words that must all be found: plain ones anywhere in a row, others compare a column with a value.
  const compared = (word) => word.match(/^([A-Za-z_][\w.]*)(<=|>=|!=|=|<|>)(.*)$/);
  const test = (word) => {
    const found = compared(word);
    if (!found || !columns.includes(found[1])) {
      const lower = word.toLowerCase();
      return (row) => columns.some((column) => said(row[column]).toLowerCase().includes(lower));
    }
    const [, column, sign, text] = found, number = plain.test(text) ? Number(text) : NaN;
    const compare = { "=": (a, b) => a === b, "!=": (a, b) => a !== b, "<": (a, b) => a < b, ">": (a, b) => a > b,
                      "<=": (a, b) => a <= b, ">=": (a, b) => a >= b }[sign];
    return (row) => {
      const value = row[column];
      if (value === null || value === undefined) return false;
      // The variants of an axis are texts, and may be numbers all the same.
      const mine = typeof value === "number" ? value : plain.test(value) ? Number(value) : NaN;
      return Number.isNaN(number) || Number.isNaN(mine) ? compare(said(value), text) : compare(mine, number);
    };
  };

  // Small figures: all rows share their axes, so that runs can be compared by eye.
  const SPARKS = {
    fct: ["FCT", "Distribution of the completion times (log axis): the share of flows that had ended"],
    queue: ["queue", "Longest queue of the measured ports over time"],
  };
  const WIDTH = 90, HEIGHT = 20, sparks = new Map(), SVG = "http://www.w3.org/2000/svg";
  let ends = {};
  const drawn = () => Object.keys(SPARKS).filter((kind) => [...sparks.values()].some((of) => of[kind]));
  const spark = (cell, kind, run) => {
    const points = sparks.get(run)?.[kind];
    if (!points) return;
    const { left, right, top } = ends[kind];
    const x = (value) => (WIDTH * (value - left) / (right - left || 1)).toFixed(1);
    const y = (value) => (HEIGHT - 1 - (HEIGHT - 2) * value / (top || 1)).toFixed(1);
    const svg = cell.appendChild(document.createElementNS(SVG, "svg")), path = svg.appendChild(document.createElementNS(SVG, "path"));
    const [last] = points.slice(-1), middle = points.find(([, share]) => share >= 0.5) || last;
    const label = kind === "fct" ? `completion times: half within ${human("_ns", 10 ** middle[0])}, all within ${human("_ns", 10 ** last[0])}`
      : `longest queue ${Math.max(...points.map(([, value]) => value)).toLocaleString("en")} bytes`;
    for (const [name, value] of Object.entries({ class: "spark", width: WIDTH, height: HEIGHT, role: "img", "aria-label": label })) svg.setAttribute(name, value);
    svg.appendChild(document.createElementNS(SVG, "title")).textContent = label;
    path.setAttribute("d", points.map(([at, value], i) => `${i ? "L" : "M"}${x(at)} ${y(value)}`).join(""));
  };
  const fetchSparks = async (names) => {
    const missing = names.filter((name) => !sparks.has(name)).slice(0, 50);
    if (!missing.length) return;
    missing.forEach((name) => sparks.set(name, {}));
    const found = await fetched("/api/sparks?" + named(missing)).catch(() => ({}));
    for (const [name, of] of Object.entries(found)) sparks.set(name, of);
    for (const kind of Object.keys(SPARKS)) {
      const points = [...sparks.values()].flatMap((of) => of[kind] || []);
      const xs = points.map(([at]) => at), low = (values) => values.reduce((a, b) => Math.min(a, b), Infinity);
      const high = (values) => values.reduce((a, b) => Math.max(a, b), 0);
      ends[kind] = { left: kind === "fct" ? low(xs) : 0, right: high(xs), top: kind === "fct" ? 1 : high(points.map(([, value]) => value)) };
    }
    list();
  };

  const list = () => {
    const words = at("filter").value.split(/\s+/).filter(Boolean), tests = words.map(test);
    const unknown = words.map(compared).filter((word) => word && !columns.includes(word[1])).map((word) => word[1]);
    const found = rows.filter((row) => tests.every((passes) => passes(row)));
    const { column, down } = order;
    found.sort((a, b) => {
      const [x, y] = [a[column], b[column]];
      const less = typeof x === "number" && typeof y === "number" ? x - y : said(x).localeCompare(said(y), "en", { numeric: true });
      return down ? -less : less;
    });
    const head = at("runs").tHead, body = at("runs").tBodies[0];
    head.replaceChildren();
    body.replaceChildren();
    const line = make(head, "tr");
    make(line, "th");
    const names = shown(), highest = Math.max(...found.map((row) => row.slowdown_p99 || 0));
    for (const name of names) {
      const sorted = name === column ? { "aria-sort": down ? "descending" : "ascending" } : {};
      make(line, "th", TITLES[name] || name.replace(/_ns$/, "").replaceAll("_", " "), { scope: "col", title: name, ...sorted }).addEventListener("click", () => {
        order = { column: name, down: name === column ? !down : false };
        list();
      });
    }
    for (const kind of drawn()) make(line, "th", SPARKS[kind][0], { scope: "col", class: "text plain", title: SPARKS[kind][1] });
    if (rows.some(flags)) make(line, "th", "flags", { scope: "col", class: "text" });
    for (const row of found.slice(0, SHOWN)) {
      const made = make(body, "tr"), box = make(make(made, "td"), "input", "", { type: "checkbox", "aria-label": `choose ${row.run}` });
      box.checked = chosen.has(row.run);
      box.addEventListener("change", () => { box.checked ? chosen.add(row.run) : chosen.delete(row.run); ready(); });
      for (const name of names) {
        const cell = make(made, "td");
        if (typeof row[name] !== "number") cell.className = "text";
        if (name === "run") make(cell, "a", row.run, { href: "/page?" + named([row.run]), target: "_blank" });
        else cell.textContent = human(name, row[name]);
        if (name === "slowdown_p99" && row[name]) cell.style.backgroundSize = `${100 * row[name] / highest}% 3px`;
        if (name === "slowdown_p99") cell.classList.add("bar");
      }
      for (const kind of drawn()) spark(make(made, "td", "", { class: "text" }), kind, row.run);
      if (rows.some(flags)) make(made, "td", flags(row), { class: "text bad" });
    }
    fetchSparks(found.slice(0, SHOWN).map((row) => row.run));
    dispatchEvent(new Event("weftline-tables"));
    at("count").textContent = `${found.length.toLocaleString("en")} of ${rows.length.toLocaleString("en")} runs`;
    at("rest").textContent = [
      unknown.length ? `No column is called ${unknown.join(" or ")}, so it is searched as text. Columns: ${columns.join(", ")}.` : "",
      found.length > SHOWN ? `The first ${SHOWN} are shown: filter for the others.` : "",
    ].filter(Boolean).join(" ");
  };
  const ready = () => {
    at("compare").disabled = chosen.size === 0;
    at("compare").textContent = chosen.size > 1 ? `Compare ${chosen.size}` : "Compare";
  };

  const answer = (found) => {
    const head = at("answer").tHead, body = at("answer").tBodies[0];
    head.replaceChildren();
    body.replaceChildren();
    const line = make(head, "tr");
    for (const name of found.columns) make(line, "th", name, { scope: "col" });
    for (const row of found.rows) {
      const made = make(body, "tr");
      for (const value of row) make(made, "td", said(value), typeof value === "number" ? { title: value } : { class: "text" });
    }
    dispatchEvent(new Event("weftline-tables"));
    at("said").className = "note";
    at("said").textContent = `${found.rows.length} row${found.rows.length === 1 ? "" : "s"}${found.more ? ", and more that are not shown" : ""}`;
  };
  const fetched = async (path) => {
    const response = await fetch(path);
    const text = await response.text();
    if (!response.ok) throw new Error(text);
    return JSON.parse(text);
  };

  at("filter").addEventListener("input", list);
  at("details").addEventListener("change", list);
  at("choose").addEventListener("submit", (event) => {
    event.preventDefault();
    if (chosen.size) open("/page?" + named([...chosen]), "_blank", "noopener");
  });
  at("ask").addEventListener("submit", async (event) => {
    event.preventDefault();
    at("said").className = "note";
    at("said").textContent = "…";
    try {
      answer(await fetched("/api/query?sql=" + encodeURIComponent(at("sql").value)));
    } catch (error) {
      at("answer").tHead.replaceChildren();
      at("answer").tBodies[0].replaceChildren();
      at("said").className = "note wrong";
      at("said").textContent = error.message;
    }
  });
  fetched("/api/runs").then((found) => {
    rows = found;
    columns = [...new Set(rows.flatMap((row) => Object.keys(row)))];
    // Axes come after the name: they are texts, and what the engine reports of every run is not among them.
    const fixed = ["run", "name", "seed"], axis = (name) => rows.every((row) => row[name] == null || typeof row[name] === "string");
    const rank = (name) => fixed.includes(name) ? 0 : DETAILS.includes(name) ? 3 : axis(name) ? 1 : 2;
    columns.sort((a, b) => rank(a) - rank(b));
    list();
  }).catch((error) => { at("count").textContent = error.message; });
})();
