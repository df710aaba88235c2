/** Quantized numbers (docs/state.md, "Quantized numbers"). */

import { DecodeError } from "../error.js";
import type { Quantized } from "../schema.js";
import * as hash from "./hash.js";
import { bits, ONE_BY_ONE, width } from "./plain.js";
import { Shape } from "./shape.js";
import type { Walk } from "./walk.js";

const STEPS_MAX = 2 ** 50, TURN = 2 * Math.PI;

export class Steps extends Shape {
  private readonly isUnsigned: boolean;
  private readonly most: number;
  private readonly turns: number;
  constructor(private readonly of: Quantized) {
    super();
    const { step, range, angle } = of;
    this.isUnsigned = Boolean(range || angle);
    this.most = STEPS_MAX;
    if (angle) this.most = Math.round(TURN / step) - 1;
    if (range) this.most = Math.floor((range[1] - range[0]) / step + 0.5);
    if ((angle && step > Math.PI) || !(this.most <= STEPS_MAX))
      throw new DecodeError(`a quantized number can't have the step ${step}`);
    this.turns = 1 / step;
  }

  /** Decodes a number of steps. */
  private value(steps: number): number {
    const { step, range, angle, quantized } = this.of, { turns } = this;
    let value = turns === Math.trunc(turns) ? steps / turns : steps * step;
    if (angle && value > Math.PI) value -= TURN;
    if (range) value = Math.min(range[0] + value, range[1]);
    return quantized === "f32" ? Math.fround(value) : value;
  }

  private steps(walk: Walk): number {
    const { at } = walk, steps = Number(this.isUnsigned ? walk.unsigned64() : walk.signed64());
    this.check(walk, steps, at);
    return steps;
  }

  private check(walk: Walk, steps: number, at: number): void {
    const least = this.isUnsigned ? 0 : -STEPS_MAX;
    if (!(steps >= least && steps <= this.most)) {
      walk.refuse(`a number of ${steps} steps is past the end, ${this.most}`, at);
    }
  }

  whole(walk: Walk): number {
    return this.value(this.steps(walk));
  }

  override columns(walk: Walk, values: unknown[]): void {
    const { at } = walk, wide = width(walk), count = values.length;
    if (wide === ONE_BY_ONE) return super.columns(walk, values);
    const least = this.steps(walk), above = bits(walk, count, wide);
    for (let place = 0; place < count; place++) {
      const steps = least + above[place];
      this.check(walk, steps, at);
      values[place] = this.value(steps);
    }
  }

  digest(value: unknown): void {
    hash.ofFloat(value as number, this.of.quantized === "f32");
  }

  /** The value nearest to 0. */
  zero(): number {
    const { range, step } = this.of;
    let steps = 0;
    if (range) {
      const exact = -range[0] / step, floor = Math.floor(exact), rest = exact - floor;
      const up = rest > 0.5 || (rest === 0.5 && floor % 2 !== 0);
      steps = Math.min(Math.max(floor + (up ? 1 : 0), 0), this.most);
    }
    return this.value(steps);
  }
}
