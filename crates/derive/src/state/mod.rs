//! `#[derive(State)]`: trees that are synced to clients.

mod columns;
mod compare;
mod described;
mod digest;
mod functions;
mod packed;
mod read;
mod save;
mod tree;
mod view;

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned as _;
use syn::{Data, DeriveInput, GenericArgument, PathArguments, Type};

use self::tree::Tree;
use crate::fields::{Field, Policy, fields, refuse_generics};

/// Implements `State`: for a struct field by field, for an enum as an atomic value.
pub(crate) fn expand_state(input: &DeriveInput) -> syn::Result<TokenStream> {
    refuse_generics(input)?;
    match &input.data {
        Data::Struct(data) => for_struct(input, fields(&input.ident, &data.fields)?),
        Data::Enum(_) => {
            let (rt, ident) = (crate::rt(), &input.ident);
            Ok(quote! {
                #[automatically_derived]
                impl #rt::Atomic for #ident {}
            })
        }
        Data::Union(_) => {
            Err(syn::Error::new_spanned(input, "a union can't be synced: use an enum"))
        }
    }
}

/// Requires at each field's place in the source that its type can be synced. So the compiler
/// names the type that can't be, and not the macro or the collection around it.
fn checked(all: &[Field]) -> TokenStream {
    let mut checks = TokenStream::new();
    for field in all.iter().filter(|field| field.quantize.is_none()) {
        if field.policy == Policy::Skip {
            let (rt, of) = (crate::rt(), &field.of);
            checks.extend(quote_spanned!(of.span()=> let _ = #rt::check_skipped::<#of>;));
        } else {
            check(&field.of, &mut checks);
        }
    }
    quote! {
        const _: () = {
            #checks
        };
    }
}

/// Adds the checks of a type: of a collection, those of what is in it.
fn check(of: &Type, checks: &mut TokenStream) {
    let rt = crate::rt();
    let arguments = arguments(of);
    let arguments = arguments.as_ref().map(|(name, types)| (name.as_str(), types.as_slice()));
    match (of, arguments) {
        (_, Some(("Map", [keys, values]))) => {
            checks.extend(quote_spanned!(keys.span()=> let _ = #rt::check_key::<#keys>;));
            check(values, checks);
        }
        (_, Some(("Set", [keys]))) => {
            checks.extend(quote_spanned!(keys.span()=> let _ = #rt::check_key::<#keys>;));
        }
        (_, Some(("List" | "Option", [elements]))) => check(elements, checks),
        (Type::Array(array), _) => check(&array.elem, checks),
        _ => checks.extend(quote_spanned!(of.span()=> let _ = #rt::check_state::<#of>;)),
    }
}

/// The name of a generic type and the types it is applied to.
fn arguments(of: &Type) -> Option<(String, Vec<&Type>)> {
    let Type::Path(path) = of else { return None };
    let last = path.path.segments.last()?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    let types = arguments.args.iter().map(|argument| match argument {
        GenericArgument::Type(of) => Some(of),
        _ => None,
    });
    Some((last.ident.to_string(), types.collect::<Option<_>>()?))
}

/// Refuses collections of the standard library: one error that names the collection to use, where
/// the compiler would have one for each trait that is missing.
fn refuse_untracked(of: &Type) -> syn::Result<()> {
    if let Type::Array(array) = of {
        return refuse_untracked(&array.elem);
    }
    let Some((name, types)) = arguments(of) else { return Ok(()) };
    let tracked = match name.as_str() {
        "Vec" | "VecDeque" => "List",
        "HashMap" | "BTreeMap" => "Map",
        "HashSet" | "BTreeSet" => "Set",
        _ => return types.into_iter().try_for_each(refuse_untracked),
    };
    let text =
        format!("a `{name}` does not track its changes: use `playfield::{tracked}` in a state");
    Err(syn::Error::new_spanned(of, text))
}

fn for_struct(input: &DeriveInput, all: Vec<Field>) -> syn::Result<TokenStream> {
    let synced = all.iter().filter(|field| field.policy != Policy::Skip);
    synced.map(|field| &field.of).try_for_each(refuse_untracked)?;
    let fields = checked(&all);
    let tree = Tree::new(input, all)?;
    let Tree { rt, ident, shadow, .. } = &tree;
    let shadow_fields = tree.synced.iter().map(|synced| {
        let (name, of) = (&synced.shadow, synced.field.of_shadow(rt));
        quote!(#name: #of)
    });
    let watches = tree.watches();
    let watch_fields = watches.iter().map(|watch| &watch.name);
    let steps = tree.steps();
    let functions = tree.functions();
    let rules = tree.rules();
    let describe = [tree.constants(), tree.schema()];
    let compare = [tree.compare(), tree.digest(), tree.view()];
    let write = [tree.write(), tree.write_columns(), tree.described(), tree.shadow_digest()];
    let read = [tree.read(), tree.read_columns()];
    let save = tree.save();
    Ok(quote! {
        #fields

        const _: () = {
            #steps
            #functions
            #rules

            /// The values at the last sync.
            pub struct #shadow {
                stamps: #rt::Stamps,
                #(#shadow_fields,)*
                #(#watch_fields: #rt::Watch,)*
            }

            #[automatically_derived]
            impl #rt::Describe for #ident {
                #(#describe)*
            }

            #[automatically_derived]
            impl #rt::Compare for #ident {
                type Shadow = #shadow;
                #(#compare)*
            }

            #[automatically_derived]
            impl #rt::Write for #ident {
                #(#write)*
            }

            #[automatically_derived]
            impl #rt::Read for #ident {
                #(#read)*
            }

            #[automatically_derived]
            impl #rt::Save for #ident {
                #save
            }
        };
    })
}
