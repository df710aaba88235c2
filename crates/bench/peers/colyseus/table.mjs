// The workload "colyseus" of `playfield-bench` as a state of @colyseus/schema, and as plain objects
// that take the same steps, with which copies are compared.

import { ArraySchema, Encoder, MapSchema, schema, StateView, t } from "@colyseus/schema";

Encoder.BUFFER_SIZE = 256 * 1024;

const CARDS = 10;

const Card = schema({ id: t.int32(), suit: t.int32(), rank: t.int32() }, "Card");
const Hand = schema({ cards: t.array(Card) }, "Hand");
const Seat = schema(
  { posX: t.float64(), posY: t.float64(), health: t.int32(), name: t.string() },
  "Seat",
);
export const Table = schema(
  { round: t.int32(), players: t.map(Seat), hands: t.map(Hand).view() },
  "Table",
);

/** A table without players. */
export function empty() {
  const table = new Table();
  table.round = 0;
  table.players ??= new MapSchema();
  table.hands ??= new MapSchema();
  return table;
}

/** Gives the player at a place a position and a hand, which only the returned view shows. */
export function seat(table, id, place) {
  table.players.set(id, Object.assign(new Seat(), first(place)));
  const hand = new Hand();
  hand.cards ??= new ArraySchema();
  for (const card of cards(place)) hand.cards.push(Object.assign(new Card(), card));
  table.hands.set(id, hand);
  const view = new StateView();
  view.add(hand);
  return view;
}

/** One step of a table whose players have these ids, in the order in which they were seated. */
export function step(table, ids, everyone, share) {
  const round = table.round + 1;
  table.round = round;
  if (everyone) ids.forEach((id, place) => move(table.players.get(id), round, place));
  for (let place = 0; place < handsChanged(ids.length, share); place++)
    change(table.hands.get(ids[place]).cards[round % CARDS]);
}

/** The same as plain objects: what the player at each place has. */
export class Model {
  constructor(players) {
    this.round = 0;
    const places = Array.from({ length: players }, (_, place) => place);
    this.players = places.map(first);
    this.hands = places.map(cards);
  }

  step(everyone, share) {
    this.round += 1;
    if (everyone) this.players.forEach((player, place) => move(player, this.round, place));
    for (let place = 0; place < handsChanged(this.players.length, share); place++)
      change(this.hands[place][this.round % CARDS]);
  }

  /** What differs in a copy of the player with this id; undefined if nothing does. */
  differs(copy, id) {
    if (copy.round !== this.round) return `round ${copy.round} instead of ${this.round}`;
    for (const [of, { posX, posY, health, name }] of copy.players) {
      const right = this.players[Number(name?.split(" ")[1])];
      if (!right || right.name !== name || right.health !== health ||
        !Object.is(right.posX, posX) || !Object.is(right.posY, posY))
        return `round ${this.round}: player ${of} at ${posX}, ${posY} with ${health}, ${name}`;
    }
    const hands = [...copy.hands];
    const place = Number(copy.players.get(id)?.name.split(" ")[1]);
    if (hands.length !== 1 || hands[0][0] !== id)
      return `round ${this.round}: hands of ${hands.map(([of]) => of)} for player ${id}`;
    const right = this.hands[place], hand = hands[0][1].cards;
    if (hand.length !== right.length || right.some((card, at) =>
      card.id !== hand[at].id || card.suit !== hand[at].suit || card.rank !== hand[at].rank))
      return `round ${this.round}: the hand of player ${id}`;
    return undefined;
  }
}

function first(place) {
  return { posX: place * 1.5, posY: place * 2.5, health: 100, name: `Player ${place}` };
}

function cards(place) {
  return Array.from({ length: CARDS }, (_, card) =>
    ({ id: place * CARDS + card, suit: card % 4, rank: card % 13 }));
}

function move(player, round, place) {
  player.posX += 0.37;
  player.posY -= 0.21;
  player.health = 1 + ((round * 7 + place) % 100);
}

function change(card) {
  card.id += 1;
  card.suit = (card.suit + 1) % 4;
  card.rank = (card.rank + 1) % 13;
}

function handsChanged(players, share) {
  return Math.max(1, Math.floor(players * share));
}
