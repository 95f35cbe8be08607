// What makes the page live: it asks for itself again, counts, and says so when nobody answers.
// Without it everything works, by hand: links, forms and reloading.
(function () {
  "use strict";
  const POLL_MS = 2000;
  const SOON_MS = 600;
  const UNITS = [[86400, "d", 3600, "h"], [3600, "h", 60, "m"], [60, "m", 1, "s"]];
  let offset = 0; // what Redis' clock is ahead of this one
  let failing = null; // since when nobody answers
  let foreign = false; // whether the last answer was no page of ours
  let shown = ""; // the entity tag of what the page shows

  const live = () => document.getElementById("live");

  function told() {
    const at = Number(live()?.dataset.now);
    if (at) offset = at - Date.now();
  }

  function span(seconds) {
    for (const [size, name, part, partName] of UNITS) {
      if (seconds >= size) {
        const rest = seconds % size;
        return Math.floor(seconds / size) + name + (rest >= part ? Math.floor(rest / part) + partName : "");
      }
    }
    return seconds + " s";
  }

  function count() {
    const now = Date.now() + offset;
    for (const each of document.querySelectorAll("time.away")) {
      const gap = (Number(each.dataset.at) - now) / 1000;
      const whole = Math.floor(Math.abs(gap));
      const words = whole < 1 ? "now" : gap > 0 ? "in " + span(whole) : span(whole) + " ago";
      if (each.textContent !== words) each.textContent = words;
    }
  }

  function trouble(words) {
    const banner = document.getElementById("trouble");
    if (!banner) return;
    banner.hidden = !words;
    if (banner.textContent !== words) banner.textContent = words;
  }

  function poll() {
    if (document.visibilityState === "visible" && live() && window.htmx) htmx.trigger(live(), "beat:poll");
  }

  // Where the viewer is: from then on the page has their times, too.
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone || "";
  if (zone && !document.cookie.includes("beat_tz=" + encodeURIComponent(zone))) {
    document.cookie = "beat_tz=" + encodeURIComponent(zone) + ";path=/;max-age=31536000;samesite=lax";
    addEventListener("load", poll);
  }

  // What somebody has opened stays open when the page is drawn again, and what they write stays as they wrote it.
  if (window.Idiomorph) {
    Object.assign(Idiomorph.defaults, { ignoreActiveValue: true });
    // What is the same is not looked at any closer: a list has thousands of parts, and most of them stay.
    Idiomorph.defaults.callbacks.beforeNodeMorphed = (before, after) => !before.isEqualNode(after);
    Idiomorph.defaults.callbacks.beforeAttributeUpdated = (name, node) =>
      !(name === "open" && (node.tagName === "DETAILS" || node.tagName === "DIALOG")) &&
      !(["value", "checked"].includes(name) && node.matches("input:not([type=hidden]), input[name=request], textarea"));
    // What a run is known by stays as it is: who presses again before the first press is answered means the same run.
  }

  // Who writes in one of several groups of fields means that one.
  document.addEventListener("input", (event) => {
    const radio = event.target.closest("fieldset.kind")?.querySelector("legend input[type=radio]");
    if (radio && event.target.type !== "radio") radio.checked = true;
  }, true);

  // A poll names what the page shows, and is answered with 304 as long as nothing has changed.
  document.addEventListener("htmx:configRequest", (event) => {
    if (shown && event.detail.elt === live()) event.detail.headers["If-None-Match"] = shown;
  });
  document.addEventListener("htmx:afterSwap", () => { told(); count(); });
  function unanswered() {
    failing = failing || new Date();
    trouble("The server of the web UI has not answered since " + failing.toLocaleTimeString() + ". What you see is from before.");
  }
  document.addEventListener("htmx:sendError", unanswered);
  document.addEventListener("htmx:timeout", unanswered);
  // What is no page of ours (somebody has signed out, a proxy says no) leaves the page as it is, and says so.
  document.addEventListener("htmx:beforeSwap", (event) => {
    if (event.detail.xhr.status === 304 || event.detail.target !== live()) return;
    if (event.detail.serverResponse.includes('id="live"')) {
      shown = event.detail.xhr.getResponseHeader("ETag") || "";
      return;
    }
    event.detail.shouldSwap = false;
    event.detail.isError = false;
    foreign = true;
    trouble("The server no longer shows this page (" + event.detail.xhr.status + "): load it again. What you see is from before.");
  });
  document.addEventListener("htmx:afterOnLoad", () => {
    failing = null;
    if (!foreign) trouble("");
    foreign = false;
  });
  document.addEventListener("visibilitychange", poll);
  // Who comes back to a page that the browser has kept is about to ask for another run.
  addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });

  told();
  setInterval(count, 250);
  setInterval(poll, POLL_MS);
  if (document.querySelector(".strip-room")) setTimeout(poll, SOON_MS); // what was not ready may be
})();
