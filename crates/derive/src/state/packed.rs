//! Writing whole values and patches in `packed`.

use proc_macro2::TokenStream;
use quote::quote;

use super::tree::{Look, Synced, Tree};

impl Tree<'_> {
    pub(super) fn write(&self) -> TokenStream {
        let rt = &self.rt;
        let mask_bytes = self.mask_bytes();
        let fulls = self.open().map(|Synced { field, shadow, place, .. }| {
            let of = &field.of;
            quote!(<#of as #rt::Write>::write_full(&shadow.#shadow, lens.field(#place), out);)
        });
        // Every value takes at least one byte, so counts can be checked against the bytes left.
        let pad = self.open().next().is_none().then(|| quote!(out.push(0);));
        let owner_writes: Vec<TokenStream> = self
            .owned()
            .map(|Synced { field, shadow, place, bit }| {
                let of = &field.of;
                let write = match &field.view {
                    Some(Look { by, .. }) => quote!(<#by as #rt::Viewed>::write_patch),
                    None => quote!(<#of as #rt::Write>::write_owner_patch),
                };
                quote! {
                    let start = out.len();
                    if #write(&shadow.#shadow, lens.field(#place), out) {
                        mask |= #bit;
                    } else {
                        out.truncate(start);
                    }
                }
            })
            .collect();
        let put_mask = quote!(out[mask_at..mask_at + #mask_bytes].copy_from_slice(&mask.to_le_bytes()[..#mask_bytes]););
        let owner_full = (!owner_writes.is_empty()).then(|| {
            quote! {
                if lens.part == #rt::Part::All {
                    let lens = #rt::Lens { since: 0, ..lens };
                    let mask_at = out.len();
                    out.extend_from_slice(&[0; #mask_bytes]);
                    let mut mask = 0_u64;
                    #(#owner_writes)*
                    #put_mask
                }
            }
        });
        let open_writes = self.open().map(|Synced { field, shadow, place, bit }| {
            let of = &field.of;
            quote! {
                if <#of as #rt::Compare>::stamps(&shadow.#shadow).after(lens) {
                    let start = out.len();
                    if <#of as #rt::Write>::write_patch(&shadow.#shadow, lens.field(#place), out) {
                        mask |= #bit;
                    } else {
                        out.truncate(start);
                    }
                }
            }
        });
        let owner_patch = (!owner_writes.is_empty()).then(|| {
            quote! {
                if lens.part != #rt::Part::Shared {
                    #(#owner_writes)*
                }
            }
        });
        quote! {
            fn write_full(shadow: &Self::Shadow, lens: #rt::Lens, out: &mut ::std::vec::Vec<u8>) {
                let _ = (shadow, lens);
                #(#fulls)*
                #pad
                #owner_full
            }
            #[inline]
            fn write_patch(shadow: &Self::Shadow, lens: #rt::Lens, out: &mut ::std::vec::Vec<u8>) -> bool {
                let _ = (shadow, lens);
                let mask_at = out.len();
                out.extend_from_slice(&[0; #mask_bytes]);
                let mut mask = 0_u64;
                #(#open_writes)*
                #owner_patch
                #put_mask
                mask != 0
            }
        }
    }
}
