//! `#[derive(Key)]`: newtypes as keys of maps.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, Error, Fields};

use crate::fields::refuse_generics;

/// Implements `Data`, `Key` and `State` by the inner key, so both look alike on the wire.
pub(crate) fn expand_key(input: &DeriveInput) -> syn::Result<TokenStream> {
    refuse_generics(input)?;
    let inner = match &input.data {
        Data::Struct(data) => match &data.fields {
            Fields::Unnamed(fields) if fields.unnamed.len() == 1 => &fields.unnamed[0].ty,
            _ => return Err(misuse(input)),
        },
        _ => return Err(misuse(input)),
    };
    let rt = crate::rt();
    let ident = &input.ident;
    Ok(quote! {
        #[automatically_derived]
        impl #rt::Data for #ident {
            fn schema() -> #rt::schema::Type {
                <#inner as #rt::Data>::schema()
            }
            fn encode(&self, out: &mut ::std::vec::Vec<u8>) {
                #rt::Data::encode(&self.0, out);
            }
            fn decode(reader: &mut #rt::Reader<'_>) -> ::std::result::Result<Self, #rt::DecodeError> {
                <#inner as #rt::Data>::decode(reader).map(Self)
            }
            fn to_tree(&self, out: #rt::TreeWriter<'_>) {
                #rt::Data::to_tree(&self.0, out);
            }
            fn same(&self, other: &Self) -> bool {
                #rt::Data::same(&self.0, &other.0)
            }
            fn digest(&self) -> u64 {
                #rt::Data::digest(&self.0)
            }
            fn from_json(value: &#rt::Value) -> ::std::result::Result<Self, #rt::DecodeError> {
                <#inner as #rt::Data>::from_json(value).map(Self)
            }
        }

        #[automatically_derived]
        impl #rt::Key for #ident {
            const IS_PLAYER: bool = <#inner as #rt::Key>::IS_PLAYER;

            fn player(&self) -> ::std::option::Option<#rt::PlayerId> {
                #rt::Key::player(&self.0)
            }
            fn of_player(player: #rt::PlayerId) -> ::std::option::Option<Self> {
                <#inner as #rt::Key>::of_player(player).map(Self)
            }
            fn name(&self) -> ::std::borrow::Cow<'_, str> {
                #rt::Key::name(&self.0)
            }
            fn parse(name: &str) -> ::std::result::Result<Self, #rt::DecodeError> {
                <#inner as #rt::Key>::parse(name).map(Self)
            }
        }

        #[automatically_derived]
        impl #rt::Atomic for #ident {
            const FIXED: bool = <#inner as #rt::Atomic>::FIXED;

            fn put_column<'a>(
                out: &mut ::std::vec::Vec<u8>,
                count: usize,
                at: impl ::std::ops::Fn(usize) -> &'a Self,
            ) {
                <#inner as #rt::Atomic>::put_column(out, count, |place| &at(place).0);
            }
            fn get_column(
                reader: &mut #rt::Reader<'_>,
                count: usize,
                mut set: impl ::std::ops::FnMut(usize, Self),
            ) -> ::std::result::Result<(), #rt::DecodeError> {
                <#inner as #rt::Atomic>::get_column(reader, count, |place, inner| set(place, Self(inner)))
            }
        }
    })
}

fn misuse(input: &DeriveInput) -> Error {
    Error::new_spanned(
        &input.ident,
        "a custom key is a struct around another key: write `struct UnitId(u32);`",
    )
}
