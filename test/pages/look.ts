/** What is asked inside the browser, as text: its world has other types than ours. */

/** How many scripts the page has. */
export const SCRIPTS = 'document.scripts.length';

/** Cookies that a script could read. */
export const COOKIES = 'document.cookie';

/** Opens everything that folds. */
export const UNFOLD = 'document.querySelectorAll("details").forEach((one) => { one.open = true; })';

/** By how many pixels the page is wider than the window. */
export const TOO_WIDE = 'document.documentElement.scrollWidth - window.innerWidth';

/** The colour of the page. */
export const PAPER = 'getComputedStyle(document.body).backgroundColor';

/** Pictures that have no name and are not hidden from a reader's software. */
export const UNNAMED = `[...document.querySelectorAll('svg')]
  .filter((one) => one.getAttribute('aria-hidden') !== 'true')
  .filter((one) => !one.hasAttribute('aria-label') && !one.hasAttribute('aria-labelledby'))
  .map((one) => one.outerHTML.slice(0, 80))`;

/** Levels of headings in order. */
export const HEADINGS = `[...document.querySelectorAll('h1,h2,h3')].map((one) => Number(one.tagName[1]))`;

/** What has the focus. */
export const FOCUSED = 'document.activeElement.textContent.trim()';

/** Ids that stand twice, and links within the page that lead nowhere. */
export const BROKEN = `(() => {
  const ids = [...document.querySelectorAll('[id]')].map((one) => one.id);
  return [
    ...ids.filter((id, at) => ids.indexOf(id) !== at),
    ...[...document.querySelectorAll('a[href^="#"]')]
      .map((one) => one.getAttribute('href'))
      .filter((href) => document.getElementById(href.slice(1)) === null),
  ];
})()`;

/** Text whose contrast to what is behind it is below 4.5 (WCAG 2, AA), outside of pictures. */
export const FAINT = `(() => {
  const parse = (colour) => (colour.match(/[\\d.]+/g) ?? []).map(Number);
  const light = (colour) => {
    const [r, g, b] = parse(colour).map((part) => {
      const value = part / 255;
      return value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    for (let at = element; at !== null; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if ((parse(colour)[3] ?? 1) > 0) return colour;
    }
    return 'rgb(255, 255, 255)';
  };
  const found = [];
  for (const element of document.querySelectorAll('main *, header *, footer')) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim() !== '');
    if (!own || element.closest('svg') !== null) continue;
    const [a, b] = [light(getComputedStyle(element).color), light(behind(element))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 4.5) found.push(contrast.toFixed(2) + ' ' + element.className + ' ' + element.textContent.slice(0, 40));
  }
  return found;
})()`;
