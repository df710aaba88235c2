//! All of a struct but its skipped fields, as it is in a save.

use proc_macro2::TokenStream;
use quote::quote;

use super::tree::Tree;
use crate::fields::{Field, Policy, plain_name};

impl Tree<'_> {
    /// The saved form is that of the types in memory, whatever the attributes of fields.
    pub(super) fn save(&self) -> TokenStream {
        let rt = &self.rt;
        let name = plain_name(self.ident);
        let saved = || self.all.iter().filter(|field| field.policy != Policy::Skip);
        let shapes = saved().map(|Field { name, of, .. }| {
            quote!(#rt::SavedField {
                name: ::std::borrow::Cow::Borrowed(#name),
                of: <#of as #rt::Save>::saved(),
                default: (&#rt::Added::<#of>::NEW).default(),
            })
        });
        let writes = saved().map(
            |Field { member, of, .. }| quote!(<#of as #rt::Save>::write_save(&self.#member, out);),
        );
        let reads = self.all.iter().map(|Field { member, of, policy, .. }| match policy {
            Policy::Skip => quote!(#member: ::std::default::Default::default()),
            _ => quote!(#member: <#of as #rt::Save>::read_save(reader)?),
        });
        let is_empty = saved().next().is_none();
        let put_pad = is_empty.then(|| quote!(<() as #rt::Data>::encode(&(), out);));
        let get_pad = is_empty.then(|| quote!(<() as #rt::Data>::decode(reader)?;));
        let defaults =
            (!is_empty).then(|| quote!(use #rt::{AddedAsDefault as _, AddedByType as _};));
        let follows = saved().map(
            |Field { name, member, .. }| quote!(kept.follow_field(#name, &self.#member, how);),
        );
        let (kept, how) =
            if is_empty { (quote!(_), quote!(_)) } else { (quote!(kept), quote!(how)) };
        let skips = self.all.iter().any(|field| field.policy == Policy::Skip);
        let skipping = saved().map(|Field { of, .. }| quote!(|| <#of as #rt::Save>::SKIPS));
        quote! {
            const SKIPS: bool = #skips #(#skipping)*;

            fn saved() -> #rt::Saved {
                #defaults
                #rt::Saved::Struct(::std::borrow::Cow::Borrowed(#name), ::std::vec![#(#shapes),*])
            }
            #[inline]
            fn write_save(&self, out: &mut ::std::vec::Vec<u8>) {
                #(#writes)*
                #put_pad
            }
            #[inline]
            fn read_save(reader: &mut #rt::Reader<'_>) -> ::std::result::Result<Self, #rt::DecodeError> {
                #get_pad
                ::std::result::Result::Ok(Self { #(#reads),* })
            }
            fn follow(&self, #kept: &mut #rt::Node, #how: &mut #rt::Follow) {
                #(#follows)*
            }
        }
    }
}
