//! What the macros need to know of a struct's fields.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{DeriveInput, Fields, Ident, Index, Type};

/// Who sees a field.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Policy {
    Everyone,
    Owner,
    Hidden,
}

pub(crate) struct Field {
    /// `self.<member>`, and the name in a struct literal.
    pub(crate) member: TokenStream,
    /// The name in JSON and in the schema; the position for fields without one.
    pub(crate) name: String,
    pub(crate) of: Type,
    pub(crate) policy: Policy,
}

/// Reads the fields and their `#[sync(...)]`.
pub(crate) fn fields(fields: &Fields) -> syn::Result<Vec<Field>> {
    fields
        .iter()
        .enumerate()
        .map(|(place, field)| {
            let member = match &field.ident {
                Some(ident) => ident.to_token_stream(),
                None => Index::from(place).to_token_stream(),
            };
            let name = field.ident.as_ref().map_or_else(|| place.to_string(), plain_name);
            Ok(Field { member, name, of: field.ty.clone(), policy: policy(field)? })
        })
        .collect()
}

/// A name without the `r#` of a raw identifier.
pub(crate) fn plain_name(ident: &Ident) -> String {
    let name = ident.to_string();
    name.strip_prefix("r#").map_or(name.clone(), str::to_owned)
}

fn policy(field: &syn::Field) -> syn::Result<Policy> {
    let mut policy = Policy::Everyone;
    for attribute in &field.attrs {
        if !attribute.path().is_ident("sync") {
            continue;
        }
        attribute.parse_nested_meta(|meta| {
            if policy != Policy::Everyone {
                return Err(meta.error("a field has one policy: `owner` or `hidden`"));
            }
            policy = if meta.path.is_ident("owner") {
                Policy::Owner
            } else if meta.path.is_ident("hidden") {
                Policy::Hidden
            } else {
                let named = meta.path.to_token_stream().to_string();
                return Err(
                    meta.error(format!("`{named}` is no policy: write #[sync(owner)] or #[sync(hidden)]"))
                );
            };
            Ok(())
        })?;
    }
    Ok(policy)
}

/// Refuses generic types, which have no schema of their own.
pub(crate) fn refuse_generics(input: &DeriveInput) -> syn::Result<()> {
    if input.generics.params.is_empty() {
        return Ok(());
    }
    Err(syn::Error::new_spanned(
        &input.generics,
        "a type with parameters has no one schema: write one type for each use",
    ))
}

/// `lhs || rhs || …`, `false` for none.
pub(crate) fn any(terms: impl Iterator<Item = TokenStream>) -> TokenStream {
    let terms: Vec<TokenStream> = terms.collect();
    if terms.is_empty() { quote!(false) } else { quote!(#(#terms)||*) }
}
