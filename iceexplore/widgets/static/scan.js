export function scanView(model) { return { element: document.createElement("div"), end() {} }; }
