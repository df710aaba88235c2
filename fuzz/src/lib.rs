//! Code shared by the targets.

pub mod input;
pub mod packets;

use playfield_state::{PlayerId, State};
use playfield_wire::schema::{Field, RoomSchema, Struct, Type};

/// The player whose copies are read.
pub const VIEWER: PlayerId = PlayerId(1);

/// A room schema with only this state.
pub fn schema_of<T: State>() -> RoomSchema {
    RoomSchema { state: T::schema(), options: Type::Unit, messages: Vec::new(), events: Vec::new() }
}

/// An older, compatible schema: it lacks one of every three fields of each struct.
pub fn older(schema: &RoomSchema) -> RoomSchema {
    RoomSchema { state: shrunk(&schema.state), ..schema.clone() }
}

fn shrunk(of: &Type) -> Type {
    let within = |inner: &Type| Box::new(shrunk(inner));
    match of {
        Type::Struct(Struct { name, fields }) => {
            let kept = fields.iter().enumerate().filter(|(place, _)| place % 3 != 1);
            let fields =
                kept.map(|(_, field)| Field { of: shrunk(&field.of), ..field.clone() }).collect();
            Type::Struct(Struct { name: name.clone(), fields })
        }
        Type::Option(inner) => Type::Option(within(inner)),
        Type::List(inner) => Type::List(within(inner)),
        Type::Array(inner, length) => Type::Array(within(inner), *length),
        Type::Map(key, value) => Type::Map(key.clone(), within(value)),
        other => other.clone(),
    }
}

/// Calls a generic function for the state selected by the first byte, with the rest of the input.
/// The caller must have the law tests' states in a module `common`. `seeds` uses the same numbers.
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
