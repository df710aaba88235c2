//! `#[derive(State)]`: trees that are kept in step.

mod columns;
mod compare;
mod described;
mod digest;
mod functions;
mod packed;
mod read;
mod tree;
mod view;
mod whole;

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned as _;
use syn::{Data, DeriveInput};

use self::tree::Tree;
pub(crate) use self::whole::whole_value;
use crate::fields::{Field, fields, refuse_generics};

/// Implements `State`: for a struct field by field, for an enum as a whole value.
pub(crate) fn expand_state(input: &DeriveInput) -> syn::Result<TokenStream> {
    refuse_generics(input)?;
    match &input.data {
        Data::Struct(data) => for_struct(input, fields(&input.ident, &data.fields)?),
        Data::Enum(_) => Ok(whole_value(&input.ident)),
        Data::Union(_) => {
            Err(syn::Error::new_spanned(input, "a union can't be kept in step: use an enum"))
        }
    }
}

/// Asks of each field's type, at its place in the source, that it can be kept in step: of one that
/// can't the compiler then says so there, and not at the name of the macro alone.
fn checked(all: &[Field]) -> TokenStream {
    let rt = crate::rt();
    let checks = all.iter().filter(|field| field.quantize.is_none()).map(|field| {
        let of = &field.of;
        quote_spanned!(of.span()=> let _ = kept_in_step::<#of>;)
    });
    quote! {
        const _: () = {
            const fn kept_in_step<T: #rt::State>() {}
            #(#checks)*
        };
    }
}

fn for_struct(input: &DeriveInput, all: Vec<Field>) -> syn::Result<TokenStream> {
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
    let constants = tree.constants();
    let schema = tree.schema();
    let compare = tree.compare();
    let write = tree.write();
    let columns = tree.columns();
    let described = tree.described();
    let read = tree.read();
    let view = tree.view();
    let digest = tree.digest();
    Ok(quote! {
        #fields

        const _: () = {
            #steps
            #functions

            /// What was last synced.
            pub struct #shadow {
                stamps: #rt::Stamps,
                #(#shadow_fields,)*
                #(#watch_fields: #rt::Watch,)*
            }

            #[automatically_derived]
            impl #rt::State for #ident {
                type Shadow = #shadow;
                #constants
                #schema
                #compare
                #write
                #columns
                #described
                #read
                #digest
                #view
            }
        };
    })
}
