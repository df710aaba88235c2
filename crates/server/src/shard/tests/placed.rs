//! Counts of what the caps of views by place leave out.

use playfield_room::{Context, Player, PlayerId, Result, Room, RoomType, room};
use playfield_state::{Map, State};
use playfield_wire::client::{self, ClientMessage};
use playfield_wire::{Format, RequestNumber};

use super::speech::encoded;
use super::world::World;

#[derive(State, Default)]
struct Meadow {
    #[sync(near = [x, y], viewer = sheep, radius = 10.0, nearest = 2)]
    sheep: Map<PlayerId, Sheep>,
}

#[derive(State, Default)]
struct Sheep {
    x: f32,
    y: f32,
}

#[room(sync_hz = 10)]
impl Room for Meadow {
    fn join(&mut self, player: &Player, _: &mut Context<Self>) -> Result<()> {
        self.sheep.insert(player.id(), Sheep::default());
        Ok(())
    }
}

pub(super) fn room_type() -> RoomType {
    RoomType::of::<Meadow>("meadow")
}

#[test]
fn entries_beyond_a_cap_are_counted_for_each_player_and_sync() {
    let mut world = World::new(1, &[]);
    let enter = |world: &mut World| {
        let client = world.client(0);
        let join = ClientMessage::JoinOrCreate(client::JoinOrCreate {
            request: RequestNumber(1),
            room_type: "meadow".into(),
            key: None,
            options: b"",
        });
        world.say(client, &encoded(Format::Packed, &join));
        world.wait(200);
    };
    let counted = |world: &mut World| {
        let before = world.counters(0);
        world.wait(1000);
        let after = world.counters(0);
        let (syncs, left_out) = (after.syncs - before.syncs, after.left_out - before.left_out);
        assert!(syncs > 0 && left_out % syncs == 0);
        left_out / syncs
    };
    enter(&mut world);
    enter(&mut world);
    assert_eq!(counted(&mut world), 0, "each sees both");
    enter(&mut world);
    assert_eq!(counted(&mut world), 3, "each misses one");
    enter(&mut world);
    assert_eq!(counted(&mut world), 8, "each misses two");
}
