"use strict";
(() => {
  const body = document.querySelector(".tasks tbody");
  const rows = [...body.rows];
  const heads = [...document.querySelectorAll(".tasks thead th")];

  // A column's head sorts by it; a second time the other way
  function compare(one, other) {
    const numbers = [one, other].map((cell) => cell.dataset.value);
    if (numbers[0] !== undefined) return numbers[0] - numbers[1];
    return one.textContent.localeCompare(other.textContent, undefined, { numeric: true });
  }
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const way = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", way === 1 ? "ascending" : "descending");
      rows.sort((one, other) => way * compare(one.cells[column], other.cells[column]));
      body.append(...rows);
    });
  });

  // A result's button shows the tasks that have it
  const buttons = [...document.querySelectorAll("#results button")];
  for (const button of buttons) {
    button.addEventListener("click", () => {
      const { word } = button.dataset;
      for (const other of buttons) other.setAttribute("aria-pressed", String(other === button));
      for (const row of rows) row.hidden = word !== "" && row.querySelector(".word").textContent !== word;
    });
  }
  document.getElementById("results").hidden = false;
})();
