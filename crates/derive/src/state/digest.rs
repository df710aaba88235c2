//! What takes digests of a copy and of the shadow.

use proc_macro2::TokenStream;
use quote::quote;

use super::tree::{Look, Synced, Tree};

impl Tree<'_> {
    pub(super) fn digest(&self) -> TokenStream {
        let rt = &self.rt;
        let weighed = |place: usize, digest: TokenStream| {
            let place = place as u64;
            quote!(sum = sum.wrapping_add(::core::primitive::u64::wrapping_mul(#digest, const { #rt::weight(#place) }));)
        };
        let of_copy = self.synced.iter().enumerate().map(|(place, Synced { field, .. })| {
            let (of, value) = (&field.of, field.borrowed_plainly());
            let digest = match &field.view {
                Some(Look { by, .. }) => quote!(<#by as #rt::Viewed>::copy_digest(#value)),
                None if field.owner => {
                    let default = field.default(rt);
                    quote!(#rt::of_private(<#of as #rt::State>::digest(#value), <#of as #rt::State>::digest(#default)))
                }
                None => quote!(<#of as #rt::State>::digest(#value)),
            };
            weighed(place, digest)
        });
        let of_shadow = self.synced.iter().enumerate().map(|(place, Synced { field, shadow, .. })| {
            let of = &field.of;
            let digest = match &field.view {
                Some(Look { by, .. }) => quote!(<#by as #rt::Viewed>::shadow_digest(&shadow.#shadow, lens)),
                None if field.owner => {
                    let default = field.default(rt);
                    quote!(match <#of as #rt::State>::owner_digest(&shadow.#shadow, lens) {
                        0 => 0,
                        digest => #rt::of_private(digest, <#of as #rt::State>::digest(#default)),
                    })
                }
                None => quote!(<#of as #rt::State>::shadow_digest(&shadow.#shadow, lens)),
            };
            weighed(place, digest)
        });
        quote! {
            fn digest(&self) -> u64 {
                #[allow(unused_mut)]
                let mut sum = 0_u64;
                #(#of_copy)*
                sum
            }
            fn shadow_digest(shadow: &Self::Shadow, lens: #rt::Lens) -> u64 {
                let _ = (shadow, lens);
                if lens.part == #rt::Part::Owned && !<Self as #rt::State>::HAS_OWNED {
                    return 0;
                }
                #[allow(unused_mut)]
                let mut sum = 0_u64;
                #(#of_shadow)*
                sum
            }
        }
    }
}
