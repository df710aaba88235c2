//! Implementations that stand in for those that a derive can't make, so that the compiler reports
//! what is wrong once and not again wherever the type is used. They are never run.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{DeriveInput, Generics, Type, parse_quote};

use crate::fields::plain_name;

/// The type's parameters, where it lives as long as the traits require.
fn generics(input: &DeriveInput) -> Generics {
    let mut generics = input.generics.clone();
    if !generics.params.is_empty() {
        generics.make_where_clause().predicates.push(parse_quote!(Self: 'static));
    }
    generics
}

pub(crate) fn state(input: &DeriveInput) -> TokenStream {
    let (rt, ident, generics) = (crate::rt(), &input.ident, generics(input));
    let (with, of, bounds) = generics.split_for_impl();
    let bytes = quote!(&mut ::std::vec::Vec<u8>);
    let read = quote!(::std::result::Result<Self, #rt::DecodeError>);
    quote! {
        #[automatically_derived]
        impl #with #rt::Describe for #ident #of #bounds {
            fn shape() -> #rt::schema::Type { ::std::unreachable!() }
        }
        #[automatically_derived]
        impl #with #rt::Compare for #ident #of #bounds {
            type Shadow = ();
            fn bind<B: #rt::Bind>(&mut self, _: B) {}
            fn diff(&mut self, (): &mut (), _: #rt::Step) -> #rt::Changed { ::std::unreachable!() }
            fn same_shared(&self, (): &(), _: #rt::Tracking) -> bool { ::std::unreachable!() }
            fn stamps((): &()) -> #rt::Stamps { ::std::unreachable!() }
            fn digest(&self, _: #rt::Part) -> u64 { ::std::unreachable!() }
            fn view(&self, _: #rt::Sight<'_>) -> #rt::Value { ::std::unreachable!() }
        }
        #[automatically_derived]
        impl #with #rt::Write for #ident #of #bounds {
            fn write_full((): &(), _: #rt::Lens, _: #bytes) {}
            fn write_patch((): &(), _: #rt::Lens, _: #bytes) -> bool { ::std::unreachable!() }
            fn tree_full((): &(), _: #rt::Lens, _: #rt::TreeWriter<'_>) {}
            fn tree_patch((): &(), _: #rt::Lens, _: &mut #rt::Ops<'_, '_>) {}
            fn shadow_digest((): &(), _: #rt::Lens) -> u64 { ::std::unreachable!() }
        }
        #[automatically_derived]
        impl #with #rt::Read for #ident #of #bounds {
            fn read_full(_: &mut #rt::Reader<'_>, _: #rt::Part) -> #read { ::std::unreachable!() }
            fn read_patch(
                &mut self,
                _: &mut #rt::Reader<'_>,
                _: #rt::Part,
                _: &mut #rt::ChangeWatch<'_>,
            ) -> ::std::result::Result<(), #rt::DecodeError> {
                ::std::unreachable!()
            }
        }
        #[automatically_derived]
        impl #with #rt::Save for #ident #of #bounds {
            fn saved() -> #rt::Saved { ::std::unreachable!() }
            fn write_save(&self, _: #bytes) {}
            fn read_save(_: &mut #rt::Reader<'_>) -> #read { ::std::unreachable!() }
            fn follow(&self, _: &mut #rt::Node, _: &mut #rt::Follow) {}
        }
    }
}

pub(crate) fn data(input: &DeriveInput) -> TokenStream {
    let (rt, ident, generics) = (crate::rt(), &input.ident, generics(input));
    let (with, of, bounds) = generics.split_for_impl();
    let read = quote!(::std::result::Result<Self, #rt::DecodeError>);
    quote! {
        #[automatically_derived]
        impl #with #rt::Data for #ident #of #bounds {
            fn schema() -> #rt::schema::Type { ::std::unreachable!() }
            fn encode(&self, _: &mut ::std::vec::Vec<u8>) {}
            fn decode(_: &mut #rt::Reader<'_>) -> #read { ::std::unreachable!() }
            fn to_tree(&self, _: #rt::TreeWriter<'_>) {}
            fn from_json(_: &#rt::Value) -> #read { ::std::unreachable!() }
        }
    }
}

pub(crate) fn key(input: &DeriveInput) -> TokenStream {
    let (rt, ident, data) = (crate::rt(), &input.ident, data(input));
    let mut generics = generics(input);
    if !generics.params.is_empty() {
        let needs = parse_quote!(Self: ::std::cmp::Ord + ::std::clone::Clone);
        generics.make_where_clause().predicates.push(needs);
    }
    let (with, of, bounds) = generics.split_for_impl();
    quote! {
        #data
        #[automatically_derived]
        impl #with #rt::Key for #ident #of #bounds {
            fn name(&self) -> ::std::borrow::Cow<'_, str> { ::std::unreachable!() }
            fn parse(_: &str) -> ::std::result::Result<Self, #rt::DecodeError> {
                ::std::unreachable!()
            }
        }
        #[automatically_derived]
        impl #with #rt::Atomic for #ident #of #bounds {}
    }
}

pub(crate) fn message(input: &DeriveInput) -> TokenStream {
    let (rt, ident, generics) = (crate::rt(), &input.ident, generics(input));
    let (with, of, bounds) = generics.split_for_impl();
    let (data, name) = (data(input), plain_name(ident));
    let reply = input.attrs.iter().find(|attribute| attribute.path().is_ident("reply"));
    let reply = reply.and_then(|reply| reply.parse_args().ok());
    let reply: Type = reply.unwrap_or_else(|| parse_quote!(()));
    quote! {
        #data
        #[automatically_derived]
        impl #with #rt::Message for #ident #of #bounds {
            const NAME: &'static str = #name;
            type Reply = #reply;
        }
    }
}

pub(crate) fn packet(input: &DeriveInput) -> TokenStream {
    let (rt, ident) = (crate::rt(), &input.ident);
    let mut generics = input.generics.clone();
    generics.params.insert(0, parse_quote!('__packet));
    let (_, of, _) = input.generics.split_for_impl();
    let (with, _, bounds) = generics.split_for_impl();
    quote! {
        #[automatically_derived]
        impl #with #rt::packet::PacketField<'__packet> for #ident #of #bounds {
            const BYTES_MIN: usize = 1;
            const DEPTH: usize = 1;
            fn write<__O: #rt::packet::Order>(
                &self,
                _: &mut #rt::packet::PacketWriter<'_, __O>,
            ) -> ::std::result::Result<(), #rt::packet::PacketError> {
                ::std::unreachable!()
            }
            fn read<__O: #rt::packet::Order>(
                _: &mut #rt::packet::PacketReader<'__packet, __O>,
            ) -> ::std::result::Result<Self, #rt::packet::PacketError> {
                ::std::unreachable!()
            }
        }
        #[automatically_derived]
        impl #with #rt::packet::Packet<'__packet> for #ident #of #bounds {
            type Opcode = u16;
            const OPCODE: u16 = 0;
        }
    }
}
