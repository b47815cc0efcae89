// Filters the runs of the index of a gallery: those whose row has all words. The words are part of the address.
"use strict";
(() => {
  const section = document.getElementById("runs");
  if (!section) return;
  const rows = [...section.querySelectorAll("tbody tr")];
  const texts = rows.map(row => row.textContent.toLowerCase());
  const input = document.getElementById("words");
  const count = document.getElementById("count");
  const filter = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(word => word);
    let shown = 0;
    rows.forEach((row, at) => {
      row.hidden = !words.every(word => texts[at].includes(word));
      if (!row.hidden) shown += 1;
    });
    count.textContent = words.length ? `${shown} of ${rows.length} runs` : `${rows.length} runs`;
  };
  const fromAddress = () => {
    try {
      input.value = decodeURIComponent(location.hash.slice(1));
    } catch {
      input.value = "";
    }
    filter();
  };
  input.addEventListener("input", () => {
    history.replaceState(null, "", "#" + encodeURIComponent(input.value));
    filter();
  });
  window.addEventListener("hashchange", fromAddress);
  document.getElementById("search").hidden = false;
  fromAddress();
})();
