//! `#[derive(Key)]`: newtypes by which maps are keyed.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, Error, Fields, Ident, Type};

use crate::fields::refuse_generics;

/// Implements `Data`, `Key` and `State` as the inner key does.
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
    let state = as_inner(&rt, ident, inner);
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

        #state
    })
}

/// Implements `State` as what it is around does: the two look alike on the wire, in columns too.
fn as_inner(rt: &TokenStream, ident: &Ident, inner: &Type) -> TokenStream {
    let of = quote!(<#inner as #rt::State>);
    quote! {
        #[automatically_derived]
        impl #rt::State for #ident {
            type Shadow = #of::Shadow;

            const UNOWNED: ::std::option::Option<&'static str> = #of::UNOWNED;
            const HAS_OWNED: bool = #of::HAS_OWNED;
            const NESTED_OWNERS: bool = #of::NESTED_OWNERS;
            const COLUMN: bool = #of::COLUMN;
            const PLAIN: bool = #of::PLAIN;
            const FIXED: bool = #of::FIXED;

            fn schema() -> #rt::schema::Type {
                #of::schema()
            }
            fn bind(&mut self, now: u64) -> Self::Shadow {
                #of::bind(&mut self.0, now)
            }
            fn diff(&mut self, shadow: &mut Self::Shadow, step: #rt::Step) -> #rt::Changed {
                #of::diff(&mut self.0, shadow, step)
            }
            fn same_shared(&self, shadow: &Self::Shadow, tracking: #rt::Tracking) -> bool {
                #of::same_shared(&self.0, shadow, tracking)
            }
            fn look(&self) -> u64 {
                #of::look(&self.0)
            }
            fn stamps(shadow: &Self::Shadow) -> #rt::Stamps {
                #of::stamps(shadow)
            }
            fn write_full(shadow: &Self::Shadow, lens: #rt::Lens, out: &mut ::std::vec::Vec<u8>) {
                #of::write_full(shadow, lens, out);
            }
            fn write_patch(shadow: &Self::Shadow, lens: #rt::Lens, out: &mut ::std::vec::Vec<u8>) -> bool {
                #of::write_patch(shadow, lens, out)
            }
            fn column_key(shadow: &Self::Shadow, lens: #rt::Lens) -> ::std::option::Option<u64> {
                #of::column_key(shadow, lens)
            }
            fn write_columns<'a>(
                count: usize,
                at: impl ::std::ops::Fn(usize) -> &'a Self::Shadow + ::std::marker::Copy,
                key: u64,
                lens: #rt::Lens,
                out: &mut ::std::vec::Vec<u8>,
            ) {
                #of::write_columns(count, at, key, lens, out);
            }
            fn tree_full(shadow: &Self::Shadow, lens: #rt::Lens, out: #rt::TreeWriter<'_>) {
                #of::tree_full(shadow, lens, out);
            }
            fn tree_patch(shadow: &Self::Shadow, lens: #rt::Lens, ops: &mut #rt::Ops<'_, '_>) {
                #of::tree_patch(shadow, lens, ops);
            }
            fn read_full(reader: &mut #rt::Reader<'_>, part: #rt::Part) -> ::std::result::Result<Self, #rt::DecodeError> {
                #of::read_full(reader, part).map(Self)
            }
            fn read_patch(
                &mut self,
                reader: &mut #rt::Reader<'_>,
                part: #rt::Part,
            ) -> ::std::result::Result<(), #rt::DecodeError> {
                #of::read_patch(&mut self.0, reader, part)
            }
            fn read_columns(
                targets: &mut [&mut Self],
                reader: &mut #rt::Reader<'_>,
            ) -> ::std::result::Result<(), #rt::DecodeError> {
                let mut inner: ::std::vec::Vec<&mut #inner> = targets.iter_mut().map(|target| &mut target.0).collect();
                #of::read_columns(&mut inner, reader)
            }
            fn digest(&self) -> u64 {
                #of::digest(&self.0)
            }
            fn shadow_digest(shadow: &Self::Shadow, lens: #rt::Lens) -> u64 {
                #of::shadow_digest(shadow, lens)
            }
            fn view(&self, sight: #rt::Sight) -> #rt::Value {
                #of::view(&self.0, sight)
            }
        }
    }
}

fn misuse(input: &DeriveInput) -> Error {
    Error::new_spanned(
        &input.ident,
        "a key of one's own is a struct around another key: write `struct UnitId(u32);`",
    )
}
