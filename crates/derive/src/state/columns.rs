//! What writes and reads columns.

use proc_macro2::TokenStream;
use quote::quote;

use super::tree::{Form, Synced, SyncedField, Tree};

impl Tree<'_> {
    pub(super) fn columns(&self) -> TokenStream {
        let rt = &self.rt;
        let mask_bytes = self.mask_bytes();
        let known: u64 = self.open().fold(0, |mask, synced| mask | synced.bit);
        let keys = self.open().map(|Synced { field, shadow, bit }| {
            let of = &field.of;
            quote! {
                if <#of as #rt::State>::stamps(&shadow.#shadow).after(lens) {
                    if !<#of as #rt::State>::COLUMN {
                        return ::std::option::Option::None;
                    }
                    key |= #bit;
                }
            }
        });
        let writes = self.open().map(|Synced { field, shadow, bit }| {
            let of = &field.of;
            quote! {
                if key & #bit != 0 && <#of as #rt::State>::COLUMN {
                    let inner = move |place: usize| &at(place).#shadow;
                    // What changed in any of them is sent of all: it is so few bytes that it costs
                    // less than saying which.
                    let inner_key = (0..count).fold(0, |key, place| {
                        key | <#of as #rt::State>::column_key(inner(place), lens).unwrap_or(0)
                    });
                    <#of as #rt::State>::write_columns(count, inner, inner_key, lens, out);
                }
            }
        });
        let reads = self.open().map(|Synced { field, bit, .. }| {
            let SyncedField { member, of, form, .. } = field;
            let read = match form {
                Form::Plain | Form::Mask { .. } => quote! {
                    let mut inner: ::std::vec::Vec<&mut #of> = targets.iter_mut().map(|target| &mut target.#member).collect();
                    <#of as #rt::State>::read_columns(&mut inner, reader)?;
                },
                Form::Quantized => quote! {
                    let mut steps: ::std::vec::Vec<#of> = targets.iter().map(|target| <#of>::of(target.#member)).collect();
                    <#of as #rt::State>::read_columns(&mut steps.iter_mut().collect::<::std::vec::Vec<_>>(), reader)?;
                    for (target, steps) in targets.iter_mut().zip(steps) {
                        target.#member = steps.value();
                    }
                },
            };
            quote!(if mask & #bit != 0 { #read })
        });
        let read_mask = self.read_mask(known);
        quote! {
            #[inline]
            fn column_key(shadow: &Self::Shadow, lens: #rt::Lens) -> ::std::option::Option<u64> {
                if <Self as #rt::State>::HAS_OWNED && lens.part != #rt::Part::Shared {
                    return ::std::option::Option::None;
                }
                #[allow(unused_mut)]
                let mut key = 0_u64;
                let _ = shadow;
                #(#keys)*
                ::std::option::Option::Some(key)
            }
            fn write_columns<'a>(
                count: usize,
                at: impl ::std::ops::Fn(usize) -> &'a Self::Shadow + ::std::marker::Copy,
                key: u64,
                lens: #rt::Lens,
                out: &mut ::std::vec::Vec<u8>,
            ) {
                let _ = (count, at, lens);
                out.extend_from_slice(&key.to_le_bytes()[..#mask_bytes]);
                #(#writes)*
            }
            fn read_columns(
                targets: &mut [&mut Self],
                reader: &mut #rt::Reader<'_>,
            ) -> ::std::result::Result<(), #rt::DecodeError> {
                #read_mask
                let _ = targets;
                #(#reads)*
                ::std::result::Result::Ok(())
            }
        }
    }
}
