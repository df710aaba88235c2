//! `#[derive(Message)]`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{DeriveInput, Type, parse_quote};

use crate::data::expand_data;
use crate::fields::plain_name;

/// Implements `Data` and `Message`.
pub(crate) fn expand_message(input: &DeriveInput) -> syn::Result<TokenStream> {
    let data = expand_data(input)?;
    let rt = crate::rt();
    let ident = &input.ident;
    let name = plain_name(ident);
    let mut replies = input.attrs.iter().filter(|attribute| attribute.path().is_ident("reply"));
    let reply: Type = match (replies.next(), replies.next()) {
        (None, _) => parse_quote!(()),
        (Some(reply), None) => reply.parse_args()?,
        (Some(_), Some(second)) => {
            return Err(syn::Error::new_spanned(second, "a message has one reply"));
        }
    };
    Ok(quote! {
        #data

        #[automatically_derived]
        impl #rt::Message for #ident {
            const NAME: &'static str = #name;
            type Reply = #reply;
        }
    })
}
