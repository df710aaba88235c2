//! Schemas of values that hold values.

use std::cell::RefCell;

use playfield_wire::schema::{TYPE_DEPTH_MAX, Type};

/// How deep types with names may lie within each other while their schema is made. A room type is
/// refused long before, by name and place (see [`TYPE_DEPTH_MAX`]); this is for those of which
/// there is no schema that could be looked at.
const NESTED_MAX: usize = 2 * TYPE_DEPTH_MAX;

thread_local! {
    /// The types whose schema is being made, outermost first.
    static AROUND: RefCell<Vec<&'static str>> = const { RefCell::new(Vec::new()) };
}

/// Makes the schema of a type that derives `Data`. Types that hold each other have none: to look
/// for its end would overflow the stack, which can't be caught and says nothing of the types. For
/// generated code.
///
/// # Panics
/// If types lie more than `NESTED_MAX` deep within each other.
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

/// Takes the innermost type off, after a panic too: whoever caught it may go on.
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
    fn types_may_lie_as_deep_as_the_limit_and_no_deeper() {
        fn tower(height: usize) -> Type {
            nested("Floor", || if height == 1 { Type::Unit } else { tower(height - 1) })
        }
        assert_eq!(tower(NESTED_MAX), Type::Unit);
        assert!(catch_unwind(|| tower(NESTED_MAX + 1)).is_err());
        // Nothing of it is left for the next one.
        assert_eq!(tower(NESTED_MAX), Type::Unit);
    }
}
