"use strict";
(() => {
  const help = document.getElementById("help");
  const keysOn = document.getElementById("keys-on");
  const files = [...document.querySelectorAll("details.file")];
  const sections = [...document.querySelectorAll("main > section")];
  const top = () => document.querySelector("nav").getBoundingClientRect().bottom;

  function focusOn(element, target) {
    element.scrollIntoView({ block: "start", behavior: "instant" });
    target.focus({ preventScroll: true });
  }

  function step(elements, direction, focusable) {
    const held = elements.findIndex((element) => element.contains(document.activeElement));
    const edge = top() + 48;
    const passed = elements.filter((element) => element.getBoundingClientRect().top < edge).length - 1;
    const here = held >= 0 ? held : direction > 0 ? passed : passed + 1;
    const next = elements[Math.min(Math.max(here + direction, 0), elements.length - 1)];
    if (next) focusOn(next, focusable(next));
  }

  const summaryOf = (file) => file.querySelector("summary");

  function headingOf(section) {
    const heading = section.querySelector("h2");
    heading.tabIndex = -1;
    return heading;
  }

  function current() {
    return files.find((file) => file.contains(document.activeElement)) ||
      files.find((file) => file.getBoundingClientRect().bottom > top());
  }

  const actions = {
    j: () => step(files, 1, summaryOf),
    k: () => step(files, -1, summaryOf),
    n: () => step(sections, 1, headingOf),
    p: () => step(sections, -1, headingOf),
    o: () => {
      const file = current();
      if (file) { file.open = !file.open; focusOn(file, summaryOf(file)); }
    },
    O: () => {
      const open = !files.some((file) => file.open);
      for (const file of files) file.open = open;
    },
    "?": () => help.open ? help.close() : help.showModal(),
  };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    const action = Object.hasOwn(actions, event.key) ? actions[event.key] : null;
    if (!action || (!keysOn.checked && event.key !== "?") || (help.open && event.key !== "?")) return;
    event.preventDefault();
    action();
  });

  const button = document.getElementById("keys");
  button.hidden = false;
  button.addEventListener("click", () => help.showModal());

  function openTarget() {
    const target = document.getElementById(location.hash.slice(1));
    if (target && target.matches("details")) { target.open = true; target.scrollIntoView({ behavior: "instant" }); }
  }
  window.addEventListener("hashchange", openTarget);
  openTarget();

  let folded = [];
  window.addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details:not([open]):not(.long)")];
    for (const element of folded) element.open = true;
  });
  window.addEventListener("afterprint", () => { for (const element of folded) element.open = false; });

  for (const time of document.querySelectorAll("time")) {
    const moment = new Date(time.dateTime);
    if (!isNaN(moment)) time.textContent = moment.toLocaleString();
  }
})();
