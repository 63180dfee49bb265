"use strict";
// Values of points, on hover and on keyboard focus. Each plot is one stop of the Tab
// key; arrow keys go from point to point, up and down from one series to the next.
(() => {
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.setAttribute("aria-hidden", "true");
  document.body.append(tip);

  const show = (point) => {
    tip.textContent = point.dataset.tip;
    const at = point.getBoundingClientRect();
    const own = tip.getBoundingClientRect();
    const middle = at.left + at.width / 2 - own.width / 2;
    const left = Math.max(6, Math.min(middle, document.documentElement.clientWidth - own.width - 6));
    const above = at.top - own.height - 6;
    tip.style.left = `${left + window.scrollX}px`;
    tip.style.top = `${(above > 4 ? above : at.bottom + 6) + window.scrollY}px`;
    tip.style.visibility = "visible";
  };
  const hide = () => { tip.style.visibility = "hidden"; };

  const neighbour = (point, key) => {
    const all = [...point.ownerSVGElement.querySelectorAll(".pt")];
    const series = all.filter((other) => other.dataset.series === point.dataset.series);
    const place = series.indexOf(point);
    const names = [...new Set(all.map((other) => other.dataset.series))];
    const name = names.indexOf(point.dataset.series);
    const across = (to) => {
      const others = all.filter((other) => other.dataset.series === names[to]);
      return others[Math.min(place, others.length - 1)];
    };
    switch (key) {
      case "ArrowRight": return series[place + 1] ?? across(name + 1) ?? point;
      case "ArrowLeft": return series[place - 1] ?? point;
      case "ArrowDown": return across(name + 1);
      case "ArrowUp": return across(name - 1);
      case "Home": return series[0];
      case "End": return series[series.length - 1];
      default: return undefined;
    }
  };

  for (const svg of document.querySelectorAll("svg")) {
    const points = svg.querySelectorAll(".pt");
    points.forEach((point, at) => point.setAttribute("tabindex", at === 0 ? "0" : "-1"));
  }
  const pointOf = (event) => (event.target instanceof Element ? event.target.closest(".pt") : null);
  document.addEventListener("pointerover", (event) => {
    const point = pointOf(event);
    if (point) show(point); else hide();
  });
  document.addEventListener("focusin", (event) => {
    const point = pointOf(event);
    if (point) show(point);
  });
  document.addEventListener("focusout", hide);
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") hide();
    const point = pointOf(event);
    const next = point && neighbour(point, event.key);
    if (!next) return;
    event.preventDefault();
    point.setAttribute("tabindex", "-1");
    next.setAttribute("tabindex", "0");
    next.focus();
  });
  window.addEventListener("beforeprint", () => {
    hide();
    document.querySelectorAll("details").forEach((details) => { details.open = true; });
  });
})();
