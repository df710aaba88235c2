//! Names of generated items and locals.

use std::collections::HashSet;

use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::{ToTokens, format_ident};

/// The identifiers in the input of a derive.
///
/// Types and functions that the input names are resolved among the items that are generated from
/// it. A generated item of the same name would shadow the user's, so it gets a name that does not
/// occur in the input.
pub(crate) struct Names(HashSet<String>);

impl Names {
    pub(crate) fn new(input: &impl ToTokens) -> Self {
        let mut names = HashSet::new();
        collect(input.to_token_stream(), &mut names);
        Self(names)
    }

    /// An identifier that does not occur in the input: `base`, followed by as many `_` as
    /// necessary. Different bases that end in a letter or a digit never give the same name.
    pub(crate) fn fresh(&self, base: &str) -> Ident {
        let mut name = base.to_owned();
        while self.0.contains(&name) {
            name.push('_');
        }
        format_ident!("{name}")
    }
}

fn collect(tokens: TokenStream, names: &mut HashSet<String>) {
    for token in tokens {
        match token {
            TokenTree::Ident(ident) => {
                names.insert(ident.to_string());
            }
            TokenTree::Group(group) => collect(group.stream(), names),
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}
