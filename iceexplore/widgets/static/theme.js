/**
 * The light or dark theme of a widget, which follows the page around it.
 *
 * @module
 */

/** @import { Model } from "./types.d.ts" */

const DARK = "(prefers-color-scheme: dark)";
const CONTRAST = "(prefers-contrast: more)";

/**
 * Return the page's theme.
 *
 * JupyterLab and Notebook, VS Code, documentation sites and Colab name their theme. For other pages it is derived from
 * the colour of the text, because a page need not follow the system's theme.
 *
 * @returns {"dark" | "light"}
 */
function pageTheme() {
  const { body, documentElement: page } = document;
  const { jpThemeLight, vscodeThemeKind } = body.dataset;
  const named = page.dataset.theme ?? page.getAttribute("theme");
  const text = getComputedStyle(body).color;
  let dark = matchMedia(DARK).matches;
  if (jpThemeLight) {
    dark = jpThemeLight === "false";
  } else if (vscodeThemeKind) {
    dark = !vscodeThemeKind.includes("light");
  } else if (named === "dark" || named === "light") {
    dark = named === "dark";
  } else if (text.startsWith("rgb")) {
    const channels = (text.match(/\d+/g) ?? []).slice(0, 3).map(Number);
    dark = Math.max(...channels) > 127;
  }
  return dark ? "dark" : "light";
}

/**
 * Call `run` when attributes of nodes or media queries change, until the widget is removed.
 *
 * @param {Model} model
 * @param {Node[]} nodes
 * @param {MutationObserverInit} attributes
 * @param {MediaQueryList[]} queries
 * @param {() => void} run
 */
export function watchTheme(model, nodes, attributes, queries, run) {
  const observer = new MutationObserver(run);
  for (const node of nodes) observer.observe(node, attributes);
  for (const query of queries) query.addEventListener("change", run);
  model.onEnd(() => {
    observer.disconnect();
    for (const query of queries) query.removeEventListener("change", run);
  });
}

/**
 * Update two attributes of a widget when the page's theme changes: `data-ice-theme`, light or dark, and
 * `data-ice-contrast`, which is set if the system or a theme of VS Code asks for more contrast.
 *
 * @param {Model} model
 * @param {HTMLElement} root
 */
export function followTheme(model, root) {
  const dark = matchMedia(DARK);
  const contrast = matchMedia(CONTRAST);
  const apply = () => {
    const high = contrast.matches || document.body.classList.contains("vscode-high-contrast");
    root.toggleAttribute("data-ice-contrast", high);
    root.dataset.iceTheme = pageTheme();
  };
  apply();
  const nodes = [document.body, document.documentElement];
  watchTheme(model, nodes, { attributes: true }, [dark, contrast], apply);
}
