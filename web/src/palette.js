// Colours. Weights go from the paper's colour to the ink's, ordered by lightness, so that they can be read without
// colour vision and in print. Signed numbers go from orange over grey to blue; the number itself is always there as text.
import { rgb } from "d3-color";
import { interpolateLab, piecewise, quantize } from "d3-interpolate";

const LIGHT = ["#f6f8fb", "#cfe0f1", "#8fbbe0", "#4a90cb", "#1b5f9f", "#0a2f5c"];
const DARK = ["#161b22", "#1c3550", "#26598c", "#3f8acb", "#8cc0ec", "#eef6ff"];
const SIGNED_LIGHT = ["#8a3c00", "#e08a3c", "#f7f5f2", "#5b9bd5", "#0b3f7a"];
const SIGNED_DARK = ["#ffc58a", "#b5651d", "#20252c", "#3677b8", "#bcdcff"];
const HEADS_LIGHT = ["#0072b2", "#c14a00", "#00755a", "#a8327d", "#8a6d00", "#4b4bc8", "#b3261e", "#4d4d4d"];
const HEADS_DARK = ["#56b4e9", "#ff9a4d", "#33c9a0", "#f08cc8", "#e6c84c", "#a3a3ff", "#ff8a80", "#cccccc"];
const STEPS = 256;

/** `stops` as a table of colours, evenly spaced and mixed in Lab, in which equal steps look equal. */
function ramp(stops) {
  return quantize(piecewise(interpolateLab, stops), STEPS).map((colour) => {
    const { r, g, b } = rgb(colour);
    return [r, g, b].map(Math.round);
  });
}

const RAMPS = { light: ramp(LIGHT), dark: ramp(DARK), signedLight: ramp(SIGNED_LIGHT), signedDark: ramp(SIGNED_DARK) };
const darkness = window.matchMedia("(prefers-color-scheme: dark)");
const printing = window.matchMedia("print");

export function isPrinting() {
  return printing.matches;
}

export function isDark() {
  return darkness.matches && !isPrinting();
}

export function watchColours(act) {
  darkness.addEventListener("change", act);
  printing.addEventListener("change", act);
}

function at(table, share) {
  return table[Math.max(0, Math.min(STEPS - 1, Math.round(share * (STEPS - 1))))];
}

/** [red, green, blue] of a number between −1 and 1. */
export function signedChannels(value) {
  return at(isDark() ? RAMPS.signedDark : RAMPS.signedLight, (value + 1) / 2);
}

/** [red, green, blue] of a weight between 0 and 1. */
export function weightChannels(value) {
  return at(isDark() ? RAMPS.dark : RAMPS.light, value);
}

export function css([red, green, blue]) {
  return `rgb(${red} ${green} ${blue})`;
}

/** How light a colour is, 0 … 1 (WCAG's relative luminance). */
function luminance(channels) {
  const [red, green, blue] = channels.map((value) => {
    const share = value / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/** Black or white, whichever stands out more: by at least 4.58 : 1 on any colour. */
export function inkOn(channels) {
  return luminance(channels) > 0.179 ? "#000000" : "#ffffff";
}

export function headColour(head) {
  const colours = isDark() ? HEADS_DARK : HEADS_LIGHT;
  return colours[head % colours.length];
}

function packed(table) {
  return Uint32Array.from(table, ([red, green, blue]) => ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0);
}

const PACKED = Object.fromEntries(Object.entries(RAMPS).map(([name, table]) => [name, packed(table)]));

/**
 * A matrix as an image of one pixel a cell, to be drawn at any size without smoothing. Weights go from 0 to `most`, signed
 * numbers from −`most` to `most`.
 */
export function image(values, rows, columns, { most = 1, signed = false, mirrored = false } = {}) {
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(columns, 1);
  canvas.height = Math.max(rows, 1);
  const context = canvas.getContext("2d");
  const pixels = context.createImageData(canvas.width, canvas.height);
  const cells = new Uint32Array(pixels.data.buffer);
  const tone = isDark() ? "Dark" : "Light";
  const colours = PACKED[signed ? `signed${tone}` : tone.toLowerCase()];
  const scale = (STEPS - 1) / (signed ? 2 * most : most);
  const zero = signed ? (STEPS - 1) / 2 : 0;
  for (let row = 0; row < rows; row += 1) {
    const first = row * columns;
    for (let column = 0; column < columns; column += 1) {
      const step = Math.round(values[first + column] * scale + zero);
      const place = first + (mirrored ? columns - 1 - column : column);
      cells[place] = colours[step < 0 ? 0 : step >= STEPS ? STEPS - 1 : step];
    }
  }
  context.putImageData(pixels, 0, 0);
  return canvas;
}

export function drawImage(context, picture, x, y, width, height) {
  context.imageSmoothingEnabled = false;
  context.drawImage(picture, x, y, width, height);
}
