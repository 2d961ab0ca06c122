"use strict";
(() => {
  // The ticks of viewed files, remembered for each run
  const store = `code-commit viewed ${document.body.dataset.run}`;
  const ticks = [...document.querySelectorAll(".viewed input")];
  const seen = new Set();
  try {
    for (const path of JSON.parse(localStorage.getItem(store) || "[]")) seen.add(path);
  } catch { /* nothing is remembered here */ }

  function show(fold) {
    for (const tick of ticks) {
      tick.checked = seen.has(tick.dataset.path);
      const file = tick.closest("details.file");
      if (file && tick.checked && fold) file.open = false;
    }
  }

  for (const tick of ticks) {
    tick.parentElement.hidden = false;
    tick.addEventListener("change", () => {
      if (tick.checked) seen.add(tick.dataset.path);
      else seen.delete(tick.dataset.path);
      const file = [...document.querySelectorAll("details.file")]
        .find((one) => one.querySelector(".viewed input")?.dataset.path === tick.dataset.path);
      if (file) file.open = !tick.checked;
      show(false);
      try {
        localStorage.setItem(store, JSON.stringify([...seen]));
      } catch { /* the same */ }
    });
  }
  show(true);

  // A build's output opens at its error
  function toError(box) {
    const line = box.querySelector(".error");
    if (line) box.scrollTop = line.offsetTop - box.offsetTop - box.clientHeight / 2;
  }
  for (const box of document.querySelectorAll("pre.output:not(.short)")) {
    toError(box);
    box.closest("details").addEventListener("toggle", () => toError(box), { once: true });
  }

  // A link into something folded unfolds it
  function openTarget() {
    const target = document.getElementById(location.hash.slice(1));
    if (!target) return;
    for (let around = target.closest("details"); around; around = around.parentElement.closest("details")) {
      around.open = true;
    }
    target.scrollIntoView();
  }
  window.addEventListener("hashchange", openTarget);
  openTarget();

  const copy = document.getElementById("copy");
  if (copy && navigator.clipboard) {
    copy.hidden = false;
    copy.addEventListener("click", async () => {
      const command = document.getElementById("undo");
      try {
        await navigator.clipboard.writeText(command.textContent);
        copy.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(command);
      }
    });
  }

  let folded = [];
  window.addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details:not([open]):not(.long)")];
    for (const element of folded) element.open = true;
  });
  window.addEventListener("afterprint", () => { for (const element of folded) element.open = false; });

  for (const time of document.querySelectorAll("time")) {
    const moment = new Date(time.dateTime);
    if (!isNaN(moment)) time.textContent = moment.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "long" });
  }
})();
