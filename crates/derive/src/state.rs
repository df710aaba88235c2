//! `#[derive(State)]`: trees that are kept in step.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Data, DeriveInput, Ident};

use crate::fields::{Field, Policy, View, any, fields, plain_name, refuse_generics};

/// The most fields of one struct that players may see: a patch marks them in one 64-bit mask.
const FIELDS_MAX: usize = 64;

/// Implements `State`: for a struct field by field, for an enum as a whole value.
pub(crate) fn expand_state(input: &DeriveInput) -> syn::Result<TokenStream> {
    refuse_generics(input)?;
    match &input.data {
        Data::Struct(data) => for_struct(input, fields(&data.fields)?),
        Data::Enum(_) => Ok(whole_value(&input.ident)),
        Data::Union(_) => Err(syn::Error::new_spanned(input, "a union can't be kept in step: use an enum")),
    }
}

fn for_struct(input: &DeriveInput, all: Vec<Field>) -> syn::Result<TokenStream> {
    let tree = Tree::new(input, all)?;
    let Tree { rt, ident, .. } = &tree;
    let shadow_fields = tree.synced.iter().map(|synced| {
        let (shadow, of) = (&synced.shadow, synced.field.of_shadow(rt));
        quote!(#shadow: #of)
    });
    let watches = tree.watches();
    let watch_fields = watches.iter().map(|watch| &watch.name);
    let steps = tree.steps();
    let constants = tree.constants();
    let schema = tree.schema();
    let compare = tree.compare();
    let write = tree.write();
    let columns = tree.columns();
    let json = tree.json();
    let read = tree.read();
    let view = tree.view();
    let digest = tree.digest();
    Ok(quote! {
        const _: () = {
            #steps

            /// What was last synced.
            pub struct Shadow {
                stamps: #rt::Stamps,
                #(#shadow_fields,)*
                #(#watch_fields: #rt::Watch,)*
            }

            #[automatically_derived]
            impl #rt::State for #ident {
                type Shadow = Shadow;
                #constants
                #schema
                #compare
                #write
                #columns
                #json
                #read
                #digest
                #view
            }
        };
    })
}

/// The type of a field that is kept in step, and how its value becomes that.
fn wire_form(rt: &TokenStream, field: &Field) -> (TokenStream, Form) {
    let of = &field.of;
    match (&field.mask, &field.quantize) {
        (_, Some(_)) => {
            let steps = steps_name(field);
            (quote!(#rt::Quantized<#of, #steps>), Form::Quantized)
        }
        (Some(function), None) => (quote!(#of), Form::Mask(quote!(#function))),
        (None, None) => (quote!(#of), Form::Plain),
    }
}

fn look(rt: &TokenStream, all: &[Field], field: &Field, view: &View) -> syn::Result<Look> {
    let (of, viewer) = (&field.of, &view.viewer);
    let by = if view.by_entry { quote!(#rt::ByEntry<#of>) } else { quote!(#rt::AsWhole<#of>) };
    if !all.iter().any(|other| other.name == plain_name(viewer)) {
        let message = format!(
            "no field of this struct is called `{viewer}`: name the map, keyed by player, that holds what the function is to know of each viewer"
        );
        return Err(syn::Error::new_spanned(viewer, message));
    }
    let watch = format_ident!("watch_{}", plain_name(viewer));
    Ok(Look { by, function: view.function.clone(), viewer: quote!(#viewer), watch })
}

fn steps_name(field: &Field) -> Ident {
    format_ident!("Steps_{}", field.name)
}

struct Tree<'a> {
    rt: TokenStream,
    ident: &'a Ident,
    all: Vec<Field>,
    synced: Vec<Synced>,
}

/// A field that some player may see.
struct Synced {
    field: SyncedField,
    shadow: Ident,
    /// Its bit in a patch's mask.
    bit: u64,
}

struct SyncedField {
    member: TokenStream,
    name: String,
    /// The type that is kept in step: the field's own, or what stands for it on the wire.
    of: TokenStream,
    owner: bool,
    form: Form,
    view: Option<Look>,
}

/// A view, as the generated code does it.
struct Look {
    /// The type that does it.
    by: TokenStream,
    function: syn::Path,
    viewer: TokenStream,
    watch: Ident,
}

/// How a field's value becomes what is kept in step.
enum Form {
    /// It is that.
    Plain,
    /// By a function.
    Mask(TokenStream),
    /// As a number of steps.
    Quantized,
}

/// A map that views look at.
struct Watched {
    name: Ident,
    member: TokenStream,
    /// It is compared with a shadow of its own.
    compared: bool,
}

impl SyncedField {
    fn of_shadow(&self, rt: &TokenStream) -> TokenStream {
        let of = &self.of;
        match &self.view {
            Some(Look { by, .. }) => quote!(<#by as #rt::Viewed>::Shadow),
            None => quote!(<#of as #rt::State>::Shadow),
        }
    }

    /// An expression that borrows what is kept in step out of `self`.
    fn borrowed(&self, mutably: bool) -> TokenStream {
        let Self { member, of, .. } = self;
        let reference = if mutably { quote!(&mut) } else { quote!(&) };
        match &self.form {
            Form::Plain => quote!(#reference self.#member),
            Form::Mask(function) => quote!(#reference {
                let mask: fn(&#of) -> #of = #function;
                mask(&self.#member)
            }),
            Form::Quantized => quote!(#reference <#of>::of(self.#member)),
        }
    }

    /// The same of a copy, in which a mask has had its say already.
    fn borrowed_plainly(&self) -> TokenStream {
        let Self { member, of, .. } = self;
        match &self.form {
            Form::Plain | Form::Mask(_) => quote!(&self.#member),
            Form::Quantized => quote!(&<#of>::of(self.#member)),
        }
    }

    /// What stands for it in the copy of one who does not see it.
    fn default(&self) -> TokenStream {
        let of = &self.of;
        match self.form {
            Form::Plain | Form::Mask(_) => quote!(&<#of as ::std::default::Default>::default()),
            Form::Quantized => quote!(&<#of>::of(::std::default::Default::default())),
        }
    }

    /// Not everyone sees it who sees the struct.
    fn is_private(&self) -> bool {
        self.owner || self.view.is_some()
    }

    /// Statements that apply `read`, of what is kept in step, to the member of `this`.
    fn read_into(&self, read: impl Fn(TokenStream) -> TokenStream) -> TokenStream {
        let Self { member, of, .. } = self;
        match self.form {
            Form::Plain | Form::Mask(_) => {
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
    fn new(input: &'a DeriveInput, all: Vec<Field>) -> syn::Result<Self> {
        let rt = crate::rt();
        let synced: Vec<Synced> = all
            .iter()
            .filter(|field| field.policy != Policy::Hidden)
            .enumerate()
            .map(|(place, field)| {
                let (of, form) = wire_form(&rt, field);
                Ok(Synced {
                    field: SyncedField {
                        member: field.member.clone(),
                        name: field.name.clone(),
                        of,
                        owner: field.policy == Policy::Owner,
                        form,
                        view: field.view.as_ref().map(|view| look(&rt, &all, field, view)).transpose()?,
                    },
                    shadow: format_ident!("field_{place}"),
                    bit: 1_u64.checked_shl(place as u32).unwrap_or(0),
                })
            })
            .collect::<syn::Result<_>>()?;
        if synced.len() > FIELDS_MAX {
            let message = format!(
                "{} has {} fields that players see, and at most {FIELDS_MAX} are possible: group some into a struct of their own",
                input.ident,
                synced.len()
            );
            return Err(syn::Error::new_spanned(&input.ident, message));
        }
        Ok(Self { rt, ident: &input.ident, all, synced })
    }

    /// The types that say how numbers are quantised.
    fn steps(&self) -> TokenStream {
        let rt = &self.rt;
        self.all.iter().filter_map(|field| Some((field, field.quantize.as_ref()?))).map(|(field, quantize)| {
            let (name, step, angle) = (steps_name(field), &quantize.step, quantize.angle);
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

    fn open(&self) -> impl Iterator<Item = &Synced> {
        self.synced.iter().filter(|synced| !synced.field.is_private())
    }

    /// Those that not everyone sees.
    fn owned(&self) -> impl Iterator<Item = &Synced> {
        self.synced.iter().filter(|synced| synced.field.is_private())
    }

    fn views(&self) -> impl Iterator<Item = (&Synced, &Look)> {
        self.synced.iter().filter_map(|synced| Some((synced, synced.field.view.as_ref()?)))
    }

    /// The maps that views look at, each once.
    fn watches(&self) -> Vec<Watched> {
        let mut watches: Vec<Watched> = Vec::new();
        for (_, look) in self.views() {
            if watches.iter().all(|watch| watch.name != look.watch) {
                let compared = |field: &Field| field.policy != Policy::Hidden && field.mask.is_none();
                let of = self.all.iter().find(|field| look.watch == format_ident!("watch_{}", field.name));
                watches.push(Watched {
                    name: look.watch.clone(),
                    member: look.viewer.clone(),
                    compared: of.is_some_and(compared),
                });
            }
        }
        watches
    }

    fn mask_bytes(&self) -> usize {
        self.synced.len().div_ceil(8)
    }

    fn constants(&self) -> TokenStream {
        let rt = &self.rt;
        let unowned = self.synced.iter().map(|Synced { field, .. }| {
            let SyncedField { of, owner, name, .. } = field;
            if !owner {
                return quote!(<#of as #rt::State>::UNOWNED);
            }
            let ident = self.ident;
            let message = format!(
                "the field `{name}` of `{ident}` is its owner's, and here it has none: put `{ident}` into a map keyed by \
                 PlayerId, or make the field itself such a map"
            );
            quote! {
                if <#of as #rt::State>::KEYED_BY_PLAYER {
                    <#of as #rt::State>::UNOWNED
                } else {
                    ::std::option::Option::Some(#message)
                }
            }
        });
        let has_owned = any(self.synced.iter().map(|synced| {
            let of = &synced.field.of;
            if synced.field.is_private() { quote!(true) } else { quote!(<#of as #rt::State>::HAS_OWNED) }
        }));
        let nested_owners = any(self.synced.iter().map(|synced| {
            let of = &synced.field.of;
            if synced.field.view.is_some() {
                return quote!(true); // anyone may see it
            }
            let keyed = synced.field.owner.then(|| quote!(<#of as #rt::State>::KEYED_BY_PLAYER ||));
            quote!(#keyed <#of as #rt::State>::NESTED_OWNERS)
        }));
        let plain = self.synced.iter().map(|synced| match &synced.field {
            SyncedField { view: Some(_), .. } => quote!(false),
            SyncedField { of, .. } => quote!(<#of as #rt::State>::PLAIN),
        });
        let plain = quote!(true #(&& #plain)*);
        let open_only =
            self.synced.iter().all(|synced| !synced.field.is_private()) && !self.synced.is_empty();
        let fields = self.synced.iter().map(|synced| &synced.field.of);
        let fixed =
            if open_only { quote!(true #(&& <#fields as #rt::State>::FIXED)*) } else { quote!(false) };
        quote! {
            const UNOWNED: ::std::option::Option<&'static str> = #rt::first(&[#(#unowned),*]);
            const HAS_OWNED: bool = #has_owned;
            const NESTED_OWNERS: bool = #nested_owners;
            const PLAIN: bool = #plain;
            const COLUMN: bool = <Self as #rt::State>::FIXED;
            const FIXED: bool = #fixed;
        }
    }

    fn schema(&self) -> TokenStream {
        let rt = &self.rt;
        let name = plain_name(self.ident);
        let fields = self.all.iter().map(|field| {
            let name = &field.name;
            let (of, _) = wire_form(rt, field);
            let policy = match field.policy {
                Policy::Everyone => quote!(Everyone),
                Policy::Owner => quote!(Owner),
                Policy::View => quote!(View),
                Policy::Hidden => quote!(Hidden),
            };
            quote!(#rt::schema::Field {
                name: #name.into(),
                policy: #rt::schema::Policy::#policy,
                of: <#of as #rt::State>::schema(),
            })
        });
        quote! {
            fn schema() -> #rt::schema::Type {
                #rt::schema::Type::Struct(#rt::schema::Struct { name: #name.into(), fields: ::std::vec![#(#fields),*] })
            }
        }
    }

    fn compare(&self) -> TokenStream {
        let rt = &self.rt;
        let same = self.open().map(|Synced { field, shadow, .. }| {
            let (of, value) = (&field.of, field.borrowed(false));
            quote!(&& <#of as #rt::State>::same_shared(#value, &shadow.#shadow, tracking))
        });
        let looks_of_open = self.looks_of_open();
        let binds = self.synced.iter().map(|Synced { field, shadow, .. }| {
            let (of, value) = (&field.of, field.borrowed(true));
            match &field.view {
                Some(Look { by, .. }) => quote!(#shadow: <#by as #rt::Viewed>::bind(#value, now)),
                None => quote!(#shadow: <#of as #rt::State>::bind(#value, now)),
            }
        });
        let diffs = self.synced.iter().map(|Synced { field, shadow, .. }| {
            let (of, value) = (&field.of, field.borrowed(true));
            let to_owner = field.owner.then(|| quote!(.to_owner()));
            match &field.view {
                Some(Look { by, .. }) => {
                    quote!(changed |= <#by as #rt::Viewed>::diff(#value, &mut shadow.#shadow, step);)
                }
                None => {
                    quote!(changed |= <#of as #rt::State>::diff(#value, &mut shadow.#shadow, step)#to_owner;)
                }
            }
        });
        let watches = self.watches();
        let watch_names: Vec<&Ident> = watches.iter().map(|watch| &watch.name).collect();
        let touches = self.views().map(|(Synced { field, shadow, .. }, Look { by, .. })| {
            let (member, touched) = (&field.member, format_ident!("touched_{shadow}"));
            quote!(let #touched = <#by as #rt::Viewed>::touches(&self.#member, &shadow.#shadow, step);)
        });
        let moves = watches.iter().map(
            |Watched { name, member, .. }| quote!(let #name = shadow.#name.touches(&self.#member, step);),
        );
        let look = |synced: &Synced,
                    look: &Look,
                    touched: TokenStream,
                    moved: TokenStream,
                    now: TokenStream| {
            let Look { by, function, viewer, .. } = look;
            let (member, shadow) = (&synced.field.member, &synced.shadow);
            quote! {
                <#by as #rt::Viewed>::look(&self.#member, &mut shadow.#shadow, &#touched, &self.#viewer, &#moved, #function, #now)
            }
        };
        let first_looks = self.views().map(|(synced, view)| {
            let all = quote!(#rt::Touches::All);
            let look = look(synced, view, all.clone(), all, quote!(now));
            quote!(#look;)
        });
        let looks = self.views().map(|(synced, view)| {
            let (touched, moved) = (format_ident!("touched_{}", synced.shadow), &view.watch);
            let look = look(synced, view, quote!(#touched), quote!(#moved), quote!(step.now));
            quote!(changed |= #look;)
        });
        let notes: Vec<TokenStream> = watches
            .iter()
            .map(|Watched { name, member, compared }| {
                if *compared {
                    quote!(shadow.#name.note(&self.#member);)
                } else {
                    quote!(shadow.#name.note_uncompared(&mut self.#member);)
                }
            })
            .collect();
        quote! {
            fn bind(&mut self, now: u64) -> Shadow {
                #[allow(unused_mut)]
                let mut shadow = Shadow {
                    stamps: #rt::Stamps::new(now, <Self as #rt::State>::HAS_OWNED),
                    #(#binds,)*
                    #(#watch_names: ::std::default::Default::default(),)*
                };
                #(#first_looks)*
                #(#notes)*
                shadow
            }
            #[inline]
            fn diff(&mut self, shadow: &mut Shadow, step: #rt::Step) -> #rt::Changed {
                let mut changed = #rt::Changed::NO;
                #(#moves)*
                #(#touches)*
                #(#diffs)*
                #(#looks)*
                #(#notes)*
                shadow.stamps.note(changed, step.now);
                changed
            }
            fn same_shared(&self, shadow: &Shadow, tracking: #rt::Tracking) -> bool {
                let _ = (shadow, tracking);
                true #(#same)*
            }
            fn look(&self) -> u64 {
                #[allow(unused_mut)]
                let mut sum = 0_u64;
                #(#looks_of_open)*
                sum
            }
            #[inline]
            fn stamps(shadow: &Shadow) -> #rt::Stamps {
                shadow.stamps
            }
        }
    }

    /// Statements that add up what everyone sees, as in the digest of what was last synced.
    fn looks_of_open(&self) -> Vec<TokenStream> {
        let rt = &self.rt;
        let weighed = |(place, Synced { field, .. }): (usize, &Synced)| {
            let (of, value, place) = (&field.of, field.borrowed(false), place as u64);
            quote! {
                sum = sum.wrapping_add(
                    ::core::primitive::u64::wrapping_mul(<#of as #rt::State>::look(#value), const { #rt::weight(#place) }),
                );
            }
        };
        self.synced.iter().enumerate().filter(|(_, synced)| !synced.field.is_private()).map(weighed).collect()
    }

    fn write(&self) -> TokenStream {
        let rt = &self.rt;
        let mask_bytes = self.mask_bytes();
        let fulls = self.open().map(|Synced { field, shadow, .. }| {
            let of = &field.of;
            quote!(<#of as #rt::State>::write_full(&shadow.#shadow, lens, out);)
        });
        // Every value takes a byte at least, so that counts can be checked against what is left.
        let pad = self.open().next().is_none().then(|| quote!(out.push(0);));
        let owner_writes: Vec<TokenStream> = self
            .owned()
            .map(|Synced { field, shadow, bit }| {
                let of = &field.of;
                let write = match &field.view {
                    Some(Look { by, .. }) => quote!(<#by as #rt::Viewed>::write_patch),
                    None => quote!(<#of as #rt::State>::write_owner_patch),
                };
                quote! {
                    let start = out.len();
                    if #write(&shadow.#shadow, lens, out) {
                        mask |= #bit;
                    } else {
                        out.truncate(start);
                    }
                }
            })
            .collect();
        let put_mask =
            quote!(out[mask_at..mask_at + #mask_bytes].copy_from_slice(&mask.to_le_bytes()[..#mask_bytes]););
        let owner_full = (!owner_writes.is_empty()).then(|| {
            quote! {
                if lens.part == #rt::Part::All {
                    let lens = #rt::Lens { since: 0, ..lens };
                    let mask_at = out.len();
                    out.extend_from_slice(&[0; #mask_bytes]);
                    let mut mask = 0_u64;
                    #(#owner_writes)*
                    #put_mask
                }
            }
        });
        let open_writes = self.open().map(|Synced { field, shadow, bit }| {
            let of = &field.of;
            quote! {
                if <#of as #rt::State>::stamps(&shadow.#shadow).after(lens) {
                    let start = out.len();
                    if <#of as #rt::State>::write_patch(&shadow.#shadow, lens, out) {
                        mask |= #bit;
                    } else {
                        out.truncate(start);
                    }
                }
            }
        });
        let owner_patch = (!owner_writes.is_empty()).then(|| {
            quote! {
                if lens.part != #rt::Part::Shared {
                    #(#owner_writes)*
                }
            }
        });
        quote! {
            fn write_full(shadow: &Shadow, lens: #rt::Lens, out: &mut ::std::vec::Vec<u8>) {
                let _ = (shadow, lens);
                #(#fulls)*
                #pad
                #owner_full
            }
            #[inline]
            fn write_patch(shadow: &Shadow, lens: #rt::Lens, out: &mut ::std::vec::Vec<u8>) -> bool {
                let _ = (shadow, lens);
                let mask_at = out.len();
                out.extend_from_slice(&[0; #mask_bytes]);
                let mut mask = 0_u64;
                #(#open_writes)*
                #owner_patch
                #put_mask
                mask != 0
            }
        }
    }

    fn columns(&self) -> TokenStream {
        let rt = &self.rt;
        let mask_bytes = self.mask_bytes();
        let known: u64 = self.open().fold(0, |mask, synced| mask | synced.bit);
        let keys = self.open().map(|Synced { field, shadow, bit }| {
            let of = &field.of;
            quote! {
                if <#of as #rt::State>::stamps(&shadow.#shadow).after(lens) {
                    if !<#of as #rt::State>::COLUMN {
                        return ::std::option::Option::None;
                    }
                    key |= #bit;
                }
            }
        });
        let writes = self.open().map(|Synced { field, shadow, bit }| {
            let of = &field.of;
            quote! {
                if key & #bit != 0 && <#of as #rt::State>::COLUMN {
                    let inner = move |place: usize| &at(place).#shadow;
                    // What changed in any of them is sent of all: it is so few bytes that it costs less than saying which.
                    let inner_key = (0..count).fold(0, |key, place| {
                        key | <#of as #rt::State>::column_key(inner(place), lens).unwrap_or(0)
                    });
                    <#of as #rt::State>::write_columns(count, inner, inner_key, lens, out);
                }
            }
        });
        let reads = self.open().map(|Synced { field, bit, .. }| {
            let SyncedField { member, of, form, .. } = field;
            let read = match form {
                Form::Plain | Form::Mask(_) => quote! {
                    let mut inner: ::std::vec::Vec<&mut #of> = targets.iter_mut().map(|target| &mut target.#member).collect();
                    <#of as #rt::State>::read_columns(&mut inner, reader)?;
                },
                Form::Quantized => quote! {
                    let mut steps: ::std::vec::Vec<#of> = targets.iter().map(|target| <#of>::of(target.#member)).collect();
                    <#of as #rt::State>::read_columns(&mut steps.iter_mut().collect::<::std::vec::Vec<_>>(), reader)?;
                    for (target, steps) in targets.iter_mut().zip(steps) {
                        target.#member = steps.value();
                    }
                },
            };
            quote!(if mask & #bit != 0 { #read })
        });
        let read_mask = self.read_mask(known);
        quote! {
            #[inline]
            fn column_key(shadow: &Shadow, lens: #rt::Lens) -> ::std::option::Option<u64> {
                if <Self as #rt::State>::HAS_OWNED && lens.part != #rt::Part::Shared {
                    return ::std::option::Option::None;
                }
                #[allow(unused_mut)]
                let mut key = 0_u64;
                let _ = shadow;
                #(#keys)*
                ::std::option::Option::Some(key)
            }
            fn write_columns<'a>(
                count: usize,
                at: impl Fn(usize) -> &'a Shadow + ::std::marker::Copy,
                key: u64,
                lens: #rt::Lens,
                out: &mut ::std::vec::Vec<u8>,
            ) {
                let _ = (count, at, lens);
                out.extend_from_slice(&key.to_le_bytes()[..#mask_bytes]);
                #(#writes)*
            }
            fn read_columns(
                targets: &mut [&mut Self],
                reader: &mut #rt::Reader<'_>,
            ) -> ::std::result::Result<(), #rt::DecodeError> {
                #read_mask
                let _ = targets;
                #(#reads)*
                ::std::result::Result::Ok(())
            }
        }
    }

    /// Reads `mask`, in which only bits of `known` may be set; `at` is where it stood.
    fn read_mask(&self, known: u64) -> TokenStream {
        let rt = &self.rt;
        let mask_bytes = self.mask_bytes();
        quote! {
            let at = reader.offset();
            let mut bytes = [0_u8; 8];
            bytes[..#mask_bytes].copy_from_slice(reader.take(#mask_bytes)?);
            let mask = u64::from_le_bytes(bytes);
            if mask & !#known != 0 {
                return ::std::result::Result::Err(
                    #rt::DecodeError::new(at, ::std::format!("the mask {mask:#x} marks fields that can't come here")),
                );
            }
        }
    }

    fn json(&self) -> TokenStream {
        let rt = &self.rt;
        let members = self.synced.iter().map(|Synced { field, shadow, .. }| {
            let SyncedField { name, of, owner, view, .. } = field;
            let value = if let Some(Look { by, .. }) = view {
                quote!(<#by as #rt::Viewed>::json_full(&shadow.#shadow, lens, out))
            } else if *owner {
                quote!(<#of as #rt::State>::json_owner_full(&shadow.#shadow, lens, out))
            } else {
                quote!({ <#of as #rt::State>::json_full(&shadow.#shadow, lens, out); true })
            };
            quote! {
                let start = out.len();
                if comma {
                    out.push(b',');
                }
                #rt::write_text(out, #name);
                out.push(b':');
                if #value {
                    comma = true;
                } else {
                    out.truncate(start);
                }
            }
        });
        let patches = self.synced.iter().map(|Synced { field, shadow, .. }| {
            let SyncedField { name, of, owner, view, .. } = field;
            let write = match view {
                Some(Look { by, .. }) => quote!(<#by as #rt::Viewed>::json_patch),
                None => quote!(<#of as #rt::State>::json_owner_patch),
            };
            if *owner || view.is_some() {
                quote! {
                    if lens.part != #rt::Part::Shared {
                        ops.member(#name, |ops| #write(&shadow.#shadow, lens, ops));
                    }
                }
            } else {
                quote! {
                    if <#of as #rt::State>::stamps(&shadow.#shadow).after(lens) {
                        ops.member(#name, |ops| <#of as #rt::State>::json_patch(&shadow.#shadow, lens, ops));
                    }
                }
            }
        });
        quote! {
            fn json_full(shadow: &Shadow, lens: #rt::Lens, out: &mut ::std::vec::Vec<u8>) {
                let lens = #rt::Lens { since: 0, ..lens };
                let _ = (shadow, lens);
                out.push(b'{');
                let mut comma = false;
                #(#members)*
                let _ = comma;
                out.push(b'}');
            }
            fn json_patch(shadow: &Shadow, lens: #rt::Lens, ops: &mut #rt::Ops<'_>) {
                let _ = (shadow, lens, &ops);
                #(#patches)*
            }
        }
    }

    fn read(&self) -> TokenStream {
        let rt = &self.rt;
        let known: u64 = self.synced.iter().fold(0, |mask, synced| mask | synced.bit);
        let fields = self.all.iter().map(|field| {
            let Field { member, policy, quantize, .. } = field;
            let (of, _) = wire_form(rt, field);
            let value = quantize.as_ref().map(|_| quote!(.value()));
            match policy {
                Policy::Everyone => quote!(#member: <#of as #rt::State>::read_full(reader, part)?#value),
                Policy::Owner | Policy::View | Policy::Hidden => {
                    quote!(#member: ::std::default::Default::default())
                }
            }
        });
        let pad = self.open().next().is_none().then(|| quote!(<() as #rt::Data>::decode(reader)?;));
        let read_mask = self.read_mask(known);
        let owner_reads: Vec<TokenStream> = self
            .owned()
            .map(|Synced { field, bit, .. }| {
                let of = &field.of;
                let read = match &field.view {
                    Some(Look { by, .. }) => quote!(<#by as #rt::Viewed>::read_patch),
                    None => quote!(<#of as #rt::State>::read_owner_patch),
                };
                let read = field.read_into(|place| quote!(#read(#place, reader)?));
                quote!(if mask & #bit != 0 { #read })
            })
            .collect();
        let owner_bits: u64 = self.owned().fold(0, |mask, synced| mask | synced.bit);
        let owner_full = (!owner_reads.is_empty()).then(|| {
            quote! {
                if part == #rt::Part::All {
                    #read_mask
                    #(#owner_reads)*
                }
            }
        });
        let open_reads = self.open().map(|Synced { field, bit, .. }| {
            let of = &field.of;
            let read =
                field.read_into(|place| quote!(<#of as #rt::State>::read_patch(#place, reader, part)?));
            quote!(if mask & #bit != 0 { #read })
        });
        let owner_patch = (!owner_reads.is_empty()).then(|| {
            quote! {
                if part == #rt::Part::Shared && mask & #owner_bits != 0 {
                    return ::std::result::Result::Err(
                        #rt::DecodeError::new(at, "a field that is its owner's alone came in the part that all share"),
                    );
                }
                #(#owner_reads)*
            }
        });
        quote! {
            fn read_full(reader: &mut #rt::Reader<'_>, part: #rt::Part) -> ::std::result::Result<Self, #rt::DecodeError> {
                #[allow(unused_mut)]
                let mut this = Self { #(#fields),* };
                #pad
                let _ = part;
                #owner_full
                ::std::result::Result::Ok(this)
            }
            fn read_patch(
                &mut self,
                reader: &mut #rt::Reader<'_>,
                part: #rt::Part,
            ) -> ::std::result::Result<(), #rt::DecodeError> {
                let this = self;
                let _ = (&this, part);
                #read_mask
                #(#open_reads)*
                #owner_patch
                ::std::result::Result::Ok(())
            }
        }
    }

    fn digest(&self) -> TokenStream {
        let rt = &self.rt;
        let weighed = |place: usize, digest: TokenStream| {
            let place = place as u64;
            quote!(sum = sum.wrapping_add(::core::primitive::u64::wrapping_mul(#digest, const { #rt::weight(#place) }));)
        };
        let of_copy = self.synced.iter().enumerate().map(|(place, Synced { field, .. })| {
            let (of, value) = (&field.of, field.borrowed_plainly());
            let digest = match &field.view {
                Some(Look { by, .. }) => quote!(<#by as #rt::Viewed>::copy_digest(#value)),
                None if field.owner => {
                    let default = field.default();
                    quote!(#rt::of_private(<#of as #rt::State>::digest(#value), <#of as #rt::State>::digest(#default)))
                }
                None => quote!(<#of as #rt::State>::digest(#value)),
            };
            weighed(place, digest)
        });
        let of_shadow = self.synced.iter().enumerate().map(|(place, Synced { field, shadow, .. })| {
            let of = &field.of;
            let digest = match &field.view {
                Some(Look { by, .. }) => quote!(<#by as #rt::Viewed>::shadow_digest(&shadow.#shadow, lens)),
                None if field.owner => {
                    let default = field.default();
                    quote!(match <#of as #rt::State>::owner_digest(&shadow.#shadow, lens) {
                        0 => 0,
                        digest => #rt::of_private(digest, <#of as #rt::State>::digest(#default)),
                    })
                }
                None => quote!(<#of as #rt::State>::shadow_digest(&shadow.#shadow, lens)),
            };
            weighed(place, digest)
        });
        quote! {
            fn digest(&self) -> u64 {
                #[allow(unused_mut)]
                let mut sum = 0_u64;
                #(#of_copy)*
                sum
            }
            fn shadow_digest(shadow: &Shadow, lens: #rt::Lens) -> u64 {
                let _ = (shadow, lens);
                #[allow(unused_mut)]
                let mut sum = 0_u64;
                #(#of_shadow)*
                sum
            }
        }
    }

    fn view(&self) -> TokenStream {
        let rt = &self.rt;
        let members = self.synced.iter().map(|Synced { field, .. }| {
            let SyncedField { name, of, owner, .. } = field;
            let value = field.borrowed(false);
            if let Some(Look { by, function, viewer, .. }) = &field.view {
                return quote! {
                    let viewer = self.#viewer.of_viewer(sight.viewer);
                    let sees = |value: &<#by as #rt::Viewed>::Item| viewer.is_some_and(|viewer| #function(value, viewer));
                    if let ::std::option::Option::Some(value) = <#by as #rt::Viewed>::view(#value, sight, sees) {
                        members.insert(#name.into(), value);
                    }
                };
            }
            if *owner {
                quote! {
                    if let ::std::option::Option::Some(value) = <#of as #rt::State>::owner_view(#value, sight) {
                        members.insert(#name.into(), value);
                    }
                }
            } else {
                quote!(members.insert(#name.into(), <#of as #rt::State>::view(#value, sight));)
            }
        });
        quote! {
            fn view(&self, sight: #rt::Sight) -> #rt::Value {
                let _ = sight;
                #[allow(unused_mut)]
                let mut members = #rt::JsonMap::new();
                #(#members)*
                #rt::Value::Object(members)
            }
        }
    }
}

/// What is compared and sent whole: an enum, or a key. It derives `Data` and `Clone` as well.
pub(crate) fn whole_value(ident: &Ident) -> TokenStream {
    let rt = crate::rt();
    quote! {
        #[automatically_derived]
        impl #rt::State for #ident {
            type Shadow = #rt::Leaf<Self>;

            const UNOWNED: ::std::option::Option<&'static str> = ::std::option::Option::None;
            const HAS_OWNED: bool = false;
            const NESTED_OWNERS: bool = false;
            const COLUMN: bool = true;
            const PLAIN: bool = true;

            fn schema() -> #rt::schema::Type {
                <Self as #rt::Data>::schema()
            }
            fn bind(&mut self, now: u64) -> Self::Shadow {
                #rt::Leaf::new(self, now)
            }
            fn diff(&mut self, shadow: &mut Self::Shadow, step: #rt::Step) -> #rt::Changed {
                shadow.diff(self, step)
            }
            fn same_shared(&self, shadow: &Self::Shadow, _: #rt::Tracking) -> bool {
                #rt::Data::same(shadow.value(), self)
            }
            fn look(&self) -> u64 {
                #rt::Data::digest(self)
            }
            fn stamps(shadow: &Self::Shadow) -> #rt::Stamps {
                shadow.stamps()
            }
            fn write_full(shadow: &Self::Shadow, _: #rt::Lens, out: &mut ::std::vec::Vec<u8>) {
                #rt::Data::encode(shadow.value(), out);
            }
            fn write_patch(shadow: &Self::Shadow, _: #rt::Lens, out: &mut ::std::vec::Vec<u8>) -> bool {
                #rt::Data::encode(shadow.value(), out);
                true
            }
            fn column_key(_: &Self::Shadow, _: #rt::Lens) -> ::std::option::Option<u64> {
                ::std::option::Option::Some(1)
            }
            fn json_full(shadow: &Self::Shadow, _: #rt::Lens, out: &mut ::std::vec::Vec<u8>) {
                #rt::Data::to_json(shadow.value(), out);
            }
            fn json_patch(shadow: &Self::Shadow, _: #rt::Lens, ops: &mut #rt::Ops<'_>) {
                ops.set(|out| #rt::Data::to_json(shadow.value(), out));
            }
            fn read_full(reader: &mut #rt::Reader<'_>, _: #rt::Part) -> ::std::result::Result<Self, #rt::DecodeError> {
                <Self as #rt::Data>::decode(reader)
            }
            fn read_patch(
                &mut self,
                reader: &mut #rt::Reader<'_>,
                _: #rt::Part,
            ) -> ::std::result::Result<(), #rt::DecodeError> {
                *self = <Self as #rt::Data>::decode(reader)?;
                ::std::result::Result::Ok(())
            }
            fn digest(&self) -> u64 {
                #rt::Data::digest(self)
            }
            fn shadow_digest(shadow: &Self::Shadow, lens: #rt::Lens) -> u64 {
                if lens.part == #rt::Part::Owned { 0 } else { #rt::Data::digest(shadow.value()) }
            }
            fn view(&self, _: #rt::Sight) -> #rt::Value {
                #rt::tree(self)
            }
        }
    }
}
