//! The fields of a struct and their attributes.

use proc_macro2::{TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::meta::ParseNestedMeta;
use syn::parse::Parse;
use syn::{
    DeriveInput, Error, Expr, ExprRange, Fields, Ident, Index, Path, RangeLimits, Token, Type,
};

use crate::placed::{self, Placed};

/// The players who see a field.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Policy {
    Everyone,
    Owner,
    View,
    Hidden,
    /// Not part of the state.
    Skip,
}

impl Policy {
    /// Whether some player may see it.
    pub(crate) fn is_synced(self) -> bool {
        !matches!(self, Self::Hidden | Self::Skip)
    }
}

pub(crate) struct Field {
    pub(crate) place: usize,
    /// `self.<member>`, and the name in a struct literal.
    pub(crate) member: TokenStream,
    /// The name in JSON and in the schema; the position for fields without one.
    pub(crate) name: String,
    pub(crate) of: Type,
    pub(crate) policy: Policy,
    /// The function that returns what everyone may see of the value.
    pub(crate) mask: Option<Path>,
    pub(crate) quantize: Option<Quantize>,
    pub(crate) view: Option<View>,
}

/// Reads the fields of a type, or of a variant of it, and their `#[sync(...)]`.
pub(crate) fn fields(of: &Ident, fields: &Fields) -> syn::Result<Vec<Field>> {
    fields
        .iter()
        .enumerate()
        .map(|(place, field)| {
            let member = match &field.ident {
                Some(ident) => ident.to_token_stream(),
                None => Index::from(place).to_token_stream(),
            };
            let name = field.ident.as_ref().map_or_else(|| place.to_string(), plain_name);
            let Sync { policy, mask, quantize, view } = sync(field, &name)?;
            if policy != Policy::Skip {
                refuse_recursion(of, place, field)?;
            }
            Ok(Field { place, member, name, of: field.ty.clone(), policy, mask, quantize, view })
        })
        .collect()
}

/// A name without the `r#` of a raw identifier.
pub(crate) fn plain_name(ident: &Ident) -> String {
    let name = ident.to_string();
    name.strip_prefix("r#").map_or(name.clone(), str::to_owned)
}

/// The contents of a field's `#[sync(...)]`.
struct Sync {
    policy: Policy,
    mask: Option<Path>,
    quantize: Option<Quantize>,
    view: Option<View>,
}

/// The parts of `view = function, viewer = map`, or of a view by place.
pub(crate) struct View {
    pub(crate) decides: Decides,
    /// The name of the map, keyed by player, that holds an entry for each viewer.
    pub(crate) viewer: Ident,
    /// The field is a map: the view decides entry by entry.
    pub(crate) by_entry: bool,
}

/// The rule that decides who sees a field with a view.
pub(crate) enum Decides {
    Function(Path),
    Place(Box<Placed>),
}

/// The parts of `quantize = step`, `range = a..=b` and `angle = step`.
pub(crate) struct Quantize {
    pub(crate) step: Expr,
    pub(crate) range: Option<(Expr, Expr)>,
    pub(crate) angle: bool,
}

const WORDS: &str = "#[sync(owner)], #[sync(hidden)], #[sync(skip)], #[sync(mask = function)], #[sync(view = function, viewer = map)], \
    #[sync(near = position, viewer = map, radius = distance)], #[sync(same = group, viewer = map)], #[sync(quantize = step)], \
    #[sync(quantize = step, range = least..=most)] and #[sync(angle = step)]";

const ONE_POLICY: &str = "a field can have one policy: `owner`, `hidden`, `skip`, `mask = function`, `view = function`, or `near` and `same`";

/// Returns the correct way to write each of them.
fn fix(word: &str) -> &'static str {
    match word {
        "owner" => "write `owner` alone; it takes no value",
        "hidden" => "write `hidden` alone; it takes no value",
        "skip" => "write `skip` alone; it takes no value",
        "mask" => {
            "write `mask = function`, with the name of the function that returns what everyone may see of the value"
        }
        "view" => {
            "write `view = function, viewer = map`, with the name of the function that decides who sees it"
        }
        "viewer" => {
            "write `viewer = map`, with the name of the map in this struct whose entries the function gets"
        }
        "quantize" => "write `quantize = step`, as in `quantize = 0.01`",
        "angle" => "write `angle = step`, as in `angle = 0.01`",
        _ if placed::Words::ALL.contains(&word) => placed::fix(word),
        _ => "write `range = least..=most`, as in `range = -1.0..=1.0`",
    }
}

/// Reads the value of a word. The error for a missing or wrong value says what to write.
fn value<T: Parse>(meta: &ParseNestedMeta<'_>, field: &str, word: &str) -> syn::Result<T> {
    let wrong =
        |error: Error| Error::new(error.span(), format!("the field `{field}`: {}", fix(word)));
    if !meta.input.peek(Token![=]) {
        return Err(wrong(meta.error("")));
    }
    meta.value()?.parse().map_err(wrong)
}

/// Refuses anything after a word and its value: `owner = 3`, `view = function(3)`.
fn refuse_more(meta: &ParseNestedMeta<'_>, field: &str, word: &str) -> syn::Result<()> {
    if meta.input.is_empty() || meta.input.peek(Token![,]) {
        return Ok(());
    }
    Err(meta.input.error(format!("the field `{field}`: {}", fix(word))))
}

fn sync(field: &syn::Field, name: &str) -> syn::Result<Sync> {
    let mut sync = Sync { policy: Policy::Everyone, mask: None, quantize: None, view: None };
    let (mut range, mut function, mut viewer) = (None, None, None);
    let mut placed = placed::Words::default();
    let mut before = String::new();
    for attribute in field.attrs.iter().filter(|attribute| attribute.path().is_ident("sync")) {
        attribute.parse_nested_meta(|meta| {
            let word = meta.path.to_token_stream().to_string();
            let policies = sync.policy != Policy::Everyone || sync.mask.is_some();
            match word.as_str() {
                "owner" | "hidden" | "skip" | "mask" | "view" if policies => {
                    return Err(meta.error(ONE_POLICY));
                }
                "near" | "same" if policies && !placed.decide() => {
                    return Err(meta.error(ONE_POLICY));
                }
                "quantize" | "angle" if sync.quantize.is_some() => {
                    return Err(meta.error(
                        "a field can be quantized in one way: `quantize = step` or `angle = step`",
                    ));
                }
                "owner" => sync.policy = Policy::Owner,
                "hidden" => sync.policy = Policy::Hidden,
                "skip" => sync.policy = Policy::Skip,
                "mask" => sync.mask = Some(value(&meta, name, &word)?),
                "view" => {
                    sync.policy = Policy::View;
                    function = Some((meta.path.clone(), value::<Path>(&meta, name, &word)?));
                }
                "viewer" => viewer = Some((meta.path.clone(), value::<Ident>(&meta, name, &word)?)),
                _ if placed::Words::ALL.contains(&&*word) => {
                    placed.read(&meta, name, &word)?;
                    if placed.decide() {
                        sync.policy = Policy::View;
                    }
                }
                "quantize" | "angle" => {
                    let step = value(&meta, name, &word)?;
                    sync.quantize = Some(Quantize { step, range: None, angle: word == "angle" });
                }
                "range" => {
                    range = Some((meta.path.clone(), value::<ExprRange>(&meta, name, &word)?));
                }
                // `near = x, y`
                _ if matches!(&*before, "near" | "same") && !meta.input.peek(Token![=]) => {
                    let message = format!("the field `{name}`: {}", fix(&before));
                    return Err(Error::new_spanned(&meta.path, message));
                }
                _ => return Err(meta.error(format!("`{word}` is unknown: use one of {WORDS}"))),
            }
            refuse_more(&meta, name, &word)?;
            before = word;
            Ok(())
        })?;
    }
    if let Some((word, range)) = range {
        let ends = match range {
            ExprRange {
                start: Some(start),
                limits: RangeLimits::Closed(_),
                end: Some(end),
                ..
            } => (*start, *end),
            other => {
                return Err(Error::new_spanned(other, "a range needs both ends: write -1.0..=1.0"));
            }
        };
        match &mut sync.quantize {
            Some(quantize) if !quantize.angle => quantize.range = Some(ends),
            Some(_) => {
                return Err(Error::new_spanned(
                    word,
                    "an angle has no range: it wraps at a whole turn",
                ));
            }
            None => {
                let message = "a range needs a quantized number: add `quantize = step`";
                return Err(Error::new_spanned(word, message));
            }
        }
    }
    sync.view = view(field, function, viewer, placed)?;
    if sync.view.is_some() && sync.quantize.is_some() {
        let message = "a field with a view is sent as a whole: put the quantized number into a struct, and the view on that";
        return Err(Error::new_spanned(field, message));
    }
    if sync.policy == Policy::Hidden && sync.quantize.is_some() {
        return Err(Error::new_spanned(
            field,
            "a hidden field is never sent, so there is nothing to quantize",
        ));
    }
    if sync.policy == Policy::Skip && sync.quantize.is_some() {
        let message = "a skipped field is no state, so there is nothing to quantize";
        return Err(Error::new_spanned(field, message));
    }
    if let Some(quantize) = &sync.quantize {
        check_quantized(field, quantize)?;
    }
    if sync.mask.is_some() && sync.quantize.is_some() {
        let message = "a masked field is sent as the mask returns it: quantize inside the mask, or drop one of the two";
        return Err(Error::new_spanned(field, message));
    }
    Ok(sync)
}

/// Checks what the source text alone shows. The compiler checks the rest, once it knows the
/// numbers.
fn check_quantized(field: &syn::Field, quantize: &Quantize) -> syn::Result<()> {
    let is_float = match &field.ty {
        Type::Path(of) => {
            of.path.segments.last().is_some_and(|last| last.ident == "f32" || last.ident == "f64")
        }
        _ => false,
    };
    if !is_float {
        let message =
            "only an f32 or an f64 can be quantized: change the field's type, or remove the step";
        return Err(Error::new_spanned(&field.ty, message));
    }
    if number(&quantize.step).is_some_and(|step| step <= 0.0) {
        return Err(Error::new_spanned(&quantize.step, "a step must be greater than 0"));
    }
    if let Some((least, most)) = &quantize.range
        && let (Some(from), Some(to)) = (number(least), number(most))
        && from >= to
    {
        return Err(Error::new_spanned(
            most,
            "the second end of a range must be greater than the first",
        ));
    }
    Ok(())
}

/// The value of an expression that is a literal number.
fn number(expression: &Expr) -> Option<f64> {
    expression.to_token_stream().to_string().replace([' ', '_'], "").parse().ok()
}

fn view(
    field: &syn::Field,
    function: Option<(Path, Path)>,
    viewer: Option<(Path, Ident)>,
    placed: placed::Words,
) -> syn::Result<Option<View>> {
    let by_entry = match &field.ty {
        Type::Path(of) => of.path.segments.last().is_some_and(|last| last.ident == "Map"),
        _ => false,
    };
    let placed = placed.finish(field, by_entry, viewer.as_ref().map(|(_, viewer)| viewer))?;
    if let (Some(placed), Some((_, viewer))) = (placed, &viewer) {
        let decides = Decides::Place(Box::new(placed));
        return Ok(Some(View { decides, viewer: viewer.clone(), by_entry }));
    }
    match (function, viewer) {
        (None, None) => Ok(None),
        (Some((_, function)), Some((_, viewer))) => {
            Ok(Some(View { decides: Decides::Function(function), viewer, by_entry }))
        }
        (Some((word, _)), None) => {
            let message = "a view needs viewers: add `viewer = map`, the name of a map in this struct, keyed by player. The function is \
                given the entry of the player who looks";
            Err(Error::new_spanned(word, message))
        }
        (None, Some((word, _))) => Err(Error::new_spanned(
            word,
            "a viewer needs a view: add `view = function`, `near = position` or `same = group`",
        )),
    }
}

/// Refuses generic types, which have no single schema.
pub(crate) fn refuse_generics(input: &DeriveInput) -> syn::Result<()> {
    if input.generics.params.is_empty() {
        return Ok(());
    }
    Err(Error::new_spanned(
        &input.generics,
        "a generic type has no single schema: write one type for each use",
    ))
}

/// Refuses a field that holds its own struct: the schema of such a type would have no end. A field
/// that holds it through another type, or under another name, can't be detected here.
fn refuse_recursion(of: &Ident, place: usize, field: &syn::Field) -> syn::Result<()> {
    if !names(of, field.ty.to_token_stream()) {
        return Ok(());
    }
    let name = field.ident.as_ref().map_or_else(|| place.to_string(), plain_name);
    let message = format!(
        "the field `{name}` of `{of}` holds `{of}` itself, so its schema would have no end: keep every `{of}` in one flat map by \
         id, and in this field the ids of those that belong to it"
    );
    Err(Error::new_spanned(&field.ty, message))
}

/// Whether a type is or contains `Self` or the type with this name. A path through a module names
/// another type.
pub(crate) fn names(of: &Ident, tokens: TokenStream) -> bool {
    let mut tokens = tokens.into_iter().peekable();
    let mut after_path = false;
    while let Some(token) = tokens.next() {
        let is_separator =
            |token: &TokenTree| matches!(token, TokenTree::Punct(mark) if mark.as_char() == ':');
        let found = match &token {
            TokenTree::Group(group) => names(of, group.stream()),
            // Before a `::` is a module, or a type with an associated constant.
            TokenTree::Ident(ident) => {
                (ident == of || ident == "Self")
                    && !after_path
                    && !tokens.peek().is_some_and(is_separator)
            }
            _ => false,
        };
        if found {
            return true;
        }
        after_path = is_separator(&token);
    }
    false
}

/// `lhs || rhs || …`, `false` for none.
pub(crate) fn any(terms: impl Iterator<Item = TokenStream>) -> TokenStream {
    let terms: Vec<TokenStream> = terms.collect();
    if terms.is_empty() { quote!(false) } else { quote!(#(#terms)||*) }
}
