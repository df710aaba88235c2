//! The live state as a player may see it.

use proc_macro2::TokenStream;
use quote::quote;

use super::tree::{Form, Look, Rule, Synced, SyncedField, Tree};

impl Tree<'_> {
    pub(super) fn view(&self) -> TokenStream {
        let rt = &self.rt;
        let members = self.synced.iter().map(|Synced { field, .. }| {
            let SyncedField { name, of, owner, .. } = field;
            let value = field.borrowed(false);
            let sight = quote!(sight.at(#name));
            if let Some(Look { by, rule, viewer, .. }) = &field.view {
                let seen = match rule {
                    Rule::Function { name: function, .. } => quote! {
                        let sees = |value: &<#by as #rt::Decided>::Item| viewer.is_some_and(|viewer| #function(value, viewer));
                        let seen = <#by as #rt::Decided>::view(#value, #sight, sees);
                    },
                    Rule::Place { .. } => quote!(let seen = <#by>::view(#value, #sight, viewer);),
                };
                return quote! {
                    let viewer = self.#viewer.of_viewer(sight.viewer);
                    #seen
                    if let ::std::option::Option::Some(value) = seen {
                        members.insert(::std::string::String::from(#name), value);
                    }
                };
            }
            if let Form::Mask { .. } = field.form && !owner {
                let plain = field.borrowed_plainly();
                let value = quote!(if sight.is_copy {
                    <#of as #rt::Compare>::view(#plain, #sight)
                } else {
                    <#of as #rt::Compare>::view(#value, #sight)
                });
                quote!(members.insert(::std::string::String::from(#name), #value);)
            } else if *owner {
                quote! {
                    if let ::std::option::Option::Some(value) = <#of as #rt::Compare>::owner_view(#value, #sight) {
                        members.insert(::std::string::String::from(#name), value);
                    }
                }
            } else {
                quote!(members.insert(::std::string::String::from(#name), <#of as #rt::Compare>::view(#value, #sight));)
            }
        });
        quote! {
            fn view(&self, sight: #rt::Sight<'_>) -> #rt::Value {
                let _ = sight;
                #[allow(unused_mut)]
                let mut members = #rt::JsonMap::new();
                #(#members)*
                #rt::Value::Object(members)
            }
        }
    }
}
