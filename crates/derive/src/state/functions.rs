//! Calls of the functions that attributes name.
//!
//! Each is called through a trait that only functions with the right signature implement. For any
//! other, the compiler reports at the function's name in the attribute what its signature must be,
//! instead of a bound inside Playfield. A second implementation, which no function matches, keeps
//! the compiler from choosing the first one before it has looked at the function.

use proc_macro2::TokenStream;
use quote::{ToTokens as _, quote, quote_spanned};
use syn::spanned::Spanned as _;
use syn::{Ident, Path};

use super::tree::{Form, Look, Rule, SyncedField, Tree};

impl Tree<'_> {
    pub(super) fn functions(&self) -> TokenStream {
        let fields = self.synced.iter().map(|synced| &synced.field);
        fields
            .filter_map(|field| match (&field.form, &field.view) {
                (Form::Mask { function, name }, _) => Some(self.mask(field, function, name)),
                (_, Some(look)) => match &look.rule {
                    Rule::Function { path, name } => Some(self.sees(&field.name, look, path, name)),
                    Rule::Place { .. } => None,
                },
                _ => None,
            })
            .collect()
    }

    fn mask(&self, field: &SyncedField, function: &Path, name: &Ident) -> TokenStream {
        let (of, written) = (&field.of, plain(function));
        let what = format!(
            "the field `{}` of `{}` can't be masked by `{written}`",
            field.name, self.ident
        );
        let must = format!("`{written}` must be a `fn({{V}}) -> {{O}}`");
        // The function's path is resolved where these are in scope.
        let [masks, masked, value] =
            ["Masks", "masked", "value"].map(|base| self.names.fresh(base));
        let call = quote_spanned!(function.span()=> #masked::<_, #of, _, _, _>(#value, #function));
        quote! {
            #[inline]
            fn #name(#value: &#of) -> #of {
                #[diagnostic::on_unimplemented(message = #what, label = #must)]
                trait #masks<V, O, F> {
                    fn masked(function: F, value: V) -> O;
                }
                #[diagnostic::do_not_recommend]
                impl<'v, T, F: ::std::ops::Fn(&'v T) -> T> #masks<&'v T, T, F> for (&'v T, T) {
                    #[inline]
                    fn masked(function: F, value: &'v T) -> T {
                        function(value)
                    }
                }
                #[diagnostic::do_not_recommend]
                impl<V, O, F> #masks<V, O, F> for ((), ()) {
                    fn masked(_: F, _: V) -> O {
                        ::std::unreachable!("no function takes nothing and masks something")
                    }
                }
                #[inline]
                fn #masked<V, O, X, R, F: ::std::ops::Fn(X) -> R>(value: V, function: F) -> O
                where
                    (X, R): #masks<V, O, F>,
                {
                    <(X, R)>::masked(function, value)
                }
                #call
            }
        }
    }

    fn sees(&self, field: &str, look: &Look, path: &Path, name: &Ident) -> TokenStream {
        let (rt, Look { by, viewer, viewer_of, .. }) = (&self.rt, look);
        let written = plain(path);
        let what =
            format!("`{written}` can't decide who sees the field `{field}` of `{}`", self.ident);
        let must = format!(
            "`{written}` must be a `fn({{V}}, {{W}}) -> bool`: what is seen, then the viewer's entry in `{viewer}`"
        );
        let [sees, seen, value, entry] =
            ["Sees", "seen", "value", "entry"].map(|base| self.names.fresh(base));
        let call = quote_spanned!(path.span()=> #seen(#value, #entry, #path));
        quote! {
            #[inline]
            fn #name(
                #value: &<#by as #rt::Decided>::Item,
                #entry: &<#rt::ByEntry<#viewer_of> as #rt::Decided>::Item,
            ) -> bool {
                #[diagnostic::on_unimplemented(message = #what, label = #must)]
                trait #sees<V, W, F> {
                    fn sees(function: F, value: V, viewer: W) -> bool;
                }
                #[diagnostic::do_not_recommend]
                impl<'v, 'w, V, W, F: ::std::ops::Fn(&'v V, &'w W) -> bool> #sees<&'v V, &'w W, F>
                    for (&'v V, &'w W, bool)
                {
                    #[inline]
                    fn sees(function: F, value: &'v V, viewer: &'w W) -> bool {
                        function(value, viewer)
                    }
                }
                #[diagnostic::do_not_recommend]
                impl<V, W, F> #sees<V, W, F> for ((), (), ()) {
                    fn sees(_: F, _: V, _: W) -> bool {
                        false
                    }
                }
                #[inline]
                fn #seen<V, W, X, Y, R, F: ::std::ops::Fn(X, Y) -> R>(value: V, viewer: W, function: F) -> bool
                where
                    (X, Y, R): #sees<V, W, F>,
                {
                    <(X, Y, R)>::sees(function, value, viewer)
                }
                #call
            }
        }
    }
}

/// A path as the user writes it.
fn plain(path: &Path) -> String {
    path.to_token_stream().to_string().replace(' ', "")
}
