//! What writes whole values and patches in JSON.

use proc_macro2::TokenStream;
use quote::quote;

use super::tree::{Look, Synced, SyncedField, Tree};

impl Tree<'_> {
    pub(super) fn json(&self) -> TokenStream {
        let rt = &self.rt;
        let members = self.synced.iter().map(|Synced { field, shadow, .. }| {
            let SyncedField { name, of, owner, view, .. } = field;
            let value = if let Some(Look { by, .. }) = view {
                quote!(<#by as #rt::Viewed>::json_full(&shadow.#shadow, lens, out))
            } else if *owner {
                quote!(<#of as #rt::State>::json_owner_full(&shadow.#shadow, lens, out))
            } else {
                quote!({ <#of as #rt::State>::json_full(&shadow.#shadow, lens, out); true })
            };
            quote! {
                let start = out.len();
                if comma {
                    out.push(b',');
                }
                #rt::write_text(out, #name);
                out.push(b':');
                if #value {
                    comma = true;
                } else {
                    out.truncate(start);
                }
            }
        });
        let patches = self.synced.iter().map(|Synced { field, shadow, .. }| {
            let SyncedField { name, of, owner, view, .. } = field;
            let write = match view {
                Some(Look { by, .. }) => quote!(<#by as #rt::Viewed>::json_patch),
                None => quote!(<#of as #rt::State>::json_owner_patch),
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
                        ops.member(#name, |ops| <#of as #rt::State>::json_patch(&shadow.#shadow, lens, ops));
                    }
                }
            }
        });
        quote! {
            fn json_full(shadow: &Shadow, lens: #rt::Lens, out: &mut ::std::vec::Vec<u8>) {
                let lens = #rt::Lens { since: 0, ..lens };
                let _ = (shadow, lens);
                out.push(b'{');
                let mut comma = false;
                #(#members)*
                let _ = comma;
                out.push(b'}');
            }
            fn json_patch(shadow: &Shadow, lens: #rt::Lens, ops: &mut #rt::Ops<'_>) {
                let _ = (shadow, lens, &ops);
                #(#patches)*
            }
        }
    }
}
