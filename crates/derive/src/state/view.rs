//! What shows the live state as a player may see it.

use proc_macro2::TokenStream;
use quote::quote;

use super::tree::{Look, Synced, SyncedField, Tree};

impl Tree<'_> {
    pub(super) fn view(&self) -> TokenStream {
        let rt = &self.rt;
        let members = self.synced.iter().map(|Synced { field, .. }| {
            let SyncedField { name, of, owner, .. } = field;
            let value = field.borrowed(false);
            if let Some(Look { by, function, viewer, .. }) = &field.view {
                return quote! {
                    let viewer = self.#viewer.of_viewer(sight.viewer);
                    let sees = |value: &<#by as #rt::Viewed>::Item| viewer.is_some_and(|viewer| #function(value, viewer));
                    if let ::std::option::Option::Some(value) = <#by as #rt::Viewed>::view(#value, sight, sees) {
                        members.insert(::std::string::String::from(#name), value);
                    }
                };
            }
            if *owner {
                quote! {
                    if let ::std::option::Option::Some(value) = <#of as #rt::State>::owner_view(#value, sight) {
                        members.insert(::std::string::String::from(#name), value);
                    }
                }
            } else {
                quote!(members.insert(::std::string::String::from(#name), <#of as #rt::State>::view(#value, sight));)
            }
        });
        quote! {
            fn view(&self, sight: #rt::Sight) -> #rt::Value {
                let _ = sight;
                #[allow(unused_mut)]
                let mut members = #rt::JsonMap::new();
                #(#members)*
                #rt::Value::Object(members)
            }
        }
    }
}
