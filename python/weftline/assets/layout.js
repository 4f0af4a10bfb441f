// Tables that are wider than their place are set as lists, commands can be copied, the contents follow the reader.
(() => {
  const place = (table) => {
    const heads = [...(table.tHead?.rows[0]?.cells || [])].map((cell) => cell.textContent);
    const room = table.parentElement.clientWidth, fits = () => table.offsetWidth <= room + 1;
    table.classList.remove("stacked", "loose");
    if (fits()) return;
    // With room for some columns cells may have several lines.
    if (room > 700) table.classList.add("loose");
    if (fits()) return;
    for (const row of table.tBodies[0].rows) [...row.cells].forEach((cell, i) => { cell.dataset.head = heads[i] || ""; });
    table.classList.add("stacked");
  };
  const all = () => document.querySelectorAll(".wide > table").forEach(place);
  let width = 0, later;
  new ResizeObserver(() => {
    if (document.body.clientWidth === width) return;
    width = document.body.clientWidth;
    clearTimeout(later);
    later = setTimeout(all, 50);
  }).observe(document.body);
  all();
  // A table in a folded element has no width until that is opened.
  document.addEventListener("toggle", (event) => event.target.querySelectorAll(".wide > table").forEach(place), true);
  addEventListener("weftline-tables", all);

  const copied = (command) => {
    if (command.querySelector("button")) return;
    const button = command.appendChild(document.createElement("button"));
    button.type = "button";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      const code = command.querySelector("code");
      try {
        await navigator.clipboard.writeText(code.textContent);
        button.textContent = "Copied";
      } catch {
        // A page that is a file may not write to the clipboard: the command is selected instead.
        getSelection().selectAllChildren(code);
        button.textContent = "Selected";
      }
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
  };
  addEventListener("DOMContentLoaded", () => document.querySelectorAll("pre.command").forEach(copied));

  const links = new Map([...document.querySelectorAll("nav a")].map((a) => [a.hash.slice(1), a]));
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) links.get(entry.target.id)?.classList.toggle("here", entry.isIntersecting);
  }, { rootMargin: "-10% 0px -60% 0px" });
  for (const id of links.keys()) { const part = document.getElementById(id); if (part) seen.observe(part); }
})();
