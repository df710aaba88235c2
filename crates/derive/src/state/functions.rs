//! What stands for the functions that attributes name.
//!
//! Each is called through a trait of its own, which the types that it takes and returns have if
//! they are the right ones. Of others the compiler then says, at the function's name in the
//! attribute, what it must be, and not what some bound within Playfield was. A second
//! implementation, which no function has, keeps the compiler from taking the first for granted
//! before it has looked at the function.

use proc_macro2::TokenStream;
use quote::{ToTokens as _, format_ident, quote, quote_spanned};
use syn::Path;
use syn::spanned::Spanned as _;

use super::tree::{Look, Tree, mask_name};
use crate::fields::Field;

impl Tree<'_> {
    pub(super) fn functions(&self) -> TokenStream {
        let masks =
            self.all.iter().filter_map(|field| Some(self.mask(field, field.mask.as_ref()?)));
        let looks = self.all.iter().filter_map(|field| field.view.as_ref());
        let views = looks
            .zip(self.views())
            .map(|(view, (synced, look))| self.sees(&synced.field.name, &view.function, look));
        masks.chain(views).collect()
    }

    fn mask(&self, field: &Field, function: &Path) -> TokenStream {
        let (name, of, written) = (mask_name(field), &field.of, plain(function));
        let what = format!(
            "the field `{}` of `{}` can't be masked by `{written}`",
            field.name, self.ident
        );
        let must = format!("`{written}` must be a `fn({{V}}) -> {{O}}`");
        let masks = format_ident!("MasksBy_{}", field.name);
        let call = quote_spanned!(function.span()=> masked::<_, #of, _, _, _>(value, #function));
        quote! {
            #[inline]
            fn #name(value: &#of) -> #of {
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
                fn masked<V, O, X, R, F: ::std::ops::Fn(X) -> R>(value: V, function: F) -> O
                where
                    (X, R): #masks<V, O, F>,
                {
                    <(X, R)>::masked(function, value)
                }
                #call
            }
        }
    }

    fn sees(&self, field: &str, function: &Path, look: &Look) -> TokenStream {
        let (rt, Look { by, function: name, viewer, viewer_of, .. }) = (&self.rt, look);
        let written = plain(function);
        let what =
            format!("`{written}` can't say who sees the field `{field}` of `{}`", self.ident);
        let must = format!(
            "`{written}` must be a `fn({{V}}, {{W}}) -> bool`, of what is seen and of the viewer's entry in `{viewer}`"
        );
        let sees = format_ident!("SeesBy_{field}");
        let call = quote_spanned!(function.span()=> sees(value, viewer, #function));
        quote! {
            #[inline]
            fn #name(
                value: &<#by as #rt::Viewed>::Item,
                viewer: &<#rt::ByEntry<#viewer_of> as #rt::Viewed>::Item,
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
                fn sees<V, W, X, Y, R, F: ::std::ops::Fn(X, Y) -> R>(value: V, viewer: W, function: F) -> bool
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

/// A path as one writes it.
fn plain(path: &Path) -> String {
    path.to_token_stream().to_string().replace(' ', "")
}
