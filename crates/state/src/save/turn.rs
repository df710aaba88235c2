//! Saves of older builds: their bytes, rewritten for the types of this build.

use std::ops::Range;

use playfield_wire::reader::Reader;
use playfield_wire::schema::{Enum, Struct, Type};
use playfield_wire::{DecodeError, excerpt, writer};

use super::saved::put_empty;
use super::skim::plain_value;
use super::{LoadError, Saved, SavedField};

/// The longest name that a place shows, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// Checks that a save with these types can be read: that this build has all that is in it.
pub(super) fn check(stored: &Type, here: &Saved) -> Result<(), LoadError> {
    Check { path: Vec::new() }.saved(stored, here)
}

struct Check<'a> {
    path: Vec<&'a str>,
}

type Checked = Result<(), LoadError>;

impl<'a> Check<'a> {
    fn saved(&mut self, stored: &'a Type, here: &Saved) -> Checked {
        match (stored, here) {
            (_, Saved::Whole(here)) => self.whole(stored, here),
            (Type::Option(stored), Saved::Option(here)) => self.saved(stored, here),
            (Type::List(stored), Saved::List(here)) => self.at("*", |to| to.saved(stored, here)),
            (Type::Array(stored, length), Saved::Array(here, other)) if length == other => {
                self.at("*", |to| to.saved(stored, here))
            }
            (Type::Map(key, stored), Saved::Map(other, here)) => {
                self.whole(key, other)?;
                self.at("*", |to| to.saved(stored, here))
            }
            (Type::Set(key), Saved::Set(other)) => self.whole(key, other),
            (Type::Struct(stored), Saved::Struct(_, here)) => {
                let known = |name: &str| here.iter().find(|field| field.name == name);
                self.fields(stored, known, |to, stored, here| to.saved(stored, &here.of))
            }
            _ => self.differs(stored, &here.schema()),
        }
    }

    fn whole(&mut self, stored: &'a Type, here: &Type) -> Checked {
        match (stored, here) {
            (Type::Option(stored), Type::Option(here)) => self.whole(stored, here),
            (Type::List(stored), Type::List(here)) => self.at("*", |to| to.whole(stored, here)),
            (Type::Array(stored, length), Type::Array(here, other)) if length == other => {
                self.at("*", |to| to.whole(stored, here))
            }
            (Type::Map(key, stored), Type::Map(other, here)) => {
                self.whole(key, other)?;
                self.at("*", |to| to.whole(stored, here))
            }
            (Type::Struct(stored), Type::Struct(here)) => self.whole_fields(stored, here),
            (Type::Enum(stored), Type::Enum(here)) => {
                stored.variants.iter().try_for_each(|variant| {
                    self.at(&variant.name, |to| {
                        let known = here.variants.iter().find(|other| other.name == variant.name);
                        to.whole_fields(variant, known.ok_or_else(|| to.lacks("variant"))?)
                    })
                })
            }
            (stored, here) if stored == here => Ok(()),
            (stored, here) => self.differs(stored, here),
        }
    }

    fn whole_fields(&mut self, stored: &'a Struct, here: &Struct) -> Checked {
        let known = |name: &str| here.fields.iter().find(|field| field.name == name);
        self.fields(stored, known, |to, stored, here| to.whole(stored, &here.of))
    }

    fn fields<'h, F: 'h>(
        &mut self,
        stored: &'a Struct,
        known: impl Fn(&str) -> Option<&'h F>,
        check: impl Fn(&mut Self, &'a Type, &'h F) -> Checked,
    ) -> Checked {
        stored.fields.iter().enumerate().try_for_each(|(place, field)| {
            self.at(&field.name, |to| {
                if stored.fields[..place].iter().any(|other| other.name == field.name) {
                    return Err(to.error("the save has two fields of this name".into()));
                }
                check(to, &field.of, known(&field.name).ok_or_else(|| to.lacks("field"))?)
            })
        })
    }

    fn at(&mut self, step: &'a str, check: impl FnOnce(&mut Self) -> Checked) -> Checked {
        self.path.push(step);
        check(self)?;
        self.path.pop();
        Ok(())
    }

    fn error(&self, why: String) -> LoadError {
        let path: Vec<&str> = self.path.iter().map(|step| excerpt(step, NAME_BYTES_MAX)).collect();
        LoadError::Incompatible { place: path.join("."), why }
    }

    fn lacks(&self, what: &str) -> LoadError {
        self.error(format!(
            "the save has this {what}, which this build lacks: the save is of a newer build, or the {what} was removed or renamed"
        ))
    }

    fn differs(&self, stored: &Type, here: &Type) -> Checked {
        let (stored, here) = (kind(stored), kind(here));
        Err(self.error(format!(
            "the save has {stored}, this build has {here}: keep the type, and add a field with another name"
        )))
    }
}

/// A type in a few words.
fn kind(of: &Type) -> String {
    match of {
        Type::Option(of) => format!("an option of {}", kind(of)),
        Type::List(_) => "a list".into(),
        Type::Array(_, length) => format!("an array of {length}"),
        Type::Map(..) => "a map".into(),
        Type::Set(_) => "a set".into(),
        Type::Struct(_) => "a struct".into(),
        Type::Enum(_) => "an enum".into(),
        plain => format!("{plain:?}").to_lowercase(),
    }
}

/// The body, as this build would have written it. The types were [checked](check).
pub(super) fn turned(
    stored: &Type,
    here: &Saved,
    bytes: &[u8],
    body: Range<usize>,
) -> Result<Vec<u8>, DecodeError> {
    let mut reader = Reader::new(&bytes[..body.end]);
    reader.take(body.start)?;
    let mut out = Vec::with_capacity(body.len());
    Turn { bytes, reader: &mut reader, out: &mut out }.saved(stored, here)?;
    reader.finish()?;
    Ok(out)
}

struct Turn<'a, 'b> {
    bytes: &'b [u8],
    reader: &'a mut Reader<'b>,
    out: &'a mut Vec<u8>,
}

type Done = Result<(), DecodeError>;

impl Turn<'_, '_> {
    fn saved(&mut self, stored: &Type, here: &Saved) -> Done {
        match (stored, here) {
            (_, Saved::Whole(here)) => self.whole(stored, here),
            (Type::Option(stored), Saved::Option(here)) => {
                if self.bool()? {
                    self.saved(stored, here)
                } else {
                    Ok(())
                }
            }
            (Type::List(stored), Saved::List(here)) => {
                (0..self.count()?).try_for_each(|_| self.saved(stored, here))
            }
            (Type::Array(stored, length), Saved::Array(here, _)) => {
                (0..*length).try_for_each(|_| self.saved(stored, here))
            }
            (Type::Map(key, stored), Saved::Map(_, here)) => {
                (0..self.count()?).try_for_each(|_| {
                    self.plain(key)?;
                    self.saved(stored, here)
                })
            }
            (Type::Set(key), Saved::Set(_)) => (0..self.count()?).try_for_each(|_| self.plain(key)),
            (Type::Struct(stored), Saved::Struct(_, here)) => self.fields(
                stored,
                here,
                |field| field.name,
                |turn, stored, here| turn.saved(stored, &here.of),
                SavedField::put_default,
                true,
            ),
            _ => Err(self.unchecked()),
        }
    }

    fn whole(&mut self, stored: &Type, here: &Type) -> Done {
        match (stored, here) {
            (Type::Option(stored), Type::Option(here)) => {
                if self.bool()? {
                    self.whole(stored, here)
                } else {
                    Ok(())
                }
            }
            (Type::List(stored), Type::List(here)) => {
                (0..self.count()?).try_for_each(|_| self.whole(stored, here))
            }
            (Type::Array(stored, length), Type::Array(here, _)) => {
                (0..*length).try_for_each(|_| self.whole(stored, here))
            }
            (Type::Map(key, stored), Type::Map(_, here)) => (0..self.count()?).try_for_each(|_| {
                self.plain(key)?;
                self.whole(stored, here)
            }),
            (Type::Struct(stored), Type::Struct(here)) => self.whole_fields(stored, here, true),
            (Type::Enum(stored), Type::Enum(here)) => self.variant(stored, here),
            (plain, _) => self.plain(plain),
        }
    }

    fn variant(&mut self, stored: &Enum, here: &Enum) -> Done {
        let at = self.reader.offset();
        let number = self.reader.varint()?;
        let variant = usize::try_from(number).ok().and_then(|number| stored.variants.get(number));
        let variant = variant
            .ok_or_else(|| DecodeError::new(at, format!("no variant has the number {number}")))?;
        let place = here.variants.iter().position(|other| other.name == variant.name);
        let place = place.ok_or_else(|| self.unchecked())?;
        writer::put_varint(self.out, place as u64);
        self.whole_fields(variant, &here.variants[place], false)
    }

    fn whole_fields(&mut self, stored: &Struct, here: &Struct, pad: bool) -> Done {
        self.fields(
            stored,
            &here.fields,
            |field| &field.name,
            |turn, stored, here| turn.whole(stored, &here.of),
            |field, out| put_empty(&field.of, out),
            pad,
        )
    }

    /// Rewrites fields in the order of this build. A struct without fields is one byte 0 (`pad`).
    fn fields<'h, F>(
        &mut self,
        stored: &Struct,
        here: &'h [F],
        name: impl Fn(&'h F) -> &'h str,
        turn: impl Fn(&mut Self, &Type, &F) -> Done,
        add: impl Fn(&F, &mut Vec<u8>),
        pad: bool,
    ) -> Done {
        if stored.fields.is_empty() && pad {
            self.skip(&Type::Unit)?;
        }
        if here.is_empty() && pad {
            self.out.push(0);
        }
        // As they are stored, each into its own piece of the output; then in this build's order.
        let start = self.out.len();
        let mut pieces = vec![None; here.len()];
        for field in &stored.fields {
            let place = here.iter().position(|other| name(other) == field.name);
            let place = place.ok_or_else(|| self.unchecked())?;
            let from = self.out.len();
            turn(self, &field.of, &here[place])?;
            pieces[place] = Some(from..self.out.len());
        }
        let in_order = pieces.iter().flatten().is_sorted_by_key(|piece| piece.start);
        if in_order && pieces.iter().all(Option::is_some) {
            return Ok(());
        }
        let found = self.out.split_off(start);
        for (field, piece) in here.iter().zip(pieces) {
            match piece {
                Some(piece) => {
                    self.out.extend_from_slice(&found[piece.start - start..piece.end - start]);
                }
                None => add(field, self.out),
            }
        }
        Ok(())
    }

    /// Copies a value without parts.
    fn plain(&mut self, of: &Type) -> Done {
        let start = self.reader.offset();
        plain_value(of, self.reader)?;
        self.out.extend_from_slice(&self.bytes[start..self.reader.offset()]);
        Ok(())
    }

    /// Passes over a value without parts.
    fn skip(&mut self, of: &Type) -> Done {
        plain_value(of, self.reader)
    }

    fn bool(&mut self) -> Result<bool, DecodeError> {
        let is_some = self.reader.bool()?;
        writer::put_bool(self.out, is_some);
        Ok(is_some)
    }

    fn count(&mut self) -> Result<usize, DecodeError> {
        let count = self.reader.count()?;
        writer::put_varint(self.out, count as u64);
        Ok(count)
    }

    /// The types were checked, so this is never the case.
    fn unchecked(&self) -> DecodeError {
        DecodeError::new(self.reader.offset(), "the types of the save are not those of this build")
    }
}
