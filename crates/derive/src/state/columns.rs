//! Writing and reading columns.

use proc_macro2::TokenStream;
use quote::quote;

use super::tree::{Form, Synced, SyncedField, Tree};

impl Tree<'_> {
    pub(super) fn write_columns(&self) -> TokenStream {
        let rt = &self.rt;
        let mask_bytes = self.mask_bytes();
        let keys = self.open().map(|Synced { field, shadow, bit, .. }| {
            let of = &field.of;
            quote! {
                if <#of as #rt::Compare>::stamps(&shadow.#shadow).after(lens) {
                    if !<#of as #rt::Describe>::COLUMN {
                        return ::std::option::Option::None;
                    }
                    key |= #bit;
                }
            }
        });
        let writes = self.open().map(|Synced { field, shadow, place, bit }| {
            let of = &field.of;
            quote! {
                if key & #bit != 0 && <#of as #rt::Describe>::COLUMN {
                    let lens = lens.field(#place);
                    let inner = move |place: usize| &at(place).#shadow;
                    // A part that changed in any of them is sent for all: its few bytes cost less
                    // than naming the entries.
                    let inner_key = (0..count).fold(0, |key, place| {
                        key | <#of as #rt::Write>::column_key(inner(place), lens).unwrap_or(0)
                    });
                    <#of as #rt::Write>::write_columns(count, inner, inner_key, lens, out);
                }
            }
        });
        quote! {
            #[inline]
            fn column_key(shadow: &Self::Shadow, lens: #rt::Lens) -> ::std::option::Option<u64> {
                if <Self as #rt::Describe>::HAS_OWNED && lens.part != #rt::Part::Shared {
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
        }
    }

    pub(super) fn read_columns(&self) -> TokenStream {
        let rt = &self.rt;
        let known: u64 = self.open().fold(0, |mask, synced| mask | synced.bit);
        let reads = self.open().map(|Synced { field, bit, .. }| {
            let SyncedField { member, name, of, form, .. } = field;
            let read = match form {
                Form::Plain | Form::Mask { .. } => quote! {
                    let mut inner: ::std::vec::Vec<&mut #of> = targets.iter_mut().map(|target| &mut target.#member).collect();
                    <#of as #rt::Read>::read_columns(&mut inner, reader, watch)?;
                },
                Form::Quantized => quote! {
                    let mut steps: ::std::vec::Vec<#of> = targets.iter().map(|target| <#of>::of(target.#member)).collect();
                    let mut places: ::std::vec::Vec<_> = steps.iter_mut().collect();
                    <#of as #rt::Read>::read_columns(&mut places, reader, watch)?;
                    for (target, steps) in targets.iter_mut().zip(steps) {
                        target.#member = steps.value();
                    }
                },
            };
            quote!(if mask & #bit != 0 {
                watch.enter(#name);
                #read
                watch.leave();
            })
        });
        let read_mask = self.read_mask(known);
        quote! {
            fn read_columns(
                targets: &mut [&mut Self],
                reader: &mut #rt::Reader<'_>,
                watch: &mut #rt::ChangeWatch<'_>,
            ) -> ::std::result::Result<(), #rt::DecodeError> {
                #read_mask
                let _ = (&targets, &watch);
                #(#reads)*
                ::std::result::Result::Ok(())
            }
        }
    }
}
