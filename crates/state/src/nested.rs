//! Schemas of nested types.

use std::cell::RefCell;

use playfield_wire::schema::{TYPE_DEPTH_MAX, Type};

/// The maximum depth of nested named types while their schema is made. A finished schema is refused
/// at a lower depth, with the name and place (see [`TYPE_DEPTH_MAX`]). This limit is for types
/// whose schema has no end.
const NESTED_MAX: usize = 2 * TYPE_DEPTH_MAX;

thread_local! {
    /// The types whose schema is being made, outermost first.
    static AROUND: RefCell<Vec<&'static str>> = const { RefCell::new(Vec::new()) };
}

/// Makes the schema of a type that derives `Data`. For generated code.
///
/// # Panics
/// If types are nested deeper than `NESTED_MAX`, as when they hold each other. Without the panic
/// they would overflow the stack, which can't be caught and doesn't name the types.
pub fn nested(name: &'static str, schema: impl FnOnce() -> Type) -> Type {
    let depth = AROUND.with_borrow_mut(|around| {
        around.push(name);
        around.len()
    });
    let _leave = Leave;
    assert!(
        depth <= NESTED_MAX,
        "the schema of `{}` has no end, or none within {NESTED_MAX} types: they hold each other ({}). Keep the values in one flat map \
         by id, and in each the ids of those that belong to it",
        AROUND.with_borrow(|around| around[0]),
        AROUND.with_borrow(|around| around[depth.saturating_sub(6)..].join(" > ")),
    );
    schema()
}

/// Removes the innermost type, after a panic too: code that catches it may go on.
struct Leave;

impl Drop for Leave {
    fn drop(&mut self) {
        AROUND.with_borrow_mut(Vec::pop);
    }
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use super::*;

    #[test]
    fn types_may_be_nested_up_to_the_limit() {
        fn tower(height: usize) -> Type {
            nested("Floor", || if height == 1 { Type::Unit } else { tower(height - 1) })
        }
        assert_eq!(tower(NESTED_MAX), Type::Unit);
        assert!(catch_unwind(|| tower(NESTED_MAX + 1)).is_err());
        // The failed attempt leaves nothing behind.
        assert_eq!(tower(NESTED_MAX), Type::Unit);
    }
}
