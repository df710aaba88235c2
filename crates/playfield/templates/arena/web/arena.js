import { join } from "/playfield.js";

const SIZE = 1000;
const canvas = document.getElementById("arena"), paint = canvas.getContext("2d");
const show = (text) => (document.getElementById("status").textContent = text);

const room = join("arena", `Player ${Math.ceil(Math.random() * 99)}`, {
  status: show,
  newSession: () => location.reload(), // the server has been restarted
});

setInterval(() => {
  if (room.state) show(`${Object.keys(room.state.ships).length} ships in sight`);
}, 200);

let last = 0;
canvas.onpointermove = ({ clientX, clientY, timeStamp }) => {
  const me = room.state?.ships[room.player];
  if (!me || timeStamp - last < 50) return;
  last = timeStamp;
  const box = canvas.getBoundingClientRect();
  const x = ((clientX - box.left) / box.width) * SIZE, y = ((clientY - box.top) / box.height) * SIZE;
  room.send("Steer", { angle: Math.atan2(y - me.y, x - me.x) });
};

// Every frame moves the drawn ships towards the latest state, which comes 20 times a second.
const drawn = new Map();
function frame() {
  paint.clearRect(0, 0, SIZE, SIZE);
  const { ships, sparks } = room.state ?? { ships: {}, sparks: {} };
  paint.fillStyle = "#ffd166";
  for (const { x, y } of Object.values(sparks)) {
    paint.beginPath();
    paint.arc(x, y, 5, 0, 7);
    paint.fill();
  }
  for (const id of drawn.keys()) if (!ships[id]) drawn.delete(id);
  for (const [id, ship] of Object.entries(ships)) {
    const seen = drawn.get(id) ?? { x: ship.x, y: ship.y };
    // A ship that leaves at one edge comes back at the other.
    const isFar = Math.abs(ship.x - seen.x) > SIZE / 2 || Math.abs(ship.y - seen.y) > SIZE / 2;
    seen.x = isFar ? ship.x : seen.x + (ship.x - seen.x) * 0.3;
    seen.y = isFar ? ship.y : seen.y + (ship.y - seen.y) * 0.3;
    drawn.set(id, seen);
    paint.save();
    paint.translate(seen.x, seen.y);
    paint.fillStyle = "#8b95a9";
    paint.font = "16px system-ui";
    paint.fillText(`${ship.name}: ${ship.score}`, 16, -12);
    paint.rotate(ship.angle);
    paint.fillStyle = Number(id) === room.player ? "#62d2a2" : `hsl(${(id * 67) % 360} 60% 62%)`;
    paint.beginPath();
    for (const [x, y] of [[16, 0], [-11, 10], [-6, 0], [-11, -10]]) paint.lineTo(x, y);
    paint.fill();
    paint.restore();
  }
  requestAnimationFrame(frame);
}
requestAnimationFrame(frame);
