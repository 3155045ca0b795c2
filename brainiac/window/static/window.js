// All that htmx does not. Every page works without: this only makes it quicker.
"use strict";
const box = document.getElementById("box");

// what has happened: one stream a browser, whichever tab has it tells the others; more would use up its connections
const others = new BroadcastChannel("brainiac");
function happened({ kind, data }) {
  if (kind === "changed") document.body.dispatchEvent(new Event("changed"));
  if (kind === "answer") {
    const place = [...document.querySelectorAll(".coming")].find((one) => one.dataset.prompt === data.prompt);
    if (place) place.textContent = data.text;
  }
}
others.onmessage = (event) => happened(event.data);
function listen() {
  const stream = new EventSource("/live?after=" + document.body.dataset.after);
  for (const kind of ["changed", "answer"]) {
    stream.addEventListener(kind, (event) => {
      const told = { kind, data: JSON.parse(event.data) };
      happened(told);
      others.postMessage(told);
    });
  }
  return new Promise((end) => addEventListener("pagehide", () => { stream.close(); end(); }, { once: true }));
}
if (document.getElementById("fresh")) navigator.locks ? navigator.locks.request("brainiac-live", listen) : listen();
addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });

document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && event.target.form === box) box?.requestSubmit();
});
// what waits for a word, by keys: j and k go on and back, y, n, l and x press what stands there
let place = -1;
const choices = () => [...document.querySelectorAll(".kind .choice")];
function stand(at) {
  const all = choices();
  place = Math.max(0, Math.min(at, all.length - 1));
  all[place]?.focus();
}
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("textarea, select, input:not([type=checkbox])")) return;
  const here = document.activeElement.closest(".choice");
  if (here) place = choices().indexOf(here);
  if ("jk".includes(event.key)) stand(place + (event.key === "j" ? 1 : -1));
  else if (here && !event.repeat && "ynl".includes(event.key)) here.querySelector(".key-" + event.key)?.click();
  else if (here && event.key === "x") here.querySelector("input[type=checkbox]")?.click();
});
document.addEventListener("htmx:after:swap", () => { if (place >= 0 && document.activeElement === document.body) stand(place); });
// what is looked for stands in the address, so that one comes back to it
document.addEventListener("htmx:after:request", (event) => {
  if (event.target.id === "find") history.replaceState(null, "", "/search?" + new URLSearchParams(new FormData(event.target)));
});
let sent = "";
document.addEventListener("htmx:before:request", (event) => { if (event.target === box) sent = box.elements.text.value; });
document.addEventListener("htmx:after:request", (event) => {
  const status = event.detail.ctx?.response?.status;
  if (status === 401) location.reload();
  else if (event.target === box && status < 400 && box.elements.text.value === sent) box.elements.text.value = "";
});
