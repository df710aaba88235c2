//! `#[derive(Packet)]`: structs whose fields stand in a packet one after the other.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{Data, DeriveInput, Error, Fields, GenericParam, Index, LitInt, Type, parse_quote};

use crate::fields::plain_name;

/// Implements `PacketField`, and `Packet` where the struct has an opcode.
pub(crate) fn expand_packet(input: &DeriveInput) -> syn::Result<TokenStream> {
    let Data::Struct(data) = &input.data else {
        return Err(Error::new_spanned(
            &input.ident,
            "Packet is derived for structs: where it is one of several, read the opcode and parse the struct that it names",
        ));
    };
    let (packet, borrows) = lifetime(input)?;
    let opcode = opcode(input)?;
    let fields = fields(&data.fields, &plain_name(&input.ident))?;

    let rt = crate::rt();
    let ident = &input.ident;
    let mut generics = input.generics.clone();
    if !borrows {
        generics.params.push(parse_quote!(#packet));
    }
    let (_, of, _) = input.generics.split_for_impl();
    let (with, _, bounds) = generics.split_for_impl();
    let least = fields.iter().map(|field| field.least(&rt));
    let writes = fields.iter().map(|field| field.write(&rt));
    let reads = fields.iter().map(|field| field.read(&rt));
    let members = fields.iter().map(|field| &field.member);
    let opcode = opcode.map(|Opcode { of: number, value }| {
        quote! {
            #[automatically_derived]
            impl #with #rt::packet::Packet<#packet> for #ident #of #bounds {
                type Opcode = #number;
                const OPCODE: #number = #value;
            }
        }
    });
    Ok(quote! {
        #[automatically_derived]
        impl #with #rt::packet::PacketField<#packet> for #ident #of #bounds {
            const BYTES_MIN: usize = 0 #(+ #least)*;

            #[inline]
            fn write<__O: #rt::packet::Order>(
                &self,
                packet: &mut #rt::packet::PacketWriter<'_, __O>,
            ) -> ::std::result::Result<(), #rt::packet::PacketError> {
                #(#writes)*
                ::std::result::Result::Ok(())
            }

            #[inline]
            fn read<__O: #rt::packet::Order>(
                packet: &mut #rt::packet::PacketReader<#packet, __O>,
            ) -> ::std::result::Result<Self, #rt::packet::PacketError> {
                ::std::result::Result::Ok(Self { #(#members: #reads,)* })
            }
        }
        #opcode
    })
}

/// The lifetime of the bytes that are read, and whether it is the struct's own.
fn lifetime(input: &DeriveInput) -> syn::Result<(TokenStream, bool)> {
    let mut own = None;
    for parameter in &input.generics.params {
        match parameter {
            GenericParam::Lifetime(lifetime) if own.is_none() => {
                own = Some(lifetime.lifetime.to_token_stream());
            }
            other => {
                return Err(Error::new_spanned(
                    other,
                    "a packet may have one lifetime, of the bytes that it borrows, and no other parameter",
                ));
            }
        }
    }
    let borrows = own.is_some();
    Ok((own.unwrap_or_else(|| quote!('__packet)), borrows))
}

/// What stands first in a packet.
struct Opcode {
    of: Type,
    value: LitInt,
}

/// Reads `#[packet(opcode = 7_u16)]`; without a type it is a `u16`.
fn opcode(input: &DeriveInput) -> syn::Result<Option<Opcode>> {
    let mut opcode = None;
    for attribute in input.attrs.iter().filter(|attribute| attribute.path().is_ident("packet")) {
        attribute.parse_nested_meta(|meta| {
            if !meta.path.is_ident("opcode") {
                return Err(
                    meta.error("a struct may have #[packet(opcode = 7_u16)]; all else is said of its fields")
                );
            }
            let value: LitInt = meta.value()?.parse()?;
            let of: Type = match value.suffix() {
                "" => parse_quote!(u16),
                "u8" | "u16" | "u32" | "u64" | "i8" | "i16" | "i32" | "i64" => {
                    syn::parse_str(value.suffix())?
                }
                _ => {
                    return Err(Error::new_spanned(
                        &value,
                        "an opcode is of a type from u8 to u64 or i8 to i64",
                    ));
                }
            };
            if opcode.replace(Opcode { of, value }).is_some() {
                return Err(meta.error("a packet has one opcode"));
            }
            Ok(())
        })?;
    }
    Ok(opcode)
}

struct Field {
    /// Its name in a struct literal.
    member: TokenStream,
    of: Type,
    /// `Struct.field`, for errors.
    name: String,
    form: Form,
}

/// How a field stands in a packet.
enum Form {
    /// As its type does.
    Plain,
    /// With such a length before it.
    Prefixed(TokenStream),
    /// A text in a place of so many bytes.
    Padded(LitInt),
    /// An integer in LEB128; signed ones zig-zag.
    Varint,
    /// All bytes that remain.
    Rest,
}

fn fields(fields: &Fields, of: &str) -> syn::Result<Vec<Field>> {
    let last = fields.len().saturating_sub(1);
    fields
        .iter()
        .enumerate()
        .map(|(place, field)| {
            let (member, name) = match &field.ident {
                Some(ident) => (ident.to_token_stream(), plain_name(ident)),
                None => (Index::from(place).to_token_stream(), place.to_string()),
            };
            let form = form(field)?;
            if matches!(form, Form::Rest) && place != last {
                return Err(Error::new_spanned(
                    field,
                    "nothing can follow #[packet(rest)]: make it the last field",
                ));
            }
            Ok(Field { member, of: field.ty.clone(), name: format!("{of}.{name}"), form })
        })
        .collect()
}

const FORMS: &str =
    "#[packet(len = u8|u16|u32|varint)], #[packet(padded = 16)], #[packet(varint)] and #[packet(rest)]";

fn form(field: &syn::Field) -> syn::Result<Form> {
    let mut form = Form::Plain;
    for attribute in field.attrs.iter().filter(|attribute| attribute.path().is_ident("packet")) {
        attribute.parse_nested_meta(|meta| {
            let said = if meta.path.is_ident("len") {
                let width: syn::Ident = meta.value()?.parse()?;
                Form::Prefixed(match width.to_string().as_str() {
                    "u8" => quote!(U8),
                    "u16" => quote!(U16),
                    "u32" => quote!(U32),
                    "varint" => quote!(Varint),
                    _ => return Err(Error::new_spanned(width, "a length is a u8, a u16, a u32 or a varint")),
                })
            } else if meta.path.is_ident("padded") {
                Form::Padded(meta.value()?.parse()?)
            } else if meta.path.is_ident("varint") {
                Form::Varint
            } else if meta.path.is_ident("rest") {
                Form::Rest
            } else {
                return Err(meta.error(format!("of a packet's field may be said: {FORMS}")));
            };
            if !matches!(std::mem::replace(&mut form, said), Form::Plain) {
                return Err(meta.error("one of these is enough for a field"));
            }
            Ok(())
        })?;
    }
    Ok(form)
}

impl Field {
    fn least(&self, rt: &TokenStream) -> TokenStream {
        let of = &self.of;
        match &self.form {
            Form::Plain => quote!(<#of as #rt::packet::PacketField<'_>>::BYTES_MIN),
            Form::Prefixed(_) | Form::Varint => quote!(1),
            Form::Padded(width) => quote!(#width),
            Form::Rest => quote!(0),
        }
    }

    fn write(&self, rt: &TokenStream) -> TokenStream {
        let Self { member, of, name, form } = self;
        match form {
            Form::Plain => quote! {
                #rt::packet::PacketField::write(&self.#member, packet.at(#name))?;
            },
            Form::Prefixed(prefix) => quote! {
                #rt::packet::Prefixed::write_prefixed(&self.#member, #rt::packet::Prefix::#prefix, packet.at(#name))?;
            },
            Form::Padded(width) => quote! {
                packet.at(#name).padded(::std::convert::AsRef::<str>::as_ref(&self.#member), #width)?;
            },
            Form::Varint => quote! {
                <#of as #rt::packet::Varint>::write(self.#member, packet.at(#name));
            },
            Form::Rest => quote! {
                packet.at(#name).raw(::std::convert::AsRef::<[u8]>::as_ref(&self.#member));
            },
        }
    }

    fn read(&self, rt: &TokenStream) -> TokenStream {
        let Self { of, name, form, .. } = self;
        match form {
            Form::Plain => quote!(<#of as #rt::packet::PacketField<'_>>::read(packet.at(#name))?),
            Form::Prefixed(prefix) => quote! {
                <#of as #rt::packet::Prefixed<'_>>::read_prefixed(#rt::packet::Prefix::#prefix, packet.at(#name))?
            },
            Form::Padded(width) => quote!(::std::convert::Into::into(packet.at(#name).padded(#width)?)),
            Form::Varint => quote!(<#of as #rt::packet::Varint>::read(packet.at(#name))?),
            Form::Rest => quote!(::std::convert::Into::into(packet.at(#name).rest())),
        }
    }
}
