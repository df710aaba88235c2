//! The differences between two trees.

use serde_json::{Map, Value};

use super::{Change, ChangeKind, Path, PathStep};
use crate::walk::Shape;

/// Reports the differences in `new`. Without a shape it compares the JSON alone.
pub(crate) fn compare(
    of: Option<&Shape>,
    old: &Value,
    new: &Value,
    path: &mut Vec<PathStep>,
    tell: &mut dyn FnMut(Change),
) {
    Comparison { path, tell }.values(of, old, new);
}

struct Comparison<'a> {
    path: &'a mut Vec<PathStep>,
    tell: &'a mut dyn FnMut(Change),
}

impl Comparison<'_> {
    fn values(&mut self, of: Option<&Shape>, old: &Value, new: &Value) {
        match (of, old, new) {
            (Some(Shape::Option(inner)), ..) if !old.is_null() && !new.is_null() => {
                self.values(Some(inner), old, new);
            }
            (Some(Shape::Struct(of)), Value::Object(old), Value::Object(new)) => {
                for field in &of.fields {
                    self.member(
                        Some(&field.of),
                        &field.name,
                        old.get(&field.name),
                        new.get(&field.name),
                    );
                }
            }
            (Some(Shape::Map(of)), Value::Object(old), Value::Object(new)) => {
                self.members(Some(&of.value), old, new);
            }
            (Some(Shape::List(of) | Shape::Array(of, _)), Value::Array(old), Value::Array(new)) => {
                self.elements(Some(of), old, new);
            }
            (None | Some(Shape::Enum(_)), Value::Object(one), Value::Object(two)) => {
                // This may be an enum whose variant changed.
                if one.len() == 1 && two.len() == 1 && !one.keys().eq(two.keys()) {
                    self.say(ChangeKind::Changed, Some(old), Some(new));
                } else {
                    self.members(None, one, two);
                }
            }
            (None | Some(Shape::Enum(_)), Value::Array(old), Value::Array(new)) => {
                self.elements(None, old, new);
            }
            _ if old != new => self.say(ChangeKind::Changed, Some(old), Some(new)),
            _ => {}
        }
    }

    /// Removed members first, then new ones, then changed ones.
    fn members(&mut self, of: Option<&Shape>, old: &Map<String, Value>, new: &Map<String, Value>) {
        for (name, old) in old.iter().filter(|(name, _)| !new.contains_key(*name)) {
            self.member(of, name, Some(old), None);
        }
        for (name, new) in new.iter().filter(|(name, _)| !old.contains_key(*name)) {
            self.member(of, name, None, Some(new));
        }
        for (name, old) in old {
            if let Some(new) = new.get(name) {
                self.member(of, name, Some(old), Some(new));
            }
        }
    }

    fn member(&mut self, of: Option<&Shape>, name: &str, old: Option<&Value>, new: Option<&Value>) {
        if old.is_none() && new.is_none() {
            return;
        }
        self.path.push(PathStep::Name(name.into()));
        self.place(of, old, new);
        self.path.pop();
    }

    /// Equal elements at both ends keep their places. Those between are paired by position, and the
    /// rest entered or left.
    fn elements(&mut self, of: Option<&Shape>, old: &[Value], new: &[Value]) {
        let same = |(one, two): &(&Value, &Value)| one == two;
        let head =
            if old.len() == new.len() { 0 } else { old.iter().zip(new).take_while(same).count() };
        let (old, new) = (&old[head..], &new[head..]);
        let tail = if old.len() == new.len() {
            0
        } else {
            old.iter().rev().zip(new.iter().rev()).take_while(same).count()
        };
        let (old, new) = (&old[..old.len() - tail], &new[..new.len() - tail]);
        let pairs = old.len().min(new.len());
        for (place, old) in old.iter().enumerate().skip(pairs).rev() {
            self.element(of, head + place, Some(old), None);
        }
        for (place, new) in new.iter().enumerate().skip(pairs) {
            self.element(of, head + place, None, Some(new));
        }
        for (place, (old, new)) in old.iter().zip(new).enumerate() {
            self.element(of, head + place, Some(old), Some(new));
        }
    }

    fn element(
        &mut self,
        of: Option<&Shape>,
        index: usize,
        old: Option<&Value>,
        new: Option<&Value>,
    ) {
        self.path.push(PathStep::Index(index));
        self.place(of, old, new);
        self.path.pop();
    }

    fn place(&mut self, of: Option<&Shape>, old: Option<&Value>, new: Option<&Value>) {
        match (old, new) {
            (Some(old), Some(new)) => self.values(of, old, new),
            (None, _) => self.say(ChangeKind::Entered, None, new),
            (_, None) => self.say(ChangeKind::Left, old, None),
        }
    }

    fn say(&mut self, kind: ChangeKind, old: Option<&Value>, new: Option<&Value>) {
        (self.tell)(Change {
            path: Path(self.path.clone()),
            kind,
            old: old.cloned(),
            new: new.cloned(),
        });
    }
}
