// What every module draws with: Preact's elements, written as templates. Text in a template is only ever text.
import { Component, Fragment, createElement, render } from "preact";
import htm from "htm";

export const html = htm.bind(createElement);
export { Component, Fragment, render };

/**
 * A canvas of given size in CSS pixels. `draw(context, width, height)` is called when it is first shown and whenever one of
 * `of`, or the size, is another than before; without `of`, always.
 */
export class Canvas extends Component {
  componentDidMount() { this.paint(); }
  componentDidUpdate(before) {
    const { of, width, height } = this.props;
    const same = of && before.of && of.every((each, place) => each === before.of[place]);
    if (!same || before.width !== width || before.height !== height) this.paint();
  }
  paint() {
    const { width, height, draw } = this.props;
    const canvas = this.base;
    const ratio = Math.min(window.devicePixelRatio || 1, 8192 / Math.max(width, height, 1));
    canvas.width = Math.max(1, Math.round(width * ratio));
    canvas.height = Math.max(1, Math.round(height * ratio));
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    draw(context, width, height);
  }
  render({ width, height, draw, of, ...rest }) {
    return html`<canvas style=${{ width: `${width}px`, height: `${height}px` }} ...${rest} />`;
  }
}

/** `text`, at most `most` characters of it. */
export function short(text, most = 18) {
  const letters = Array.from(text);
  return letters.length > most ? `${letters.slice(0, most - 1).join("")}…` : text;
}

/** `text` in quotation marks, in its own direction: what stands around it is not drawn into that. */
export function quoted(text, most = 40) {
  return html`“<bdi>${short(text, most)}</bdi>”`;
}

/** The same where there can be no elements, such as in a list to choose from: by the characters that isolate. */
export function isolated(text, most = 40) {
  return `\u2068${short(text, most)}\u2069`;
}

/** A token as people read it: without the mark of the space in front of it. */
export function face(token) {
  return token.length > 1 && token.startsWith("▁") ? token.slice(1) : token;
}

/** A number as people read it: four digits behind the point, or a power of ten where that would show nothing. */
export function shown(value, digits = 4) {
  if (value === 0) return "0";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  const text = Math.abs(value) < 10 ** -digits ? value.toExponential(1) : value.toFixed(digits);
  return text.replace("-", "−");
}

export function clamp(value, low, high) {
  return Math.max(low, Math.min(high, value));
}

export function range(count) {
  return Array.from({ length: count }, (_, place) => place);
}
