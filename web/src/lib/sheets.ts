// Styles that a library makes while it runs, as constructed style sheets: the portal's content-security policy has no inline styles.

/** Does something during which elements `style` are made; what is written into them, then and later, is a style sheet of the document. */
export function withSheets<T>(during: () => T): T {
  const make = document.createElement;
  document.createElement = function (this: Document, name: string, options?: ElementCreationOptions) {
    // An element `style` offends the policy even while it is empty; a template is never shown.
    return name === "style" ? adopt(make.call(document, "template")) : make.call(document, name, options);
  } as typeof document.createElement;
  try {
    return during();
  } finally {
    document.createElement = make;
  }
}

function adopt(element: HTMLElement): HTMLElement {
  const sheet = new CSSStyleSheet();
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
  Object.defineProperty(element, "textContent", { set: (text: string) => sheet.replaceSync(text), get: () => "" });
  const remove = element.remove.bind(element);
  element.remove = () => {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((other) => other !== sheet);
    remove();
  };
  return element;
}
