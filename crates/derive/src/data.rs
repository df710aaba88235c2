//! `#[derive(Data)]`: atomic values.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Data, DataEnum, DeriveInput, Fields};

use crate::fields::{Field, Policy, fields, plain_name, refuse_generics};

/// Implements `Data`. Packed, a struct is its fields in order (one zero byte if there are none), an
/// enum is the varint position of its variant, then that variant's fields. In trees, a struct is an
/// object (a tuple an array, of one field just that field, of none `null`), an enum is its
/// variant's name, or an object of that one member. What clients of older builds write, which lacks
/// fields, is read too, if these may be empty.
pub(crate) fn expand_data(input: &DeriveInput) -> syn::Result<TokenStream> {
    refuse_generics(input)?;
    match &input.data {
        Data::Struct(data) => for_struct(input, &data.fields),
        Data::Enum(data) => for_enum(input, data),
        Data::Union(_) => Err(syn::Error::new_spanned(input, "a union can't be sent: use an enum")),
    }
}

fn for_struct(input: &DeriveInput, of: &Fields) -> syn::Result<TokenStream> {
    let rt = crate::rt();
    let ident = &input.ident;
    let name = plain_name(ident);
    let shape = Shape::new(ident, of)?;
    let bindings = shape.bindings();
    let pattern = shape.literal(&bindings);
    let schema = shape.schema(&rt, &name);
    let encode = shape.encode(&rt, &bindings, true);
    let decode = shape.decode(&rt, true);
    let to_tree = shape.to_tree(&rt, &bindings);
    let from_json = shape.read_json(&rt, &quote!(Self));
    let literal = shape.literal(&bindings);
    let others = shape.other_bindings();
    let other_pattern = shape.literal(&others);
    let same = shape.same(&rt, &bindings, &others);
    Ok(quote! {
        #[automatically_derived]
        impl #rt::Data for #ident {
            fn schema() -> #rt::schema::Type {
                #rt::nested(#name, || #rt::schema::Type::Struct(#schema))
            }
            #[inline]
            fn encode(&self, out: &mut ::std::vec::Vec<u8>) {
                let Self #pattern = self;
                #encode
            }
            #[inline]
            fn decode(reader: &mut #rt::Reader<'_>) -> ::std::result::Result<Self, #rt::DecodeError> {
                #decode
                ::std::result::Result::Ok(Self #literal)
            }
            fn to_tree(&self, out: #rt::TreeWriter<'_>) {
                let Self #pattern = self;
                #to_tree
            }
            fn same(&self, other: &Self) -> bool {
                let (Self #pattern, Self #other_pattern) = (self, other);
                #same
            }
            fn from_json(value: &#rt::Value) -> ::std::result::Result<Self, #rt::DecodeError> {
                #from_json
            }
        }
    })
}

fn for_enum(input: &DeriveInput, data: &DataEnum) -> syn::Result<TokenStream> {
    let rt = crate::rt();
    let ident = &input.ident;
    let name = plain_name(ident);
    if data.variants.is_empty() {
        return Err(syn::Error::new_spanned(
            input,
            "an enum without variants has no values to send: add a variant",
        ));
    }
    let (mut schemas, mut encodes, mut decodes, mut to_trees, mut from_jsons, mut units, mut sames) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (place, variant) in data.variants.iter().enumerate() {
        let variant_ident = &variant.ident;
        let variant_name = plain_name(variant_ident);
        let number = place as u64;
        let shape = Shape::new(ident, &variant.fields)?;
        let bindings = shape.bindings();
        let literal = shape.literal(&bindings);
        schemas.push(shape.schema(&rt, &variant_name));
        let encode = shape.encode(&rt, &bindings, false);
        encodes.push(
            quote! { Self::#variant_ident #literal => { #rt::writer::put_varint(out, #number); #encode } },
        );
        let decode = shape.decode(&rt, false);
        decodes
            .push(quote! { #number => { #decode ::std::result::Result::Ok(Self::#variant_ident #literal) } });
        let others = shape.other_bindings();
        let other_literal = shape.literal(&others);
        let same = shape.same(&rt, &bindings, &others);
        sames.push(
            quote! { (Self::#variant_ident #literal, Self::#variant_ident #other_literal) => { #same } },
        );
        let to_tree = shape.to_tree(&rt, &bindings);
        let from_json = shape.read_json(&rt, &quote!(Self::#variant_ident));
        if shape.fields.is_empty() {
            to_trees.push(quote! { Self::#variant_ident #literal => out.text(#variant_name), });
        } else {
            to_trees.push(quote! { Self::#variant_ident #literal => {
                let mut variant = out.object(1);
                let out = variant.field(#variant_name);
                #to_tree
                variant.end();
            } });
            from_jsons.push(quote! { #variant_name => { #from_json } });
        }
        units.push(if shape.fields.is_empty() {
            quote! { #variant_name => return ::std::result::Result::Ok(Self::#variant_ident #literal), }
        } else {
            // A client writes the name alone where a variant had no fields in its build.
            quote! { #variant_name => {
                let value = &#rt::Value::Null;
                return { #from_json };
            } }
        });
    }
    let unknown = format!("is not a variant of {name}");
    Ok(quote! {
        #[automatically_derived]
        impl #rt::Data for #ident {
            fn schema() -> #rt::schema::Type {
                #rt::nested(#name, || #rt::schema::Type::Enum(#rt::schema::Enum {
                    name: ::std::borrow::Cow::Borrowed(#name),
                    variants: ::std::vec![#(#schemas),*],
                }))
            }
            fn encode(&self, out: &mut ::std::vec::Vec<u8>) {
                match self { #(#encodes)* }
            }
            fn decode(reader: &mut #rt::Reader<'_>) -> ::std::result::Result<Self, #rt::DecodeError> {
                let at = reader.offset();
                match reader.varint()? {
                    #(#decodes)*
                    other => ::std::result::Result::Err(#rt::DecodeError::new(at, ::std::format!("{other} {}", #unknown))),
                }
            }
            fn to_tree(&self, out: #rt::TreeWriter<'_>) {
                match self { #(#to_trees)* }
            }
            fn same(&self, other: &Self) -> bool {
                #[allow(unreachable_patterns)] // an enum with one variant has one pair
                match (self, other) {
                    #(#sames)*
                    _ => false,
                }
            }
            fn from_json(value: &#rt::Value) -> ::std::result::Result<Self, #rt::DecodeError> {
                if let ::std::option::Option::Some(variant) = value.as_str() {
                    match variant {
                        #(#units)*
                        _ => {}
                    }
                }
                match #rt::only_member(value) {
                    ::std::option::Option::Some((variant, value)) => {
                        let _ = value;
                        match variant {
                            #(#from_jsons)*
                            other => ::std::result::Result::Err(#rt::DecodeError::other(::std::format!("{other:?} {}", #unknown))),
                        }
                    }
                    ::std::option::Option::None => {
                        ::std::result::Result::Err(#rt::DecodeError::other(::std::format!("{value} {}", #unknown)))
                    }
                }
            }
        }
    })
}

/// The fields of a struct or of a variant.
struct Shape {
    fields: Vec<Field>,
    named: bool,
    unit: bool,
}

impl Shape {
    fn new(ident: &proc_macro2::Ident, of: &Fields) -> syn::Result<Self> {
        let fields = fields(ident, of)?;
        let whole = |field: &Field| {
            field.policy == Policy::Everyone && field.mask.is_none() && field.quantize.is_none()
        };
        if let Some(place) = fields.iter().position(|field| !whole(field)) {
            let field = of.iter().nth(place);
            return Err(syn::Error::new_spanned(
                field,
                "a type that derives Data is sent as a whole to everyone, so its fields have no policy and are not quantized: \
                 derive State alone, and use another type in messages",
            ));
        }
        Ok(Self { fields, named: matches!(of, Fields::Named(_)), unit: matches!(of, Fields::Unit) })
    }

    fn bindings(&self) -> Vec<proc_macro2::Ident> {
        (0..self.fields.len()).map(|place| format_ident!("__field_{place}")).collect()
    }

    fn other_bindings(&self) -> Vec<proc_macro2::Ident> {
        (0..self.fields.len()).map(|place| format_ident!("__other_{place}")).collect()
    }

    /// `{ a: __field_0 }`, `(__field_0)` or nothing, both as a pattern and as a literal.
    fn literal(&self, bindings: &[proc_macro2::Ident]) -> TokenStream {
        let members = self.fields.iter().map(|field| &field.member);
        if self.unit {
            quote!()
        } else if self.named {
            quote!({ #(#members: #bindings),* })
        } else {
            quote!((#(#bindings),*))
        }
    }

    fn schema(&self, rt: &TokenStream, name: &str) -> TokenStream {
        let fields = self.fields.iter().map(|field| {
            let (name, of) = (&field.name, &field.of);
            quote!(#rt::schema::Field {
                name: ::std::borrow::Cow::Borrowed(#name),
                policy: #rt::schema::Policy::Everyone,
                default_digest: ::std::option::Option::None,
                of: <#of as #rt::Data>::schema(),
            })
        });
        quote!(#rt::schema::Struct { name: ::std::borrow::Cow::Borrowed(#name), fields: ::std::vec![#(#fields),*] })
    }

    fn same(
        &self,
        rt: &TokenStream,
        bindings: &[proc_macro2::Ident],
        others: &[proc_macro2::Ident],
    ) -> TokenStream {
        if self.fields.is_empty() {
            return quote!(true);
        }
        quote!(#(#rt::Data::same(#bindings, #others))&&*)
    }

    /// `pad`: a struct without fields is one zero byte.
    fn encode(&self, rt: &TokenStream, bindings: &[proc_macro2::Ident], pad: bool) -> TokenStream {
        if self.fields.is_empty() && pad {
            return quote!(#rt::Data::encode(&(), out););
        }
        quote!(#(#rt::Data::encode(#bindings, out);)*)
    }

    fn decode(&self, rt: &TokenStream, pad: bool) -> TokenStream {
        if self.fields.is_empty() && pad {
            return quote!(<() as #rt::Data>::decode(reader)?;);
        }
        let bindings = self.bindings();
        let types = self.fields.iter().map(|field| &field.of);
        quote!(#(let #bindings = <#types as #rt::Data>::decode(reader)?;)*)
    }

    fn to_tree(&self, rt: &TokenStream, bindings: &[proc_macro2::Ident]) -> TokenStream {
        if self.fields.is_empty() {
            return quote!(out.null(););
        }
        if !self.named && self.fields.len() == 1 {
            return quote!(#(#rt::Data::to_tree(#bindings, out);)*);
        }
        let count = self.fields.len();
        if !self.named {
            return quote! {
                let mut elements = out.array(#count);
                #(#rt::Data::to_tree(#bindings, elements.element());)*
                elements.end();
            };
        }
        let names = self.fields.iter().map(|field| &field.name);
        quote! {
            let mut members = out.object(#count);
            #(#rt::Data::to_tree(#bindings, members.field(#names));)*
            members.end();
        }
    }

    /// An expression: a `Result` of `made` with the fields read from `value`.
    fn read_json(&self, rt: &TokenStream, made: &TokenStream) -> TokenStream {
        let bindings = self.bindings();
        let literal = self.literal(&bindings);
        if self.fields.is_empty() {
            return quote! {
                <() as #rt::Data>::from_json(value)?;
                ::std::result::Result::Ok(#made #literal)
            };
        }
        let types = self.fields.iter().map(|field| &field.of);
        if !self.named && self.fields.len() == 1 {
            return quote! {
                #(let #bindings = <#types as #rt::Data>::from_json(value)?;)*
                ::std::result::Result::Ok(#made #literal)
            };
        }
        if self.named {
            let names = self.fields.iter().map(|field| &field.name);
            return quote! {
                let members = #rt::members(value)?;
                #(
                    let #bindings = <#types as #rt::Data>::from_json(#rt::member(members, #names))
                        .map_err(|error| error.in_member(#names))?;
                )*
                ::std::result::Result::Ok(#made #literal)
            };
        }
        let count = self.fields.len();
        let places = 0..count;
        let names = self.fields.iter().map(|field| &field.name);
        quote! {
            let elements = #rt::elements(value, #count)?;
            #(
                let #bindings = <#types as #rt::Data>::from_json(#rt::element(elements, #places))
                    .map_err(|error| error.in_member(#names))?;
            )*
            ::std::result::Result::Ok(#made #literal)
        }
    }
}
