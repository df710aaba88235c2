import { Client } from "/playfield.js";
import { Motion } from "/motion.js";

const SIZE = 1000, SYNC_HZ = 30; // as in src/main.rs
const canvas = document.getElementById("arena"), paint = canvas.getContext("2d");
const show = (id, text) => (document.getElementById(id).textContent = text);

const client = new Client("/", { name: `Player ${Math.ceil(Math.random() * 99)}`, again: true });
const unwatch = client.onStatus((status, text) => show("status", text || status));
const room = await client.joinOrCreate("arena").catch((error) => {
  show("status", error.message);
  throw error;
});
unwatch();
show("status", "");
let why = "", timer;
room.onStatus((status, { message }) => {
  why = message || why;
  show("status", { joined: `joined again: ${why}`, back: "" }[status] ?? `${status}: ${why}`);
  clearTimeout(timer);
  if (status === "joined") timer = setTimeout(() => show("status", ""), 5000);
});

const motion = new Motion(SYNC_HZ);
const take = (state) => {
  motion.add(room.version, state);
  const players = Object.keys(state.ships).length, bots = Object.keys(state.bots).length;
  show("ships", `players: ${players}, bots: ${bots}`);
};
take(room.state);
room.onState(take);

let last = 0;
canvas.onpointermove = ({ clientX, clientY, timeStamp }) => {
  const me = room.state.ships[room.player];
  if (!me || timeStamp - last < 50) return;
  last = timeStamp;
  const box = canvas.getBoundingClientRect();
  const x = ((clientX - box.left) / box.width) * SIZE, y = ((clientY - box.top) / box.height) * SIZE;
  room.send("Steer", { angle: Math.atan2(y - me.y, x - me.x) });
};

function frame(now) {
  requestAnimationFrame(frame);
  paint.clearRect(0, 0, SIZE, SIZE);
  const { from, to, part } = motion.at(now);
  paint.fillStyle = "#ffd166";
  for (const { x, y } of Object.values(to.sparks)) {
    paint.beginPath();
    paint.arc(x, y, 5, 0, 7);
    paint.fill();
  }
  for (const [id, bot] of Object.entries(to.bots)) draw(bot, from.bots[id], part, "#5d6880");
  for (const [id, ship] of Object.entries(to.ships)) {
    const color = Number(id) === room.player ? "#62d2a2" : `hsl(${(id * 67) % 360} 60% 62%)`;
    draw(ship, from.ships[id], part, color);
  }
}

/** Draws a ship on its way from where it was before. */
function draw(ship, before = ship, part, color) {
  paint.save();
  paint.translate(between(before.x, ship.x, part), between(before.y, ship.y, part));
  paint.fillStyle = "#8b95a9";
  paint.font = "16px system-ui";
  paint.fillText(`${ship.name}: ${ship.score}`, 16, -12);
  paint.rotate(ship.angle);
  paint.fillStyle = color;
  paint.beginPath();
  for (const [x, y] of [[16, 0], [-11, 10], [-6, 0], [-11, -10]]) paint.lineTo(x, y);
  paint.fill();
  paint.restore();
}

/** A coordinate on the shorter way: what leaves at one edge comes back at the other. */
function between(from, to, part) {
  const way = to - from;
  return (from + (way - SIZE * Math.round(way / SIZE)) * part + SIZE) % SIZE;
}

requestAnimationFrame(frame);
