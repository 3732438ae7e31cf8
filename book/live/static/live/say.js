/** What all pages with live models say in the same way, in the language of the edition. */

/**
 * A text in the reader's language, with values for its `{}`.
 *
 * @param {string} text
 * @param {(string | number)[]} values
 * @returns {string}
 */
export const _ = (text, ...values) => values.reduce((said, value) => said.replace("{}", String(value)), globalThis.words?.[text] ?? text);

/** A symbol as it is shown: blanks and line breaks can be seen. @param {string} symbol */
export const visible = (symbol) => ({ "\n": "↵", " ": "␣" })[symbol] ?? symbol;

/** A share, in words. @param {number} share */
export const percent = (share) => share > 0 && share < 0.005 ? "<1%" : `${Math.round(100 * share)}%`;

/** A number with one or more decimals, and a real minus. @param {number} value @param {number} [decimals] */
export const rounded = (value, decimals = 1) => value.toFixed(decimals).replace("-", "−");
