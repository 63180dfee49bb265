// Looks at pages in frames of several widths and writes what is wrong with their layout, a line each.
"use strict";
const LABEL_AT_LEAST = 11;
// Boxes of labels hold room above and below the letters.
const ROOM = 2;

const box = (element) => {
  const { left, right, top, bottom } = element.getBoundingClientRect();
  return { left: left + 0.5, right: right - 0.5, top: top + ROOM, bottom: bottom - ROOM };
};
const meet = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;

const ofChart = (svg) => {
  const found = [];
  const name = svg.getAttribute("aria-label");
  const paper = svg.getBoundingClientRect();
  const scale = paper.width / svg.viewBox.baseVal.width;
  const labels = [...svg.querySelectorAll("text")].map((label) => ({ label, text: label.textContent, box: box(label) }));
  const axes = [...svg.querySelectorAll("line.axis")].map((axis) => axis.getBoundingClientRect());
  const papers = [...svg.querySelectorAll(".paper")].map(box);
  labels.forEach(({ label, text, box: own }, at) => {
    const size = scale * parseFloat(getComputedStyle(label).fontSize);
    if (size < LABEL_AT_LEAST - 0.05) found.push(`${name}: '${text}' is ${size.toFixed(1)} px high`);
    if (own.left < paper.left - 1 || own.right > paper.right + 1) found.push(`${name}: '${text}' sticks out`);
    const isUnderlaid = papers.some((paper) => meet(own, paper));
    if (!isUnderlaid && axes.some((axis) => meet(own, axis))) found.push(`${name}: an axis goes through '${text}'`);
    for (const other of labels.slice(at + 1)) {
      if (meet(own, other.box)) found.push(`${name}: '${text}' lies on '${other.text}'`);
    }
  });
  for (const curve of svg.querySelectorAll("path.line")) {
    const across = [...curve.getAttribute("d").matchAll(/[ML](\S+)/g)].map((place) => parseFloat(place[1]));
    if (across.some((x, at) => x < across[at - 1] - 0.5)) found.push(`${name}: a curve runs backwards`);
  }
  return found;
};

const ofPage = (page) => {
  page.querySelectorAll("details").forEach((details) => { details.open = true; });
  const { scrollWidth, clientWidth } = page.documentElement;
  const found = [...page.querySelectorAll("svg[role]")].flatMap(ofChart);
  if (scrollWidth > clientWidth) found.unshift(`is ${scrollWidth} px wide`);
  return found;
};

window.addEventListener("load", () => {
  const found = [];
  let charts = 0;
  for (const frame of document.querySelectorAll("iframe")) {
    const page = frame.contentDocument;
    charts += page.querySelectorAll("svg[role]").length;
    found.push(...ofPage(page).map((what) => `${frame.title} at ${frame.width} px: ${what}`));
  }
  const report = document.createElement("pre");
  report.textContent = [`${charts} charts`, ...found].join("\n");
  document.body.replaceChildren(report);
});
