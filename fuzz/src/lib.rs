//! What the targets have in common.

pub mod input;
pub mod packets;

use playfield_state::{PlayerId, State};
use playfield_wire::schema::{Field, RoomSchema, Struct, Type};

/// The player whose copies are read.
pub const VIEWER: PlayerId = PlayerId(1);

/// The schema of a room of which nothing but the state is known.
pub fn schema_of<T: State>() -> RoomSchema {
    RoomSchema { state: T::schema(), options: Type::Unit, messages: Vec::new(), events: Vec::new() }
}

/// A schema from which this one has grown: of three fields in each struct, it lacks one.
pub fn older(schema: &RoomSchema) -> RoomSchema {
    RoomSchema { state: shrunk(&schema.state), ..schema.clone() }
}

fn shrunk(of: &Type) -> Type {
    let within = |inner: &Type| Box::new(shrunk(inner));
    match of {
        Type::Struct(Struct { name, fields }) => {
            let kept = fields.iter().enumerate().filter(|(place, _)| place % 3 != 1);
            let fields = kept.map(|(_, field)| Field { of: shrunk(&field.of), ..field.clone() }).collect();
            Type::Struct(Struct { name: name.clone(), fields })
        }
        Type::Option(inner) => Type::Option(within(inner)),
        Type::List(inner) => Type::List(within(inner)),
        Type::Array(inner, length) => Type::Array(within(inner), *length),
        Type::Map(key, value) => Type::Map(key.clone(), within(value)),
        other => other.clone(),
    }
}

/// Calls a generic function, of the state that the first byte names, with the rest of the input.
/// Where it is called, `common` is the module of the states that the laws are held to; `seeds`
/// numbers them alike.
#[macro_export]
macro_rules! of_one_state {
    ($check:ident, $data:expr) => {{
        let mut input = $crate::input::Input::new($data);
        match input.byte() % 5 {
            0 => $check::<common::world::World>(input),
            1 => $check::<common::world::Desks>(input),
            2 => $check::<common::swarm::Swarm>(input),
            3 => $check::<common::kinds::Kinds>(input),
            _ => $check::<common::field::Field>(input),
        }
    }};
}
