//! JSON as values of Python, by the schema: integers of any size and keys are `int`, bytes are
//! `bytes`, NaN and the infinities are `float`.

use playfield_state::{Bytes, Data, PathStep};
use playfield_wire::schema::{Struct, Type};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use serde_json::{Number, Value};

/// The shape of a value, as far as it is known: its type, or the fields that it has.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shape<'a> {
    Of(&'a Type),
    Fields(&'a Struct),
}

impl<'a> Shape<'a> {
    /// Without what the JSON does not show: options, and tuples of one.
    fn innermost(self) -> Self {
        match self {
            Self::Of(Type::Option(of)) => Self::Of(of).innermost(),
            Self::Of(Type::Struct(of)) | Self::Fields(of) => match &*of.fields {
                [field] if field.name == "0" => Self::Of(&field.of).innermost(),
                _ => Self::Fields(of),
            },
            of @ Self::Of(_) => of,
        }
    }

    fn element(self, at: usize) -> Option<Self> {
        match self {
            Self::Of(Type::List(of) | Type::Array(of, _)) => Some(Self::Of(of)),
            Self::Fields(of) => of.fields.get(at).map(|field| Self::Of(&field.of)),
            Self::Of(_) => None,
        }
    }

    /// The shapes of a member's key, if it is one of a map, and of its value.
    fn member(self, name: &str) -> (Option<Self>, Option<Self>) {
        match self {
            Self::Of(Type::Map(key, of)) => (Some(Self::Of(key).innermost()), Some(Self::Of(of))),
            Self::Of(Type::Set(key)) => (Some(Self::Of(key).innermost()), None),
            Self::Of(Type::Enum(of)) => {
                let mut variants = of.variants.iter();
                (None, variants.find(|variant| variant.name == *name).map(Self::Fields))
            }
            Self::Fields(of) => {
                let mut fields = of.fields.iter();
                (None, fields.find(|field| field.name == *name).map(|field| Self::Of(&field.of)))
            }
            Self::Of(_) => (None, None),
        }
    }
}

/// A value of a shape. What does not fit it, or has none, is what its JSON is.
pub(super) fn object<'py>(
    py: Python<'py>,
    value: &Value,
    shape: Option<Shape<'_>>,
) -> PyResult<Bound<'py, PyAny>> {
    let shape = shape.map(Shape::innermost);
    match value {
        Value::Null => Ok(py.None().into_bound(py)),
        Value::Bool(value) => value.into_bound_py_any(py),
        Value::Number(value) => number(py, value, shape),
        Value::String(text) => {
            if let Some(Shape::Of(Type::Bytes)) = shape
                && let Ok(Bytes(raw)) = Bytes::from_json(value)
            {
                return Ok(PyBytes::new(py, &raw).into_any());
            }
            name(py, text, shape)
        }
        Value::Array(elements) => {
            let list = PyList::empty(py);
            for (at, element) in elements.iter().enumerate() {
                list.append(object(py, element, shape.and_then(|shape| shape.element(at)))?)?;
            }
            Ok(list.into_any())
        }
        Value::Object(members) => {
            let dict = PyDict::new(py);
            for (key, value) in members {
                let (of_key, of) = shape.map_or((None, None), |shape| shape.member(key));
                dict.set_item(name(py, key, of_key)?, object(py, value, of)?)?;
            }
            Ok(dict.into_any())
        }
    }
}

/// A step of a path: what it is in Python, and the shape of the place that it leads to.
pub(super) fn step<'py, 'a>(
    py: Python<'py>,
    step: &PathStep,
    from: Option<Shape<'a>>,
) -> PyResult<(Bound<'py, PyAny>, Option<Shape<'a>>)> {
    let from = from.map(Shape::innermost);
    match step {
        PathStep::Name(text) => {
            let (key, to) = from.map_or((None, None), |from| from.member(text));
            Ok((name(py, text, key)?, to))
        }
        PathStep::Index(index) => {
            let to = from.and_then(|from| from.element(*index));
            Ok((index.into_bound_py_any(py)?, to))
        }
    }
}

fn is_integer(shape: Shape<'_>) -> bool {
    use Type::{I8, I16, I32, I64, Player, U8, U16, U32, U64};
    matches!(shape, Shape::Of(U8 | U16 | U32 | U64 | I8 | I16 | I32 | I64 | Player))
}

fn is_float(shape: Shape<'_>) -> bool {
    matches!(shape, Shape::Of(Type::F32 | Type::F64 | Type::Quantized(_)))
}

fn number<'py>(
    py: Python<'py>,
    value: &Number,
    shape: Option<Shape<'_>>,
) -> PyResult<Bound<'py, PyAny>> {
    if !shape.is_some_and(is_float) {
        if let Some(value) = value.as_i64() {
            return value.into_bound_py_any(py);
        }
        if let Some(value) = value.as_u64() {
            return value.into_bound_py_any(py);
        }
    }
    value.as_f64().into_bound_py_any(py)
}

/// A text, or the number or the truth that it stands for.
fn name<'py>(py: Python<'py>, text: &str, shape: Option<Shape<'_>>) -> PyResult<Bound<'py, PyAny>> {
    if shape.is_some_and(is_integer) {
        if let Ok(value) = text.parse::<i64>() {
            return value.into_bound_py_any(py);
        }
        if let Ok(value) = text.parse::<u64>() {
            return value.into_bound_py_any(py);
        }
    }
    match text {
        "NaN" if shape.is_some_and(is_float) => f64::NAN.into_bound_py_any(py),
        "Infinity" if shape.is_some_and(is_float) => f64::INFINITY.into_bound_py_any(py),
        "-Infinity" if shape.is_some_and(is_float) => f64::NEG_INFINITY.into_bound_py_any(py),
        // The keys of a map of bools.
        "true" | "false" if matches!(shape, Some(Shape::Of(Type::Bool))) => {
            (text == "true").into_bound_py_any(py)
        }
        _ => text.into_bound_py_any(py),
    }
}
