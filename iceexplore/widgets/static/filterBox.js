/**
 * The box in which a filter is typed: while the user types, it suggests completions and explains errors.
 *
 * @module
 */

/** @import { Model, ScanHint } from "./types.d.ts" */

import { clamp, el, fill, listen, timer } from "./dom.js";

/** The time without a key press, in ms, after which the typed text is sent to Python. */
const HINT_DELAY = 120;

/**
 * Return the error to show below the box; "" if there is none, while a word is being completed, and if the plan already
 * shows the error.
 *
 * @param {ScanHint} hint
 * @param {string} text What is in the box.
 * @param {boolean} hasChoices Whether choices are shown.
 * @param {string | undefined} planned The filter of the plan that is shown.
 */
export function errorToShow({ error = "", unfinished, start = 0, end = 0, text: hinted }, text, hasChoices, planned) {
  const isCompleting = hasChoices && (unfinished || start < end);
  if (!text.trim() || hinted !== text || isCompleting || planned === text.trim()) return "";
  return error;
}

/**
 * Return the index of the choice `by` steps after `at`. The `count` choices, and -1 for no choice, form a circle.
 *
 * @param {number} at
 * @param {number} by
 * @param {number} count
 */
export function nextChoice(at, by, count) {
  const places = count + 1;
  return ((at + 1 + by + places) % places) - 1;
}

/**
 * Return the box for a filter, and the list of its possible continuations (WAI-ARIA combobox): the focus stays in the
 * box.
 *
 * @param {Model} model
 * @param {object} options
 * @param {string} options.id Unique in the page.
 * @param {"scan_filter" | "rows_filter"} options.trait The trait that contains the filter.
 * @param {() => string | undefined} options.planned Return the filter of the answer that is shown.
 * @param {(text: string) => void} options.submit
 */
export function filterBox(model, { id, trait, planned, submit }) {
  const input = el("input.input.scan-input", {
    role: "combobox",
    ariaLabel: "Filter",
    ariaAutoComplete: "list",
    "aria-controls": `${id}-list`,
    "aria-describedby": `${id}-fault`,
    autocomplete: "off",
    autocapitalize: "off",
    spellcheck: "false",
    placeholder: "Filter rows",
  });
  const list = el("ul.scan-list", { role: "listbox", id: `${id}-list`, ariaLabel: "Suggestions" });
  const fault = el("pre.scan-fault", { id: `${id}-fault`, role: "status" });
  /** The number of the request whose answer is the list; 0 while the list is closed. */
  let question = 0;
  /** The choice that Enter takes, once there are choices, or -1. */
  let at = -1;
  const wait = timer(model);

  function choices() {
    const { n, at: cursor, choices: found = [] } = model.scan_hint;
    return n === question && cursor === input.selectionStart ? found : [];
  }
  /** @param {number} [first] The index of the choice that is marked first. */
  function show(first = -1) {
    wait();
    question = model.request("scan_draft", { text: input.value, at: input.selectionStart });
    at = first;
    draw();
  }
  function shut() {
    wait();
    question = 0;
    at = -1;
    draw();
  }
  function draw() {
    const found = choices();
    if (found.length) at = Math.min(at, found.length - 1);
    const items = found.map(([text, note], i) => {
      /** @param {MouseEvent} event */
      function onmousedown(event) {
        // Keep the focus in the box.
        event.preventDefault();
        accept(i);
      }
      const properties = { role: "option", id: `${id}-${i}`, ariaSelected: i === at, onmousedown };
      return el("li", properties, el("code", text), el("span", note));
    });
    fill(list, items);
    const chosen = items[at];
    input.ariaExpanded = String(found.length > 0);
    input.setAttribute("aria-activedescendant", chosen?.id ?? "");
    if (chosen) {
      const least = chosen.offsetTop + chosen.offsetHeight - list.clientHeight;
      list.scrollTop = clamp(least, list.scrollTop, chosen.offsetTop);
    }
    const hint = model.scan_hint;
    const isHere = input.matches(":focus");
    const error = isHere ? errorToShow(hint, input.value, found.length > 0, planned()) : "";
    // Setting it again would make screen readers read it again.
    if (fault.textContent !== error) fault.textContent = error;
    fault.classList.toggle("ice-quiet", hint.unfinished ?? false);
    input.ariaInvalid = String(error !== "" && !hint.unfinished);
  }
  /** @param {number} i */
  function accept(i) {
    const { start = 0, end = 0 } = model.scan_hint;
    input.setRangeText(choices()[i][2], start, end, "end");
    show();
  }
  /** @param {number} by */
  function move(by) {
    const count = choices().length;
    if (count) {
      at = nextChoice(at, by, count);
      draw();
    } else {
      // Go to the first or the last choice once the choices have arrived.
      show(by > 0 ? 0 : Infinity);
    }
  }
  function enter() {
    if (choices()[at]) {
      accept(at);
    } else {
      shut();
      submit(input.value);
    }
  }
  listen(input, {
    keydown(event) {
      // Otherwise the notebook would handle the key.
      event.stopPropagation();
      /** @type {Record<string, false | (() => void)>} */
      const actions = {
        ArrowDown: () => move(1),
        ArrowUp: () => move(-1),
        Enter: enter,
        Escape: choices().length > 0 && shut,
        " ": event.ctrlKey && (() => show()),
      };
      const action = actions[event.key];
      if (!action) return;
      event.preventDefault();
      action();
    },
    input() {
      shut();
      wait(show, HINT_DELAY);
    },
    blur: shut,
  });
  model.follow(trait, () => {
    if (input.value.trim() !== model[trait]) input.value = model[trait];
    shut();
  });
  model.onChange(["scan_hint", "scan_plan", "rows_answer"], draw);
  return { element: el("div.combo", input, el("div.scan-pop", fault, list)), value: () => input.value };
}
