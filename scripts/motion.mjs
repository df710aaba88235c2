// How evenly a page that draws ships on a canvas moves them, as the template `arena` does.

/**
 * Runs in the page before its scripts: notes where each frame draws which player's ship, and when
 * messages come.
 */
export function record() {
  const times = (window.messagesAt = []);
  window.WebSocket = class extends WebSocket {
    constructor(...given) {
      super(...given);
      this.addEventListener("message", () => times.push(Date.now()));
    }
  };
  const frames = (window.drawnFrames = []), { prototype } = CanvasRenderingContext2D;
  const { translate, fillText } = prototype, request = window.requestAnimationFrame;
  let place;
  window.requestAnimationFrame = (draw) =>
    request((now) => {
      frames.push({ now, ships: {} });
      draw(now);
    });
  prototype.translate = function (x, y) {
    place = [x, y];
    translate.call(this, x, y);
  };
  prototype.fillText = function (text, ...where) {
    if (text.startsWith("Player")) frames.at(-1).ships[text.split(":")[0]] = place;
    fillText.call(this, text, ...where);
  };
}

/** The speed of each ship from frame to frame in so many milliseconds, in pixels per millisecond. */
export async function drawn(page, ms) {
  await page.waitForTimeout(2_000); // until the page knows the room's clock
  await page.evaluate(() => (window.drawnFrames.length = 0));
  await page.waitForTimeout(ms);
  const frames = await page.evaluate(() => window.drawnFrames), speeds = [];
  for (let index = 1; index < frames.length; index++) {
    const [before, after] = [frames[index - 1], frames[index]];
    for (const [name, [x, y]] of Object.entries(after.ships)) {
      if (!before.ships[name]) continue;
      const way = Math.hypot(x - before.ships[name][0], y - before.ships[name][1]);
      // Over an edge.
      if (way < 500) speeds.push(way / (after.now - before.now));
    }
  }
  return speeds;
}

/** The share of steps whose speed differs by more than a tenth from the median. */
export function unevenness(speeds) {
  const median = [...speeds].sort((one, other) => one - other)[speeds.length >> 1];
  return speeds.filter((speed) => Math.abs(speed / median - 1) > 0.1).length / speeds.length;
}
