//! Random values of a schema's types, as JSON.

use playfield_wire::schema::{Struct, Type};
use serde_json::{Map, Value, json};

/// The most elements of a generated list or map, and the length of a generated text.
const ELEMENTS_MAX: u64 = 4;
const TEXT_CHARS_MAX: u64 = 16;

/// The longest text, byte string or list that may be asked for.
pub const LENGTH_MAX: u64 = 1 << 20;

/// Generates values for one player, such as the messages that a load or a test sends.
///
/// ```
/// use playfield_state::Data;
/// use playfield_state::generate::Generator;
/// use serde_json::json;
///
/// // Any generator of random numbers will do.
/// let mut seed = 7_u64;
/// let mut bits = || {
///     seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
///     seed
/// };
/// let mut generator = Generator::new(&mut bits, 1);
/// let roll = generator.value(&u8::schema(), Some(&json!({ "from": 1, "to": 6 })))?;
/// assert!((1..=6).contains(&roll.as_u64().unwrap()));
/// # Ok::<(), String>(())
/// ```
pub struct Generator<'a> {
    random: Random<'a>,
    /// The player in the room.
    player: u64,
}

/// Numbers made of random bits.
struct Random<'a>(&'a mut dyn FnMut() -> u64);

impl Random<'_> {
    fn bits(&mut self) -> u64 {
        (self.0)()
    }

    /// A number below `bound`; 0 if `bound` is 0.
    fn below(&mut self, bound: u64) -> u64 {
        // The error of the multiplication is below 2^-64 for each value, which nobody notices.
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    fn index(&mut self, length: usize) -> usize {
        self.below(length as u64) as usize
    }

    /// A number from 0 up to, not including, 1.
    fn fraction(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn chance(&mut self, probability: f64) -> bool {
        self.fraction() < probability
    }
}

impl<'a> Generator<'a> {
    /// A generator that draws from `bits`, for this player of the room.
    pub fn new(bits: &'a mut dyn FnMut() -> u64, player: u64) -> Self {
        Self { random: Random(bits), player }
    }

    /// A value of this type. What `given` says is fixed, and the rest is random:
    ///
    /// - a table for a struct fixes the fields that it names;
    /// - `{ one_of = [...] }` is one of several values;
    /// - `{ from = 1, to = 6 }` is a number in a range;
    /// - `{ length = 100 }` is a text, a byte string or a list of that length;
    /// - `"me"` for a player is the own one.
    ///
    /// # Errors
    /// The error in `given`.
    pub fn value(&mut self, of: &Type, given: Option<&Value>) -> Result<Value, String> {
        let Some(given) = given else { return Ok(self.any(of)) };
        if let Some(choices) = one_of(of, given)? {
            let choice = &choices[self.random.index(choices.len())];
            return self.value(of, Some(choice));
        }
        match (of, given) {
            (_, Value::Object(table)) if is_number(of) => self.within(of, table),
            (Type::Text | Type::Bytes | Type::List(_), Value::Object(table)) => {
                let length = length(table)?;
                Ok(self.of_length(of, length))
            }
            (Type::Player, Value::String(me)) if me == "me" => Ok(self.player.into()),
            (Type::Option(_), Value::Null) => Ok(Value::Null),
            (Type::Option(inner), given) => self.value(inner, Some(given)),
            (Type::List(inner), Value::Array(elements)) => self.each(inner, elements),
            (Type::Array(inner, _), Value::Array(elements)) => self.each(inner, elements),
            (Type::Map(_, inner), Value::Object(members)) => {
                let entries = members
                    .iter()
                    .map(|(key, given)| Ok((key.clone(), self.value(inner, Some(given))?)));
                Ok(Value::Object(entries.collect::<Result<_, String>>()?))
            }
            (Type::Struct(of), given) => self.fields(of, Some(given)),
            (Type::Enum(of), Value::Object(members)) if members.len() == 1 => {
                let (name, given) = members.iter().next().ok_or("an empty table")?;
                let variant = of.variants.iter().find(|variant| variant.name == *name);
                let variant =
                    variant.ok_or_else(|| format!("{name:?} is no variant of {}", of.name))?;
                Ok(json!({ name: self.fields(variant, Some(given))? }))
            }
            (_, given) => Ok(given.clone()),
        }
    }

    /// Any value of this type.
    fn any(&mut self, of: &Type) -> Value {
        match of {
            Type::Bool => self.random.chance(0.5).into(),
            Type::U8 => self.unsigned(u8::MAX.into()),
            Type::U16 => self.unsigned(u16::MAX.into()),
            Type::U32 => self.unsigned(u32::MAX.into()),
            Type::U64 => self.unsigned(u64::MAX),
            Type::I8 => self.signed(i8::MAX.into()),
            Type::I16 => self.signed(i16::MAX.into()),
            Type::I32 => self.signed(i32::MAX.into()),
            Type::I64 => self.signed(i64::MAX),
            Type::F32 => json!(((self.random.fraction() * 2.0 - 1.0) * 1000.0) as f32),
            Type::F64 => json!((self.random.fraction() * 2.0 - 1.0) * 1000.0),
            Type::Text | Type::Bytes => {
                let length = self.random.below(TEXT_CHARS_MAX + 1);
                self.of_length(of, length)
            }
            Type::Player if self.random.chance(0.5) => self.player.into(),
            Type::Player => (self.random.below(self.player.saturating_mul(2).max(8)) + 1).into(),
            Type::Unit => Value::Null,
            Type::Option(_) if self.random.chance(0.25) => Value::Null,
            Type::Option(inner) => self.any(inner),
            Type::List(_) => {
                let length = self.random.below(ELEMENTS_MAX + 1);
                self.of_length(of, length)
            }
            Type::Array(inner, length) => (0..*length).map(|_| self.any(inner)).collect(),
            Type::Map(key, inner) => {
                let count = self.random.below(ELEMENTS_MAX + 1);
                let entries = (0..count).map(|_| (self.key(key), self.any(inner)));
                Value::Object(entries.collect())
            }
            Type::Set(key) => {
                let count = self.random.below(ELEMENTS_MAX + 1);
                (0..count).map(|_| self.any(key)).collect()
            }
            Type::Quantized(of) => {
                let (least, most) = of.range.unwrap_or((-1000.0 * of.step, 1000.0 * of.step));
                json!(least + self.random.fraction() * (most - least))
            }
            // Without given fields nothing can be wrong.
            Type::Struct(of) => self.fields(of, None).unwrap_or_default(),
            Type::Enum(of) if of.variants.is_empty() => Value::Null,
            Type::Enum(of) => {
                let variant = &of.variants[self.random.index(of.variants.len())];
                if variant.fields.is_empty() {
                    return variant.name.as_ref().into();
                }
                json!({ variant.name.as_ref(): self.fields(variant, None).unwrap_or_default() })
            }
        }
    }

    /// The fields of a struct, in the form that JSON has for it: nothing, the only field, an array
    /// of fields without names, or an object.
    fn fields(&mut self, of: &Struct, given: Option<&Value>) -> Result<Value, String> {
        match &of.fields[..] {
            [] => Ok(given.cloned().unwrap_or_default()),
            [first, ..] if first.name != "0" => {
                let table = match given {
                    None => None,
                    Some(Value::Object(table)) => Some(table),
                    Some(other) => {
                        return Err(format!("{other} is no table of the fields of {}", of.name));
                    }
                };
                if let Some(unknown) = table
                    .into_iter()
                    .flat_map(Map::keys)
                    .find(|name| of.fields.iter().all(|field| field.name != **name))
                {
                    let known: Vec<_> = of.fields.iter().map(|field| field.name.as_ref()).collect();
                    return Err(format!(
                        "{} has no field {unknown:?}; its fields are {}",
                        of.name,
                        known.join(", ")
                    ));
                }
                let fields = of.fields.iter().map(|field| {
                    let given = table.and_then(|table| table.get(field.name.as_ref()));
                    let value = self.value(&field.of, given);
                    let value = value.map_err(|why| format!("field {:?}: {why}", field.name))?;
                    Ok((field.name.clone().into_owned(), value))
                });
                Ok(Value::Object(fields.collect::<Result<_, String>>()?))
            }
            [only] => self.value(&only.of, given),
            fields => {
                let elements = match given {
                    None => None,
                    Some(Value::Array(elements)) if elements.len() == fields.len() => {
                        Some(elements)
                    }
                    Some(other) => {
                        return Err(format!("{other} is no list of {} values", fields.len()));
                    }
                };
                let values = fields.iter().enumerate().map(|(index, field)| {
                    self.value(&field.of, elements.map(|elements| &elements[index]))
                });
                Ok(Value::Array(values.collect::<Result<_, String>>()?))
            }
        }
    }

    fn each(&mut self, of: &Type, elements: &[Value]) -> Result<Value, String> {
        let values = elements.iter().map(|given| self.value(of, Some(given)));
        Ok(Value::Array(values.collect::<Result<_, String>>()?))
    }

    /// Half are small, as most real values are; the other half are of any size.
    fn unsigned(&mut self, max: u64) -> Value {
        let bits = self.random.bits();
        if self.random.chance(0.5) { (bits % 101).min(max).into() } else { (bits & max).into() }
    }

    fn signed(&mut self, max: i64) -> Value {
        let bits = self.random.bits().cast_signed();
        let value = if self.random.chance(0.5) { bits % 101 } else { bits };
        // The least value is the greatest's complement.
        let value =
            if (-max - 1..=max).contains(&value) { value } else { (value & max) ^ (value >> 63) };
        value.into()
    }

    /// A number between two.
    fn within(&mut self, of: &Type, table: &Map<String, Value>) -> Result<Value, String> {
        let unknown = table.keys().find(|name| !matches!(name.as_str(), "from" | "to"));
        if let Some(unknown) = unknown {
            return Err(format!("a number takes from, to or one_of, not {unknown:?}"));
        }
        let (from, to) = (table.get("from").unwrap_or(&Value::Null), table.get("to"));
        let to = to.unwrap_or(&Value::Null);
        if matches!(of, Type::F32 | Type::F64 | Type::Quantized(_)) {
            let (Some(from), Some(to)) = (from.as_f64(), to.as_f64()) else {
                return Err(format!("from {from} to {to} is no range of numbers"));
            };
            let value = from + self.random.fraction() * (to - from);
            return Ok(if matches!(of, Type::F32) { json!(value as f32) } else { json!(value) });
        }
        let (Some(from), Some(to)) = (from.as_i64(), to.as_i64()) else {
            return Err(format!("from {from} to {to} is no range of whole numbers"));
        };
        if from > to {
            return Err(format!("from {from} is greater than to {to}"));
        }
        let width = to.wrapping_sub(from).cast_unsigned().saturating_add(1);
        Ok(from.wrapping_add(self.random.below(width).cast_signed()).into())
    }

    fn of_length(&mut self, of: &Type, length: u64) -> Value {
        match of {
            Type::List(inner) => (0..length).map(|_| self.any(inner)).collect(),
            Type::Bytes => {
                let bytes: Vec<u8> = (0..length).map(|_| self.random.bits() as u8).collect();
                let mut text = Vec::new();
                playfield_wire::tree::TreeWriter::new(playfield_wire::TreeFormat::Json, &mut text)
                    .bytes(&bytes);
                serde_json::from_slice(&text).unwrap_or_default()
            }
            _ => self.text(length).into(),
        }
    }

    /// A text of this length.
    pub fn text(&mut self, length: u64) -> String {
        (0..length).map(|_| (b'a' + self.random.below(26) as u8) as char).collect()
    }

    /// The name of a key.
    fn key(&mut self, of: &Type) -> String {
        match self.any(of) {
            Value::String(text) => text,
            other => other.to_string(),
        }
    }
}

fn is_number(of: &Type) -> bool {
    matches!(
        of,
        Type::U8
            | Type::U16
            | Type::U32
            | Type::U64
            | Type::I8
            | Type::I16
            | Type::I32
            | Type::I64
            | Type::F32
            | Type::F64
            | Type::Player
            | Type::Quantized(_)
    )
}

/// The choices, if `given` is a list of them and no value of its own.
fn one_of<'v>(of: &Type, given: &'v Value) -> Result<Option<&'v [Value]>, String> {
    let Value::Object(table) = given else { return Ok(None) };
    let Some(choices) = table.get("one_of").filter(|_| table.len() == 1) else { return Ok(None) };
    let is_own = match of {
        Type::Map(..) => true,
        Type::Struct(of) => of.fields.iter().any(|field| field.name == "one_of"),
        Type::Enum(of) => of.variants.iter().any(|variant| variant.name == "one_of"),
        _ => false,
    };
    if is_own {
        return Ok(None);
    }
    match choices.as_array() {
        Some(choices) if !choices.is_empty() => Ok(Some(choices)),
        _ => Err(format!("one_of = {choices} is no list of values")),
    }
}

fn length(table: &Map<String, Value>) -> Result<u64, String> {
    let length = table.get("length").filter(|_| table.len() == 1).and_then(Value::as_u64);
    length.filter(|length| *length <= LENGTH_MAX).ok_or_else(|| {
        let given = Value::Object(table.clone());
        format!("{given} must be a length from 0 to {LENGTH_MAX}, as in {{ length = 100 }}")
    })
}

#[cfg(test)]
mod tests {
    use playfield_wire::schema::{Enum, Field, MessageSchema, Policy, RoomSchema, Struct, Type};
    use serde_json::{Value, json};

    use super::{Generator, LENGTH_MAX};
    use crate::JsonExchange;

    /// Random bits (SplitMix64).
    fn bits(mut seed: u64) -> impl FnMut() -> u64 {
        move || {
            seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^ (mixed >> 31)
        }
    }

    fn structure(name: &'static str, fields: Vec<(&'static str, Type)>) -> Struct {
        let field = |(name, of): (&'static str, Type)| Field {
            name: name.into(),
            policy: Policy::Everyone,
            default_digest: None,
            of,
        };
        Struct { name: name.into(), fields: fields.into_iter().map(field).collect() }
    }

    /// A struct with one field of each type that a message can have.
    fn everything() -> Type {
        let boxed = |of: Type| Box::new(of);
        let choice = Enum {
            name: "Choice".into(),
            variants: vec![
                structure("pass", vec![]),
                structure("play", vec![("card", Type::U8)]),
                structure("pair", vec![("0", Type::U8), ("1", Type::Text)]),
                structure("one", vec![("0", Type::I64)]),
            ],
        };
        Type::Struct(structure(
            "Everything",
            vec![
                ("bool", Type::Bool),
                ("u8", Type::U8),
                ("u16", Type::U16),
                ("u32", Type::U32),
                ("u64", Type::U64),
                ("i8", Type::I8),
                ("i16", Type::I16),
                ("i32", Type::I32),
                ("i64", Type::I64),
                ("f32", Type::F32),
                ("f64", Type::F64),
                ("text", Type::Text),
                ("bytes", Type::Bytes),
                ("player", Type::Player),
                ("unit", Type::Unit),
                ("option", Type::Option(boxed(Type::U8))),
                ("list", Type::List(boxed(Type::Text))),
                ("array", Type::Array(boxed(Type::I8), 3)),
                ("map", Type::Map(boxed(Type::I16), boxed(Type::Bool))),
                ("choice", Type::Enum(choice)),
            ],
        ))
    }

    fn encoded(of: Type, given: Option<&Value>, seed: u64) -> Result<Value, String> {
        let schema = RoomSchema {
            state: Type::Struct(structure("State", vec![])),
            options: Type::Unit,
            messages: vec![MessageSchema { name: "go".into(), of: of.clone(), reply: of.clone() }],
            events: vec![],
        };
        let value = Generator::new(&mut bits(seed), 3).value(&of, given)?;
        let exchange = JsonExchange::new(&schema).expect("a schema");
        let (_, payload) = exchange.message("go", &value).map_err(|error| error.to_string())?;
        exchange.reply(0, &payload).map_err(|error| error.to_string())
    }

    #[test]
    fn generated_values_are_valid_and_the_same_for_a_seed() {
        for seed in 0..500 {
            let value = encoded(everything(), None, seed).expect("a valid value");
            assert_eq!(encoded(everything(), None, seed), Ok(value));
        }
        assert_ne!(encoded(everything(), None, 1), encoded(everything(), None, 2));
    }

    #[test]
    fn what_is_given_is_fixed_and_the_rest_is_generated() {
        let given = json!({
            "u8": {"from": 3, "to": 5}, "text": {"length": 7}, "i64": {"one_of": [-1, 4]},
            "player": "me", "choice": {"play": {"card": {"from": 9, "to": 9}}},
            "list": [{"length": 2}], "option": null, "f64": {"from": 0.5, "to": 0.75},
        });
        for seed in 0..100 {
            let value = encoded(everything(), Some(&given), seed).expect("a valid value");
            assert!((3..=5).contains(&value["u8"].as_u64().unwrap()), "{value}");
            assert_eq!(value["text"].as_str().map(str::len), Some(7));
            assert!([json!(-1), json!(4)].contains(&value["i64"]), "{value}");
            assert_eq!((&value["player"], &value["option"]), (&json!(3), &Value::Null));
            assert_eq!(value["choice"], json!({"play": {"card": 9}}));
            assert_eq!(value["list"][0].as_str().map(str::len), Some(2));
            assert!((0.5..0.75).contains(&value["f64"].as_f64().unwrap()), "{value}");
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (given, why) in [
            (json!({"hp": 1}), "has no field \"hp\"; its fields are bool, u8"),
            (json!([1]), "is no table"),
            (json!({"u8": {"from": 5, "to": 3}}), "field \"u8\": from 5 is greater than to 3"),
            (json!({"u8": {"least": 5}}), "takes from, to or one_of, not \"least\""),
            (json!({"u8": {"from": 1.5, "to": 2}}), "no range of whole numbers"),
            (json!({"u8": 256}), "256"),
            (json!({"text": {"length": LENGTH_MAX + 1}}), "must be a length from 0 to"),
            (json!({"text": {"one_of": []}}), "one_of = [] is no list of values"),
            (json!({"choice": "fold"}), "\"fold\" is not a variant"),
            (json!({"choice": {"fold": 1}}), "\"fold\" is no variant"),
        ] {
            let error = encoded(everything(), Some(&given), 1).expect_err("it is wrong");
            assert!(error.contains(why), "{given}: {error}");
        }
    }

    #[test]
    fn a_range_holds_both_its_ends() {
        let mut bits = bits(1);
        let mut generator = Generator::new(&mut bits, 1);
        let given = json!({"from": -1, "to": 1});
        let drawn: Vec<_> =
            (0..100).map(|_| generator.value(&Type::I64, Some(&given)).unwrap()).collect();
        assert!([-1, 0, 1].iter().all(|number| drawn.contains(&json!(number))), "{drawn:?}");
        let all = json!({"from": i64::MIN, "to": i64::MAX});
        assert!(generator.value(&Type::I64, Some(&all)).is_ok());
    }
}
