//! The words of a view by place: `near`, `same`, `radius`, `half_extents`, `hysteresis`, `nearest`.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::meta::ParseNestedMeta;
use syn::spanned::Spanned as _;
use syn::{Error, Expr, Ident, Path, Token};

/// The rule of a view by place.
pub(crate) struct Placed {
    /// Positions of an entry and of a viewer.
    pub(crate) near: Option<Both>,
    /// The property that must be equal in both.
    pub(crate) same: Option<Both>,
    pub(crate) reach: Option<Reach>,
    pub(crate) hysteresis: Option<Expr>,
    pub(crate) nearest: Option<Expr>,
}

/// The distance that viewers see.
pub(crate) enum Reach {
    Radius(Expr),
    HalfExtents(Vec<Expr>),
}

/// A property of an entry, and the same of a viewer.
pub(crate) struct Both {
    pub(crate) entry: Of,
    pub(crate) viewer: Of,
}

/// Something that a value has.
#[derive(Clone)]
pub(crate) enum Of {
    /// The result of a function for it.
    Function(Path),
    /// Some of its fields, or what is in them.
    Fields(Vec<Expr>),
}

/// The words as they are read, each with the place of its name.
#[derive(Default)]
pub(crate) struct Words {
    near: Option<(Path, Both)>,
    same: Option<(Path, Both)>,
    radius: Option<(Path, Expr)>,
    half_extents: Option<(Path, Vec<Expr>)>,
    hysteresis: Option<(Path, Expr)>,
    nearest: Option<(Path, Expr)>,
}

/// Returns the correct way to write each of them.
pub(crate) fn fix(word: &str) -> &'static str {
    match word {
        "near" => {
            "write `near = [x, y]`, with the fields of the position, as in `near = [at.x, at.y]`, \
             or `near = function`, with the name of a function that returns the position; \
             `near = (of_entry, of_viewer)`, with two of these, if entries and viewers differ"
        }
        "same" => {
            "write `same = [floor]`, with the fields that must be equal, or `same = function`, \
             with the name of a function that returns the group; `same = (of_entry, of_viewer)`, \
             with two of these, if entries and viewers differ"
        }
        "radius" => "write `radius = distance`, as in `radius = 150.0`",
        "half_extents" => {
            "write `half_extents = [x, y]` or `[x, y, z]`, as in `half_extents = [80.0, 45.0]`"
        }
        "hysteresis" => "write `hysteresis = distance`, as in `hysteresis = 20.0`",
        _ => "write `nearest = count`, as in `nearest = 64`",
    }
}

impl Words {
    pub(crate) const ALL: [&'static str; 6] =
        ["near", "same", "radius", "half_extents", "hysteresis", "nearest"];

    /// Whether a word was read that decides who sees the field.
    pub(crate) fn decide(&self) -> bool {
        self.near.is_some() || self.same.is_some()
    }

    /// Reads one of the words and its value.
    pub(crate) fn read(
        &mut self,
        meta: &ParseNestedMeta<'_>,
        field: &str,
        word: &str,
    ) -> syn::Result<()> {
        let wrong = |at| Error::new(at, format!("the field `{field}`: {}", fix(word)));
        if !meta.input.peek(Token![=]) {
            return Err(wrong(meta.error("").span()));
        }
        let value: Expr = meta.value()?.parse().map_err(|error: Error| wrong(error.span()))?;
        let name = meta.path.clone();
        let numbers = |array: syn::ExprArray| array.elems.into_iter().collect::<Vec<Expr>>();
        let is_new = match word {
            "near" => {
                let both = both(&value).filter(Both::are_positions);
                self.near.replace((name, both.ok_or_else(|| wrong(value.span()))?)).is_none()
            }
            "same" => {
                let both = both(&value);
                self.same.replace((name, both.ok_or_else(|| wrong(value.span()))?)).is_none()
            }
            "half_extents" => match value {
                Expr::Array(array) if matches!(array.elems.len(), 2 | 3) => {
                    self.half_extents.replace((name, numbers(array))).is_none()
                }
                other => return Err(wrong(other.span())),
            },
            "radius" => self.radius.replace((name, value)).is_none(),
            "hysteresis" => self.hysteresis.replace((name, value)).is_none(),
            _ => self.nearest.replace((name, value)).is_none(),
        };
        if is_new { Ok(()) } else { Err(meta.error(format!("`{word}` is here twice"))) }
    }

    /// Checks the words as a whole. `None`: there are none.
    pub(crate) fn finish(
        self,
        field: &syn::Field,
        is_map: bool,
        viewer: Option<&Ident>,
    ) -> syn::Result<Option<Placed>> {
        let Self { near, same, radius, half_extents, hysteresis, nearest } = self;
        let say = |word: &Path, message: &str| Err(Error::new_spanned(word, message));
        if near.is_none() {
            let rest = [&radius, &hysteresis, &nearest].into_iter().flatten().map(|(word, _)| word);
            let rest = rest.chain(half_extents.iter().map(|(word, _)| word)).next();
            if let Some(word) = rest {
                let message =
                    "a distance needs positions: add `near = function` or `near = [x, y]`";
                return say(word, message);
            }
        }
        let Some(word) = near.as_ref().or(same.as_ref()).map(|(word, _)| word.clone()) else {
            return Ok(None);
        };
        if !is_map {
            let message = "`near` and `same` decide entry by entry: the field must be a map, written `Map<…>`";
            return Err(Error::new_spanned(&field.ty, message));
        }
        if viewer.is_none() {
            let message = "a view needs viewers: add `viewer = map`, the name of a map in this struct, keyed by player. The entry \
                of the player who looks says where that player is";
            return say(&word, message);
        }
        let reach = match (radius, half_extents) {
            (Some(_), Some((word, _))) => {
                return say(&word, "a view has one reach: write `radius` or `half_extents`");
            }
            (Some((_, radius)), None) => Some(Reach::Radius(radius)),
            (None, Some((_, extents))) => Some(Reach::HalfExtents(extents)),
            (None, None) if near.is_some() => {
                let message =
                    "`near` needs a reach: add `radius = distance` or `half_extents = [x, y]`";
                return say(&word, message);
            }
            (None, None) => None,
        };
        Ok(Some(Placed {
            near: near.map(|(_, both)| both),
            same: same.map(|(_, both)| both),
            reach,
            hysteresis: hysteresis.map(|(_, by)| by),
            nearest: nearest.map(|(_, count)| count),
        }))
    }
}

fn both(value: &Expr) -> Option<Both> {
    match value {
        Expr::Tuple(two) => {
            let mut two = two.elems.iter();
            let (Some(entry), Some(viewer), None) = (two.next(), two.next(), two.next()) else {
                return None;
            };
            Some(Both { entry: of(entry)?, viewer: of(viewer)? })
        }
        one => of(one).map(|of| Both { entry: of.clone(), viewer: of }),
    }
}

fn of(value: &Expr) -> Option<Of> {
    match value {
        Expr::Path(function) => Some(Of::Function(function.path.clone())),
        Expr::Array(fields) if !fields.elems.is_empty() => {
            let all_fields = fields.elems.iter().all(is_field);
            all_fields.then(|| Of::Fields(fields.elems.iter().cloned().collect()))
        }
        _ => None,
    }
}

/// Whether it names a field, as in `x`, `at.x` or `at[0]`.
fn is_field(value: &Expr) -> bool {
    match value {
        Expr::Path(field) => field.path.get_ident().is_some(),
        Expr::Field(field) => is_field(&field.base),
        Expr::Index(element) => is_field(&element.expr),
        _ => false,
    }
}

impl Both {
    fn are_positions(&self) -> bool {
        let is_position = |of: &Of| {
            matches!(of, Of::Function(_))
                || matches!(of, Of::Fields(fields) if matches!(fields.len(), 2 | 3))
        };
        is_position(&self.entry) && is_position(&self.viewer)
    }
}

impl Of {
    /// The position of `value`.
    fn position(&self, rt: &TokenStream, value: &Ident) -> TokenStream {
        match self {
            Self::Function(function) => quote_spanned!(function.span()=> #function(#value)),
            Self::Fields(fields) => {
                let fields = fields.iter().map(|field| {
                    let value = at(value, field);
                    quote_spanned!(field.span()=> #rt::coordinate(&#value.#field))
                });
                quote!([#(#fields),*])
            }
        }
    }

    /// The parts of the group of `value`.
    fn group(&self, value: &Ident) -> Vec<TokenStream> {
        match self {
            Self::Function(function) => vec![quote_spanned!(function.span()=> #function(#value))],
            Self::Fields(fields) => {
                let of = |field: &Expr| {
                    let value = at(value, field);
                    quote_spanned!(field.span()=> #value.#field)
                };
                fields.iter().map(of).collect()
            }
        }
    }
}

/// The name, with the place of a field in the source, so that the compiler points there.
fn at(value: &Ident, field: &Expr) -> Ident {
    Ident::new(&value.to_string(), field.span().resolved_at(value.span()))
}

impl Placed {
    /// The implementation of `Placing` for `rule`. `fresh` makes names that the attribute does not
    /// use.
    pub(crate) fn rule(
        &self,
        rt: &TokenStream,
        rule: &Ident,
        [entry, viewer]: [TokenStream; 2],
        fresh: impl Fn(&str) -> Ident,
    ) -> TokenStream {
        let [value, other, out] = ["value", "other", "out"].map(fresh);
        let number = |of: &Expr| quote!({ let number = #of; number as f64 });
        let reach = match &self.reach {
            None => quote!(#rt::Reach::All),
            Some(Reach::Radius(radius)) => {
                let radius = number(radius);
                quote!(#rt::Reach::radius(#radius))
            }
            Some(Reach::HalfExtents(extents)) => {
                let numbers = extents.iter().map(number);
                if extents.len() == 2 {
                    quote!(#rt::Reach::plane([#(#numbers),*]))
                } else {
                    quote!(#rt::Reach::space([#(#numbers),*]))
                }
            }
        };
        let hysteresis = match &self.hysteresis {
            None => quote!(0.0),
            Some(by) => {
                let by = number(by);
                quote!(#rt::Reach::hysteresis(#by))
            }
        };
        let nearest = match (&self.nearest, &self.near) {
            (Some(nearest), _) => quote!(#rt::Reach::nearest(#nearest)),
            (None, Some(_)) => quote!(#rt::NEAREST_DEFAULT),
            (None, None) => quote!(::core::primitive::usize::MAX),
        };
        let spot = |of: Option<&Of>| match of {
            None => quote!(::std::option::Option::Some([0.0; 3])),
            Some(of) => {
                let position = of.position(rt, &value);
                quote!(#rt::spot(#position))
            }
        };
        let entry_spot = spot(self.near.as_ref().map(|both| &both.entry));
        let viewer_spot = spot(self.near.as_ref().map(|both| &both.viewer));
        let encode = |of: Option<&Of>| -> TokenStream {
            let parts = of.map_or_else(Vec::new, |of| of.group(&value));
            parts
                .iter()
                .map(|part| quote_spanned!(part.span()=> #rt::Data::encode(&#part, #out);))
                .collect()
        };
        let entry_group = encode(self.same.as_ref().map(|both| &both.entry));
        let viewer_group = encode(self.same.as_ref().map(|both| &both.viewer));
        let axes = self.near.as_ref().map(|both| {
            let (one, two) = (both.entry.position(rt, &value), both.viewer.position(rt, &other));
            let extents = match &self.reach {
                Some(Reach::HalfExtents(extents)) => {
                    let (one, axes) = (both.entry.position(rt, &value), extents.len());
                    Some(quote!(#rt::same_axes(#one, [0.0_f64; #axes]);))
                }
                _ => None,
            };
            quote!(#rt::same_axes(#one, #two); #extents)
        });
        let groups = self.same.as_ref().map(|both| {
            let (one, two) = (both.entry.group(&value), both.viewer.group(&other));
            quote!(#rt::same_type(&(#(&#one,)*), &(#(&#two,)*));)
        });
        quote! {
            struct #rule;
            impl #rt::Placing for #rule {
                type Entry = #entry;
                type Viewer = #viewer;
                const REACH: #rt::Reach = #reach;
                const HYSTERESIS: f64 = #hysteresis;
                const NEAREST: usize = #nearest;
                #[inline]
                fn entry(#value: &#entry) -> ::std::option::Option<#rt::Spot> {
                    let _ = #value;
                    #entry_spot
                }
                #[inline]
                fn viewer(#value: &#viewer) -> ::std::option::Option<#rt::Spot> {
                    let _ = #value;
                    #viewer_spot
                }
                #[inline]
                fn entry_group(#value: &#entry, #out: &mut ::std::vec::Vec<u8>) {
                    let _ = (#value, &#out);
                    #entry_group
                }
                #[inline]
                fn viewer_group(#value: &#viewer, #out: &mut ::std::vec::Vec<u8>) {
                    let _ = (#value, &#out);
                    #viewer_group
                }
            }
            // Evaluated here, whether or not the type is ever synced.
            const _: (#rt::Reach, f64, usize) = (
                <#rule as #rt::Placing>::REACH,
                <#rule as #rt::Placing>::HYSTERESIS,
                <#rule as #rt::Placing>::NEAREST,
            );
            const _: fn(&#entry, &#viewer) = |#value, #other| {
                let _ = (#value, #other);
                #axes
                #groups
            };
        }
    }
}
