//! The digests of a state and of its shadow.

use proc_macro2::TokenStream;
use quote::quote;

use super::tree::{Form, Look, Synced, Tree};

impl Tree<'_> {
    pub(super) fn digest(&self) -> TokenStream {
        let rt = &self.rt;
        let sum = self.sum(|Synced { field, .. }| {
            let (of, value) = (&field.of, field.borrowed_plainly());
            let digest = match (&field.view, &field.form) {
                (Some(Look { by, .. }), _) => quote!(<#by as #rt::Viewed>::copy_digest(#value)),
                _ if field.owner => {
                    let default = field.default_digest(rt);
                    quote!(#rt::of_private(<#of as #rt::Compare>::digest(#value, part), #default))
                }
                (None, Form::Mask { name, .. }) => {
                    // A copy holds what the mask returned.
                    return quote! {
                        if part == #rt::Part::All {
                            <#of as #rt::Compare>::digest(#value, part)
                        } else {
                            <#of as #rt::Compare>::digest(&#name(#value), part)
                        }
                    };
                }
                (None, _) => return quote!(<#of as #rt::Compare>::digest(#value, part)),
            };
            quote!(if part == #rt::Part::All { #digest } else { 0 })
        });
        quote! {
            fn digest(&self, part: #rt::Part) -> u64 {
                let _ = part;
                #sum
            }
        }
    }

    pub(super) fn shadow_digest(&self) -> TokenStream {
        let rt = &self.rt;
        let sum = self.sum(|Synced { field, shadow, .. }| {
            let of = &field.of;
            match &field.view {
                Some(Look { by, .. }) => {
                    quote!(<#by as #rt::Viewed>::shadow_digest(&shadow.#shadow, lens))
                }
                None if field.owner => {
                    let default = field.default_digest(rt);
                    quote!(match <#of as #rt::Write>::owner_digest(&shadow.#shadow, lens) {
                        0 => 0,
                        digest => #rt::of_private(digest, #default),
                    })
                }
                None => quote!(<#of as #rt::Write>::shadow_digest(&shadow.#shadow, lens)),
            }
        });
        quote! {
            fn shadow_digest(shadow: &Self::Shadow, lens: #rt::Lens) -> u64 {
                let _ = (shadow, lens);
                if lens.part == #rt::Part::Owned && !<Self as #rt::Describe>::HAS_OWNED {
                    return 0;
                }
                #sum
            }
        }
    }

    /// The sum of the fields' digests, each times the weight of its place.
    fn sum(&self, digest: impl Fn(&Synced) -> TokenStream) -> TokenStream {
        let rt = &self.rt;
        let terms = self.synced.iter().enumerate().map(|(place, synced)| {
            let (place, digest) = (place as u64, digest(synced));
            quote!(.wrapping_add(::core::primitive::u64::wrapping_mul(#digest, const { #rt::weight(#place) })))
        });
        quote!(0_u64 #(#terms)*)
    }
}
