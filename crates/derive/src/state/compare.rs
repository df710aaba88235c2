//! Comparing the state with its shadow.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::Ident;

use super::tree::{Look, Rule, Synced, Tree, Watched};

impl Tree<'_> {
    pub(super) fn compare(&self) -> TokenStream {
        let (rt, shadow) = (&self.rt, &self.shadow);
        let same = self.open().map(|Synced { field, shadow, .. }| {
            let (of, value) = (&field.of, field.borrowed(false));
            quote!(&& <#of as #rt::Compare>::same_shared(#value, &shadow.#shadow, tracking))
        });
        let binds = self.synced.iter().map(|Synced { field, shadow, .. }| {
            let (of, value) = (field.compared(rt), field.borrowed(true));
            quote!(#shadow: #of::bind(#value, bind))
        });
        let diffs = self.synced.iter().map(|Synced { field, shadow, place, .. }| {
            let (by, value) = (field.compared(rt), field.borrowed(true));
            let to_owner = field.owner.then(|| quote!(.to_owner()));
            quote! {
                let inside = step.field(#place);
                changed |= #by::diff(#value, &mut shadow.#shadow, inside)#to_owner;
            }
        });
        let left_out = self.synced.iter().map(|Synced { field, shadow, .. }| {
            let of = field.compared(rt);
            quote!(#of::left_out(&shadow.#shadow, viewer))
        });
        let watches = self.watches();
        let watch_names: Vec<&Ident> = watches.iter().map(|watch| &watch.name).collect();
        let touches = self.views().map(|(Synced { field, shadow, place, .. }, Look { by, .. })| {
            let (member, touched) = (&field.member, format_ident!("touched_{shadow}"));
            quote!(let #touched = <#by as #rt::Viewed>::touches(&self.#member, &shadow.#shadow, step.field(#place));)
        });
        let moves = watches.iter().map(
            |Watched { name, member, .. }| quote!(let #name = shadow.#name.touches(&self.#member, step);),
        );
        let look = |synced: &Synced,
                    look: &Look,
                    touched: TokenStream,
                    moved: TokenStream,
                    now: TokenStream| {
            let Look { by, rule, viewer, .. } = look;
            let (member, shadow) = (&synced.field.member, &synced.shadow);
            match rule {
                Rule::Function { name, .. } => quote! {
                    <#by as #rt::Decided>::look(&self.#member, &mut shadow.#shadow, &#touched, &self.#viewer, &#moved, #name, #now)
                },
                Rule::Place { .. } => quote! {
                    <#by>::look(&self.#member, &mut shadow.#shadow, &#touched, &self.#viewer, &#moved, #now)
                },
            }
        };
        let first_looks = self.views().map(|(synced, view)| {
            let all = quote!(#rt::Touches::All);
            let look = look(synced, view, all.clone(), all, quote!(now));
            quote!(#look;)
        });
        let recalls = self.views().map(|(Synced { shadow, .. }, Look { by, .. })| {
            quote!(<#by as #rt::Viewed>::recall(&mut shadow.#shadow, bind);)
        });
        let slots = self.synced.iter().map(|Synced { field, shadow, .. }| {
            let of = field.compared(rt);
            quote!(#of::put_slots(&shadow.#shadow, out);)
        });
        let seen = self.views().map(|(Synced { shadow, .. }, Look { by, .. })| {
            quote!(<#by as #rt::Viewed>::put_seen(&shadow.#shadow, out);)
        });
        let looks = self.views().map(|(synced, view)| {
            let (touched, moved) = (format_ident!("touched_{}", synced.shadow), &view.watch);
            let place = synced.place;
            let now = quote!(step.field(#place).now);
            let look = look(synced, view, quote!(#touched), quote!(#moved), now);
            quote!(changed |= #look;)
        });
        let notes: Vec<TokenStream> = watches
            .iter()
            .map(|Watched { name, member, compared }| {
                if *compared {
                    quote!(shadow.#name.note(&self.#member);)
                } else {
                    quote!(shadow.#name.note_uncompared(&mut self.#member);)
                }
            })
            .collect();
        quote! {
            fn bind<B: #rt::Bind>(&mut self, bind: B) -> Self::Shadow {
                let now = bind.now();
                #[allow(unused_mut)]
                let mut shadow = #shadow {
                    stamps: #rt::Stamps::new(now, <Self as #rt::Describe>::HAS_OWNED),
                    #(#binds,)*
                    #(#watch_names: ::std::default::Default::default(),)*
                };
                #(#first_looks)*
                #(#recalls)*
                #(#notes)*
                shadow
            }
            fn put_slots(shadow: &Self::Shadow, out: &mut ::std::vec::Vec<u8>) {
                let _ = (shadow, &out);
                #(#slots)*
                #(#seen)*
            }
            #[inline]
            fn diff(&mut self, shadow: &mut Self::Shadow, step: #rt::Step) -> #rt::Changed {
                let mut changed = #rt::Changed::NO;
                #(#moves)*
                #(#touches)*
                #(#diffs)*
                #(#looks)*
                #(#notes)*
                shadow.stamps.note(changed, step.now);
                changed
            }
            fn same_shared(&self, shadow: &Self::Shadow, tracking: #rt::Tracking) -> bool {
                let _ = (shadow, tracking);
                true #(#same)*
            }
            #[inline]
            fn stamps(shadow: &Self::Shadow) -> #rt::Stamps {
                shadow.stamps
            }
            fn left_out(shadow: &Self::Shadow, viewer: #rt::PlayerId) -> u64 {
                let _ = (shadow, viewer);
                0_u64 #(+ #left_out)*
            }
        }
    }
}
