//! `#[derive(Packet)]`: structs as packets, field by field.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote, quote_spanned};
use syn::meta::ParseNestedMeta;
use syn::spanned::Spanned;
use syn::{
    Data, DeriveInput, Error, Expr, ExprLit, Fields, GenericParam, Ident, Index, Lit, LitInt, Type,
    parse_quote,
};

use crate::fields::{names, plain_name};

/// Implements `PacketField`, and `Packet` where the struct has an opcode.
pub(crate) fn expand_packet(input: &DeriveInput) -> syn::Result<TokenStream> {
    let Data::Struct(data) = &input.data else {
        return Err(Error::new_spanned(
            &input.ident,
            "Packet can be derived only for structs: to choose between several, read the opcode and parse that struct",
        ));
    };
    let (packet, borrows) = lifetime(input)?;
    let opcode = opcode(input)?;
    let fields = fields(&data.fields, &input.ident)?;

    let rt = crate::rt();
    let ident = &input.ident;
    let mut generics = input.generics.clone();
    if !borrows {
        generics.params.push(parse_quote!(#packet));
    }
    let (_, of, _) = input.generics.split_for_impl();
    let (with, _, bounds) = generics.split_for_impl();
    let whole = match borrows {
        true => quote!(#ident<'static>),
        false => quote!(#ident),
    };
    let last = fields.len().saturating_sub(1);
    let ends =
        fields.iter().enumerate().filter_map(|(place, field)| field.ends(place == last, &rt));
    let open_ended = fields.last().map_or(quote!(false), |field| field.open_ended(&rt));
    let depths = fields.iter().filter_map(|field| field.depth(&rt));
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
            const DEPTH: usize = {
                #(#ends)*
                1 #(+ #depths)*
            };
            const OPEN_ENDED: bool = #open_ended;

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
        // Evaluated here even if it is never read: see `PacketField::DEPTH`.
        const _: usize = <#whole as #rt::packet::PacketField<'static>>::DEPTH;
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
                    "a packet can have one lifetime, for the bytes that it borrows, and no other parameter",
                ));
            }
        }
    }
    let borrows = own.is_some();
    Ok((own.unwrap_or_else(|| quote!('__packet)), borrows))
}

/// The number at the start of a packet.
struct Opcode {
    of: Type,
    value: LitInt,
}

/// Reads `#[packet(opcode = 7_u16)]`; without a type it is a `u16`, so a negative one needs its
/// type.
fn opcode(input: &DeriveInput) -> syn::Result<Option<Opcode>> {
    let mut opcode = None;
    for attribute in input.attrs.iter().filter(|attribute| attribute.path().is_ident("packet")) {
        attribute.parse_nested_meta(|meta| {
            if !meta.path.is_ident("opcode") {
                return Err(meta.error(
                    "a struct can have #[packet(opcode = 7_u16)]; everything else belongs on its fields",
                ));
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
                        "the type of an opcode must be one of u8 to u64 or i8 to i64",
                    ));
                }
            };
            let fits = match of.to_token_stream().to_string().as_str() {
                "u8" => value.base10_parse::<u8>().is_ok(),
                "u16" => value.base10_parse::<u16>().is_ok(),
                "u32" => value.base10_parse::<u32>().is_ok(),
                "u64" => value.base10_parse::<u64>().is_ok(),
                "i8" => value.base10_parse::<i8>().is_ok(),
                "i16" => value.base10_parse::<i16>().is_ok(),
                "i32" => value.base10_parse::<i32>().is_ok(),
                _ => value.base10_parse::<i64>().is_ok(),
            };
            if !fits {
                let of = of.to_token_stream().to_string();
                let message = match value.base10_digits().starts_with('-') && of.starts_with('u') {
                    true => {
                        format!(
                            "the opcode is too small for a {of}: use a signed type, as in -1_i16"
                        )
                    }
                    false => format!("the opcode is too large for a {of}: use a wider type"),
                };
                return Err(Error::new_spanned(&value, message));
            }
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

/// The form of a field in a packet.
enum Form {
    /// The form of its type.
    Plain,
    /// After its length, which has this form.
    Prefixed(TokenStream),
    /// A text, padded to this many bytes.
    Padded(usize),
    /// An integer in LEB128; signed ones zig-zag.
    Varint,
    /// All bytes that remain.
    Rest,
}

fn fields(fields: &Fields, of: &Ident) -> syn::Result<Vec<Field>> {
    let last = fields.len().saturating_sub(1);
    fields
        .iter()
        .enumerate()
        .map(|(place, field)| {
            let (member, name) = match &field.ident {
                Some(ident) => (ident.to_token_stream(), plain_name(ident)),
                None => (Index::from(place).to_token_stream(), place.to_string()),
            };
            if names(of, field.ty.to_token_stream()) {
                let message = format!(
                    "the field `{name}` of `{of}` holds `{of}` itself: a sender could nest it until the reader's stack overflows. Keep \
                     every `{of}` in one flat list, and in this field the indices of those that belong here"
                );
                return Err(Error::new_spanned(&field.ty, message));
            }
            let form = form(field, &name)?;
            if matches!(form, Form::Rest) && place != last {
                let message = format!(
                    "the field `{name}` takes the rest, so no field can follow it: make it the last, or give it a length"
                );
                return Err(Error::new_spanned(field, message));
            }
            Ok(Field {
                member,
                of: field.ty.clone(),
                name: format!("{}.{name}", plain_name(of)),
                form,
            })
        })
        .collect()
}

const FORMS: &str = "#[packet(len = u8|u16|u32|varint)], #[packet(padded = 16)], #[packet(varint)] and #[packet(rest)]";

fn form(field: &syn::Field, name: &str) -> syn::Result<Form> {
    let mut form = Form::Plain;
    for attribute in field.attrs.iter().filter(|attribute| attribute.path().is_ident("packet")) {
        attribute.parse_nested_meta(|meta| {
            let word = meta.path.to_token_stream().to_string();
            let said = match word.as_str() {
                "len" => Form::Prefixed(length(&meta, name)?),
                "padded" => Form::Padded(width(&meta, name)?),
                "varint" => Form::Varint,
                "rest" => Form::Rest,
                "opcode" => {
                    let message = format!("`{name}` is a field: put the opcode on the struct");
                    return Err(meta.error(message));
                }
                _ => {
                    let message =
                        format!("`{word}` is unknown on the field `{name}`: use one of {FORMS}");
                    return Err(meta.error(message));
                }
            };
            if !matches!(std::mem::replace(&mut form, said), Form::Plain) {
                let message = format!("the field `{name}` can have one form: keep one of {FORMS}");
                return Err(meta.error(message));
            }
            Ok(())
        })?;
    }
    Ok(form)
}

/// Reads the value of `len = …`.
fn length(meta: &ParseNestedMeta<'_>, name: &str) -> syn::Result<TokenStream> {
    let of: Ident = meta.value()?.parse()?;
    match of.to_string().as_str() {
        "u8" => Ok(quote!(U8)),
        "u16" => Ok(quote!(U16)),
        "u32" => Ok(quote!(U32)),
        "varint" => Ok(quote!(Varint)),
        _ => {
            let message =
                format!("the length of the field `{name}` must be a u8, a u16, a u32 or a varint");
            Err(Error::new_spanned(of, message))
        }
    }
}

/// Reads the value of `padded = …`.
fn width(meta: &ParseNestedMeta<'_>, name: &str) -> syn::Result<usize> {
    let value: Expr = meta.value()?.parse()?;
    let width = match &value {
        Expr::Lit(ExprLit { lit: Lit::Int(width), .. }) if width.suffix().is_empty() => {
            width.base10_parse().ok()
        }
        _ => None,
    };
    match width {
        Some(0) => {
            let message = format!(
                "a text padded to 0 bytes is empty: give the field `{name}` a width, or remove it"
            );
            Err(Error::new_spanned(value, message))
        }
        Some(width) => Ok(width),
        None => {
            let message = format!(
                "the width of the field `{name}` must be a number of bytes, as in #[packet(padded = 16)]"
            );
            Err(Error::new_spanned(value, message))
        }
    }
}

impl Field {
    /// Whether it takes all remaining bytes.
    fn open_ended(&self, rt: &TokenStream) -> TokenStream {
        let of = &self.of;
        match self.form {
            Form::Plain => quote!(<#of as #rt::packet::PacketField<'_>>::OPEN_ENDED),
            Form::Rest => quote!(true),
            Form::Prefixed(_) | Form::Padded(_) | Form::Varint => quote!(false),
        }
    }

    /// Compile-time assertions, since only the compiler knows which structs take all remaining
    /// bytes.
    fn ends(&self, is_last: bool, rt: &TokenStream) -> Option<TokenStream> {
        let Self { of, name, form, .. } = self;
        let element = format!(
            "the elements of the field `{name}` end in #[packet(rest)], so nothing can follow the first: give their last field a length"
        );
        let field = format!(
            "the field `{name}` is a struct that ends in #[packet(rest)], so no field can follow it: make it the last, or give the \
             struct's last field a length"
        );
        let open_ended = self.open_ended(rt);
        let ends =
            (!is_last).then(|| quote_spanned!(of.span()=> ::std::assert!(!#open_ended, #field);));
        matches!(form, Form::Plain | Form::Prefixed(_)).then(|| {
            quote_spanned! {of.span()=>
                ::std::assert!(!<#of as #rt::packet::PacketField<'_>>::ELEMENTS_OPEN_ENDED, #element);
                #ends
            }
        })
    }

    /// Returns the depth to which it is nested. The other forms hold no struct.
    fn depth(&self, rt: &TokenStream) -> Option<TokenStream> {
        let of = &self.of;
        matches!(self.form, Form::Plain | Form::Prefixed(_))
            .then(|| quote_spanned!(of.span()=> <#of as #rt::packet::PacketField<'_>>::DEPTH))
    }

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
                <#of as #rt::packet::PacketField<'_>>::write(&self.#member, packet.at(#name))?;
            },
            Form::Prefixed(prefix) => quote! {
                <#of as #rt::packet::Prefixed<'_>>::write_prefixed(&self.#member, #rt::packet::Prefix::#prefix, packet.at(#name))?;
            },
            Form::Padded(width) => quote! {
                <#of as #rt::packet::Padded<'_>>::write_padded(&self.#member, #width, packet.at(#name))?;
            },
            Form::Varint => quote! {
                <#of as #rt::packet::Varint>::write(self.#member, packet.at(#name));
            },
            Form::Rest => quote! {
                <#of as #rt::packet::Rest<'_>>::write_rest(&self.#member, packet.at(#name));
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
            Form::Padded(width) => {
                quote!(<#of as #rt::packet::Padded<'_>>::read_padded(#width, packet.at(#name))?)
            }
            Form::Varint => quote!(<#of as #rt::packet::Varint>::read(packet.at(#name))?),
            Form::Rest => quote!(<#of as #rt::packet::Rest<'_>>::read_rest(packet.at(#name))),
        }
    }
}
