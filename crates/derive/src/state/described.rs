//! What writes whole values and patches in the formats that describe themselves.

use proc_macro2::TokenStream;
use quote::quote;

use super::tree::{Look, Synced, SyncedField, Tree};

impl Tree<'_> {
    pub(super) fn described(&self) -> TokenStream {
        let rt = &self.rt;
        let members = self.synced.iter().map(|Synced { field, shadow, .. }| {
            let SyncedField { name, of, owner, view, .. } = field;
            if let Some(Look { by, .. }) = view {
                quote!(object.field_if(#name, |out| <#by as #rt::Viewed>::tree_full(&shadow.#shadow, lens, out));)
            } else if *owner {
                quote!(object.field_if(#name, |out| <#of as #rt::State>::tree_owner_full(&shadow.#shadow, lens, out));)
            } else {
                quote!(<#of as #rt::State>::tree_full(&shadow.#shadow, lens, object.field(#name));)
            }
        });
        let count = self.synced.len();
        let patches = self.synced.iter().map(|Synced { field, shadow, .. }| {
            let SyncedField { name, of, owner, view, .. } = field;
            let write = match view {
                Some(Look { by, .. }) => quote!(<#by as #rt::Viewed>::tree_patch),
                None => quote!(<#of as #rt::State>::tree_owner_patch),
            };
            if *owner || view.is_some() {
                quote! {
                    if lens.part != #rt::Part::Shared {
                        ops.member(#name, |ops| #write(&shadow.#shadow, lens, ops));
                    }
                }
            } else {
                quote! {
                    if <#of as #rt::State>::stamps(&shadow.#shadow).after(lens) {
                        ops.member(#name, |ops| <#of as #rt::State>::tree_patch(&shadow.#shadow, lens, ops));
                    }
                }
            }
        });
        quote! {
            fn tree_full(shadow: &Self::Shadow, lens: #rt::Lens, out: #rt::TreeWriter<'_>) {
                let lens = #rt::Lens { since: 0, ..lens };
                let _ = (shadow, lens);
                #[allow(unused_mut)]
                let mut object = out.object(#count);
                #(#members)*
                object.end();
            }
            fn tree_patch(shadow: &Self::Shadow, lens: #rt::Lens, ops: &mut #rt::Ops<'_, '_>) {
                let _ = (shadow, lens, &ops);
                #(#patches)*
            }
        }
    }
}
