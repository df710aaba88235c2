//! What writes whole values and patches in `packed`.

use proc_macro2::TokenStream;
use quote::quote;

use super::tree::{Look, Synced, Tree};

impl Tree<'_> {
    pub(super) fn write(&self) -> TokenStream {
        let rt = &self.rt;
        let mask_bytes = self.mask_bytes();
        let fulls = self.open().map(|Synced { field, shadow, .. }| {
            let of = &field.of;
            quote!(<#of as #rt::State>::write_full(&shadow.#shadow, lens, out);)
        });
        // Every value takes a byte at least, so that counts can be checked against what is left.
        let pad = self.open().next().is_none().then(|| quote!(out.push(0);));
        let owner_writes: Vec<TokenStream> = self
            .owned()
            .map(|Synced { field, shadow, bit }| {
                let of = &field.of;
                let write = match &field.view {
                    Some(Look { by, .. }) => quote!(<#by as #rt::Viewed>::write_patch),
                    None => quote!(<#of as #rt::State>::write_owner_patch),
                };
                quote! {
                    let start = out.len();
                    if #write(&shadow.#shadow, lens, out) {
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
        let open_writes = self.open().map(|Synced { field, shadow, bit }| {
            let of = &field.of;
            quote! {
                if <#of as #rt::State>::stamps(&shadow.#shadow).after(lens) {
                    let start = out.len();
                    if <#of as #rt::State>::write_patch(&shadow.#shadow, lens, out) {
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
