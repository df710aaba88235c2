//! The fields of a struct, as the generated code needs to know them.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned as _;
use syn::{DeriveInput, Ident, Path};

use crate::fields::{Decides, Field, Policy, View, any, plain_name};
use crate::names::Names;

/// The most fields of one struct that players may see: a patch marks them in one 64-bit mask.
const FIELDS_MAX: usize = 64;

pub(super) struct Tree<'a> {
    pub(super) rt: TokenStream,
    pub(super) ident: &'a Ident,
    pub(super) names: Names,
    /// The name of the shadow's type.
    pub(super) shadow: Ident,
    pub(super) all: Vec<Field>,
    pub(super) synced: Vec<Synced>,
}

/// A field that some player may see.
pub(super) struct Synced {
    pub(super) field: SyncedField,
    pub(super) shadow: Ident,
    /// Its place among the fields that some player may see.
    pub(super) place: usize,
    /// Its bit in a patch's mask.
    pub(super) bit: u64,
}

pub(super) struct SyncedField {
    pub(super) member: TokenStream,
    pub(super) name: String,
    /// The type that is synced: the field's own, or its form on the wire.
    pub(super) of: TokenStream,
    pub(super) owner: bool,
    pub(super) form: Form,
    pub(super) view: Option<Look>,
}

/// A view in generated code.
pub(super) struct Look {
    /// The implementation of `Viewed`.
    pub(super) by: TokenStream,
    /// Whether the field is a map, judging by the name of its type.
    pub(super) by_entry: bool,
    pub(super) rule: Rule,
    pub(super) viewer: TokenStream,
    /// The type of that field.
    pub(super) viewer_of: syn::Type,
    pub(super) watch: Ident,
}

/// The rule of a view.
pub(super) enum Rule {
    /// The function `path`, which the attribute names. The generated function `name` calls it; see
    /// `functions.rs`.
    Function { path: Path, name: Ident },
    /// A generated type that implements `Placing`.
    Place { name: Ident },
}

/// The form in which a field's value is synced.
pub(super) enum Form {
    /// The value itself.
    Plain,
    /// The result of the function that the attribute names. The generated function `name` calls it;
    /// see `functions.rs`.
    Mask { function: Path, name: Ident },
    /// A number of steps.
    Quantized,
}

/// A map that views look at.
pub(super) struct Watched {
    pub(super) name: Ident,
    pub(super) member: TokenStream,
    /// Whether it is compared with its own shadow.
    pub(super) compared: bool,
}

impl SyncedField {
    pub(super) fn of_shadow(&self, rt: &TokenStream) -> TokenStream {
        let compared = self.compared(rt);
        quote!(#compared::Shadow)
    }

    /// The type that compares it with its shadow.
    pub(super) fn compared(&self, rt: &TokenStream) -> TokenStream {
        let of = &self.of;
        match &self.view {
            Some(Look { by, .. }) => quote!(<#by as #rt::Viewed>),
            None => quote!(<#of as #rt::Compare>),
        }
    }

    /// An expression that borrows the synced value from `self`.
    pub(super) fn borrowed(&self, mutably: bool) -> TokenStream {
        let Self { member, of, .. } = self;
        let reference = if mutably { quote!(&mut) } else { quote!(&) };
        match &self.form {
            Form::Plain => quote!(#reference self.#member),
            Form::Mask { name, .. } => quote!(#reference #name(&self.#member)),
            Form::Quantized => quote!(#reference <#of>::of(self.#member)),
        }
    }

    /// The same for a copy, whose value is already masked.
    pub(super) fn borrowed_plainly(&self) -> TokenStream {
        let Self { member, of, .. } = self;
        match &self.form {
            Form::Plain | Form::Mask { .. } => quote!(&self.#member),
            Form::Quantized => quote!(&<#of>::of(self.#member)),
        }
    }

    /// The digest of the value in the copy of a player who does not see the field.
    pub(super) fn default_digest(&self, rt: &TokenStream) -> TokenStream {
        let of = &self.of;
        match self.form {
            Form::Plain | Form::Mask { .. } => quote!(#rt::default_digest::<#of>()),
            Form::Quantized => {
                let default = quote!(&<#of>::of(::std::default::Default::default()));
                quote!(<#of as #rt::Compare>::digest(#default, #rt::Part::All))
            }
        }
    }

    /// The same, if it has no weight in the copy's digest. In a map with a view, each entry counts.
    pub(super) fn uncounted_digest(&self, rt: &TokenStream) -> Option<TokenStream> {
        let by_entry = self.view.as_ref().is_some_and(|look| look.by_entry);
        (self.is_private() && !by_entry).then(|| self.default_digest(rt))
    }

    /// Whether only some who see the struct see it.
    pub(super) fn is_private(&self) -> bool {
        self.owner || self.view.is_some()
    }

    /// Statements that `read` the synced value into the member of `this`.
    pub(super) fn read_into(&self, read: impl Fn(TokenStream) -> TokenStream) -> TokenStream {
        let Self { member, of, .. } = self;
        match self.form {
            Form::Plain | Form::Mask { .. } => {
                let read = read(quote!(&mut this.#member));
                quote!(#read;)
            }
            Form::Quantized => {
                let read = read(quote!(&mut steps));
                quote! {
                    let mut steps = <#of>::of(this.#member);
                    #read;
                    this.#member = steps.value();
                }
            }
        }
    }
}

impl<'a> Tree<'a> {
    pub(super) fn new(input: &'a DeriveInput, all: Vec<Field>) -> syn::Result<Self> {
        let rt = crate::rt();
        let names = Names::new(input);
        let synced: Vec<Synced> = all
            .iter()
            .filter(|field| field.policy.is_synced())
            .enumerate()
            .map(|(place, field)| {
                let (of, form) = wire_form(&rt, &names, field);
                Ok(Synced {
                    field: SyncedField {
                        member: field.member.clone(),
                        name: field.name.clone(),
                        of,
                        owner: field.policy == Policy::Owner,
                        form,
                        view: field
                            .view
                            .as_ref()
                            .map(|view| look(&rt, &names, &all, field, view))
                            .transpose()?,
                    },
                    shadow: format_ident!("field_{place}"),
                    place,
                    bit: 1_u64.checked_shl(place as u32).unwrap_or(0),
                })
            })
            .collect::<syn::Result<_>>()?;
        if synced.len() > FIELDS_MAX {
            let message = format!(
                "{} has {} fields that players see; the maximum is {FIELDS_MAX}: group some of them in another struct",
                input.ident,
                synced.len()
            );
            return Err(syn::Error::new_spanned(&input.ident, message));
        }
        let shadow = names.fresh("Shadow");
        Ok(Self { rt, ident: &input.ident, names, shadow, all, synced })
    }

    /// The types that say how numbers are quantized.
    pub(super) fn steps(&self) -> TokenStream {
        let rt = &self.rt;
        self.all.iter().filter_map(|field| Some((field, field.quantize.as_ref()?))).map(|(field, quantize)| {
            let (name, step, angle) = (steps_name(&self.names, field), &quantize.step, quantize.angle);
            let range = quantize.range.as_ref().map(|(least, most)| {
                quote!(const RANGE: ::std::option::Option<(f64, f64)> = ::std::option::Option::Some((#least, #most));)
            });
            quote! {
                pub struct #name;
                impl #rt::Quantize for #name {
                    const STEP: f64 = #step;
                    const ANGLE: bool = #angle;
                    #range
                }
            }
        }).collect()
    }

    /// The types that say who sees what by place.
    pub(super) fn rules(&self) -> TokenStream {
        let rt = &self.rt;
        let rules = self.synced.iter().filter_map(|Synced { field, .. }| {
            let Look { rule: Rule::Place { name }, viewer_of, .. } = field.view.as_ref()? else {
                return None;
            };
            let written = self.all.iter().find(|written| written.name == field.name)?;
            let Decides::Place(placed) = &written.view.as_ref()?.decides else { return None };
            let of = &field.of;
            let items = [quote!(#of), quote!(#viewer_of)]
                .map(|map| quote!(<#rt::ByEntry<#map> as #rt::Decided>::Item));
            Some(placed.rule(rt, name, items, |base| self.names.fresh(base)))
        });
        rules.collect()
    }

    pub(super) fn open(&self) -> impl Iterator<Item = &Synced> {
        self.synced.iter().filter(|synced| !synced.field.is_private())
    }

    /// The fields that not everyone sees.
    pub(super) fn owned(&self) -> impl Iterator<Item = &Synced> {
        self.synced.iter().filter(|synced| synced.field.is_private())
    }

    pub(super) fn views(&self) -> impl Iterator<Item = (&Synced, &Look)> {
        self.synced.iter().filter_map(|synced| Some((synced, synced.field.view.as_ref()?)))
    }

    /// The maps that views look at, each once.
    pub(super) fn watches(&self) -> Vec<Watched> {
        let mut watches: Vec<Watched> = Vec::new();
        for (_, look) in self.views() {
            if watches.iter().all(|watch| watch.name != look.watch) {
                let compared =
                    |field: &Field| field.policy != Policy::Hidden && field.mask.is_none();
                let of = self
                    .all
                    .iter()
                    .find(|field| look.watch == format_ident!("watch_{}", field.place));
                watches.push(Watched {
                    name: look.watch.clone(),
                    member: look.viewer.clone(),
                    compared: of.is_some_and(compared),
                });
            }
        }
        watches
    }

    pub(super) fn mask_bytes(&self) -> usize {
        self.synced.len().div_ceil(8)
    }

    pub(super) fn constants(&self) -> TokenStream {
        let rt = &self.rt;
        let unowned = self.synced.iter().map(|Synced { field, .. }| {
            let SyncedField { of, owner, name, view, .. } = field;
            let ident = self.ident;
            if let Some(Look { by_entry, viewer, viewer_of, .. }) = view {
                let hysteresis = format!(
                    "the field `{name}` of `{ident}` has a view, and in it is a view with `hysteresis`. Who sees something by that \
                     depends on who saw it before, so it would reveal what happened out of view: remove one of the two"
                );
                let no_players = format!(
                    "the viewers of the field `{name}` of `{ident}` are in `{viewer}`, which is not keyed by player: name a map keyed by PlayerId"
                );
                let alias = format!(
                    "the field `{name}` of `{ident}` has a view, and its type is an alias of Map: write `Map<…>`, so that the view \
                     decides entry by entry"
                );
                return quote!({
                    ::std::assert!(<#viewer_of as #rt::Viewers>::ARE_PLAYERS, #no_players);
                    ::std::assert!(#by_entry || !<#of as #rt::Describe>::IS_MAP, #alias);
                    ::std::assert!(!<#of as #rt::Describe>::HYSTERESIS, #hysteresis);
                    <#of as #rt::Describe>::UNOWNED
                });
            }
            if !owner {
                // If its type can't be synced, the compiler points to the field.
                return quote_spanned!(of.span()=> <#of as #rt::Describe>::UNOWNED);
            }
            let message = format!(
                "the field `{name}` of `{ident}` has `#[sync(owner)]`, but no owner: put `{ident}` into a map keyed by \
                 PlayerId, or make the field itself such a map"
            );
            quote! {
                if <#of as #rt::Describe>::KEYED_BY_PLAYER {
                    <#of as #rt::Describe>::UNOWNED
                } else {
                    ::std::option::Option::Some(#message)
                }
            }
        });
        let has_owned = any(self.synced.iter().map(|synced| {
            let of = &synced.field.of;
            if synced.field.is_private() {
                quote!(true)
            } else {
                quote!(<#of as #rt::Describe>::HAS_OWNED)
            }
        }));
        let nested_owners = any(self.synced.iter().map(|synced| {
            let of = &synced.field.of;
            if synced.field.view.is_some() {
                return quote!(true); // anyone may see it
            }
            let keyed =
                synced.field.owner.then(|| quote!(<#of as #rt::Describe>::KEYED_BY_PLAYER ||));
            quote!(#keyed <#of as #rt::Describe>::NESTED_OWNERS)
        }));
        let hysteresis = any(self.synced.iter().map(|Synced { field, .. }| match &field.view {
            Some(Look { rule: Rule::Place { name }, .. }) => {
                quote!(<#name as #rt::Placing>::HYSTERESIS > 0.0)
            }
            _ => {
                let of = &field.of;
                quote!(<#of as #rt::Describe>::HYSTERESIS)
            }
        }));
        let placed = any(self.synced.iter().map(|Synced { field, .. }| match &field.view {
            Some(Look { rule: Rule::Place { .. }, .. }) => quote!(true),
            _ => {
                let of = &field.of;
                quote!(<#of as #rt::Describe>::PLACED)
            }
        }));
        let plain = self.synced.iter().map(|synced| match &synced.field {
            SyncedField { view: Some(_), .. } => quote!(false),
            SyncedField { of, .. } => quote!(<#of as #rt::Describe>::PLAIN),
        });
        let plain = quote!(true #(&& #plain)*);
        let reports = self.synced.iter().map(|Synced { field, .. }| {
            let of = &field.of;
            match field {
                SyncedField { view: Some(_), .. } => quote!(false),
                SyncedField { owner: true, .. } => quote! {
                    <#of as #rt::Describe>::KEYED_BY_PLAYER && <#of as #rt::Describe>::REPORTS
                },
                _ => quote!(<#of as #rt::Describe>::REPORTS),
            }
        });
        let reports = quote!(true #(&& #reports)*);
        let open_only =
            self.synced.iter().all(|synced| !synced.field.is_private()) && !self.synced.is_empty();
        let fields = self.synced.iter().map(|synced| &synced.field.of);
        let fixed = if open_only {
            quote!(true #(&& <#fields as #rt::Describe>::FIXED)*)
        } else {
            quote!(false)
        };
        quote! {
            const UNOWNED: ::std::option::Option<&'static str> = #rt::first(&[#(#unowned),*]);
            const HAS_OWNED: bool = #has_owned;
            const NESTED_OWNERS: bool = #nested_owners;
            const HYSTERESIS: bool = #hysteresis;
            const PLACED: bool = #placed;
            const PLAIN: bool = #plain;
            const REPORTS: bool = #reports;
            const COLUMN: bool = <Self as #rt::Describe>::FIXED;
            const FIXED: bool = #fixed;
        }
    }

    pub(super) fn schema(&self) -> TokenStream {
        let rt = &self.rt;
        let name = plain_name(self.ident);
        let mut synced = self.synced.iter();
        let fields = self.all.iter().filter(|field| field.policy != Policy::Skip).map(|field| {
            let name = &field.name;
            let (of, _) = wire_form(rt, &self.names, field);
            let synced = if field.policy == Policy::Hidden { None } else { synced.next() };
            let default_digest = match synced.and_then(|synced| synced.field.uncounted_digest(rt)) {
                Some(digest) => quote!(#rt::explicit_default_digest(&of, #digest)),
                None => quote!(::std::option::Option::None),
            };
            let policy = match field.policy {
                Policy::Everyone => quote!(Everyone),
                Policy::Owner => quote!(Owner),
                Policy::View => quote!(View),
                Policy::Hidden | Policy::Skip => quote!(Hidden),
            };
            quote!({
                let of = <#of as #rt::Describe>::shape();
                let default_digest = #default_digest;
                #rt::schema::Field { name: ::std::borrow::Cow::Borrowed(#name), policy: #rt::schema::Policy::#policy, default_digest, of }
            })
        });
        quote! {
            fn shape() -> #rt::schema::Type {
                #rt::schema::Type::Struct(#rt::schema::Struct { name: ::std::borrow::Cow::Borrowed(#name), fields: ::std::vec![#(#fields),*] })
            }
        }
    }
}

/// The synced type of a field, and how its value becomes that.
pub(super) fn wire_form(rt: &TokenStream, names: &Names, field: &Field) -> (TokenStream, Form) {
    let of = &field.of;
    match (&field.mask, &field.quantize) {
        (_, Some(_)) => {
            let steps = steps_name(names, field);
            (quote!(#rt::Quantized<#of, #steps>), Form::Quantized)
        }
        (Some(function), None) => {
            let name = names.fresh(&format!("mask_{}", field.place));
            (quote!(#of), Form::Mask { function: function.clone(), name })
        }
        (None, None) => (quote!(#of), Form::Plain),
    }
}

fn look(
    rt: &TokenStream,
    names: &Names,
    all: &[Field],
    field: &Field,
    view: &View,
) -> syn::Result<Look> {
    let (of, viewer) = (&field.of, &view.viewer);
    let rule = match &view.decides {
        Decides::Function(path) => {
            let name = names.fresh(&format!("sees_{}", field.place));
            Rule::Function { path: path.clone(), name }
        }
        Decides::Place(_) => Rule::Place { name: names.fresh(&format!("Rule_{}", field.place)) },
    };
    let by = match &rule {
        Rule::Place { name } => quote!(#rt::ByEntry<#of, #rt::Near<#name>>),
        Rule::Function { .. } if view.by_entry => quote!(#rt::ByEntry<#of>),
        Rule::Function { .. } => quote!(#rt::AsWhole<#of>),
    };
    let Some(viewers) = all.iter().find(|other| other.name == plain_name(viewer)) else {
        let message = format!(
            "this struct has no field `{viewer}`: name the map, keyed by player, whose entries the function gets"
        );
        return Err(syn::Error::new_spanned(viewer, message));
    };
    if viewers.policy == Policy::Skip {
        let message = format!(
            "the field `{viewer}` is skipped, so it is no state and a view can't depend on it: make it `hidden` instead"
        );
        return Err(syn::Error::new_spanned(viewer, message));
    }
    Ok(Look {
        by,
        by_entry: view.by_entry,
        rule,
        viewer: quote!(#viewer),
        viewer_of: viewers.of.clone(),
        watch: format_ident!("watch_{}", viewers.place),
    })
}

fn steps_name(names: &Names, field: &Field) -> Ident {
    names.fresh(&format!("Steps_{}", field.place))
}
