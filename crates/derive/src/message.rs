//! `#[derive(Message)]`.

use std::ops::RangeInclusive;

use proc_macro2::TokenStream;
use quote::quote;
use syn::meta::ParseNestedMeta;
use syn::spanned::Spanned;
use syn::{DeriveInput, Error, Lit, Meta, Type, parse_quote};

use crate::data::expand_data;
use crate::fields::plain_name;

/// Implements `Data` and `Message`.
pub(crate) fn expand_message(input: &DeriveInput) -> syn::Result<TokenStream> {
    let data = expand_data(input)?;
    let rt = crate::rt();
    let ident = &input.ident;
    let name = plain_name(ident);
    let mut replies = input.attrs.iter().filter(|attribute| attribute.path().is_ident("reply"));
    let reply: Type = match (replies.next(), replies.next()) {
        (None, _) => parse_quote!(()),
        (Some(reply), None) => reply.parse_args()?,
        (Some(_), Some(second)) => {
            return Err(syn::Error::new_spanned(second, "a message has one reply"));
        }
    };
    let rate = rate(input)?.map(|Rate { interval_ns, burst }| {
        quote! {
            const RATE: ::std::option::Option<#rt::MessageRate> = ::std::option::Option::Some(
                #rt::MessageRate { interval_ns: #interval_ns, burst: #burst }
            );
        }
    });
    Ok(quote! {
        #data

        #[automatically_derived]
        impl #rt::Message for #ident {
            const NAME: &'static str = #name;
            type Reply = #reply;
            #rate
        }
    })
}

/// The parts of `#[message(rate = 10, burst = 20)]`.
struct Rate {
    interval_ns: u64,
    burst: u64,
}

/// The range of `rate`, in messages per second.
const RATES: RangeInclusive<f64> = 0.001..=1_000_000.0;
/// The range of `burst`.
const BURSTS: RangeInclusive<u64> = 1..=1_000_000;

const RATE_USAGE: &str = "write `#[message(rate = 10)]`, in messages per second, or \
                          `#[message(rate = 10, burst = 20)]`";

/// Reads `#[message(…)]`.
fn rate(input: &DeriveInput) -> syn::Result<Option<Rate>> {
    let (mut rate, mut burst) = (None, None);
    for attribute in input.attrs.iter().filter(|attribute| attribute.path().is_ident("message")) {
        if !matches!(attribute.meta, Meta::List(_)) {
            return Err(Error::new_spanned(attribute, RATE_USAGE));
        }
        attribute.parse_nested_meta(|meta| {
            let twice = if meta.path.is_ident("rate") {
                rate.replace(per_second(&meta)?).is_some()
            } else if meta.path.is_ident("burst") {
                burst.replace((meta.path.span(), at_once(&meta)?)).is_some()
            } else {
                return Err(meta.error(format!("unknown option; {RATE_USAGE}")));
            };
            if twice { Err(meta.error("this is given twice")) } else { Ok(()) }
        })?;
    }
    match (rate, burst) {
        (Some(rate), burst) => {
            let burst = burst.map_or_else(|| (rate.ceil() as u64).max(1), |(_, burst)| burst);
            Ok(Some(Rate { interval_ns: (1e9 / rate).ceil() as u64, burst }))
        }
        (None, Some((span, _))) => {
            Err(Error::new(span, format!("`burst` needs a `rate`: {RATE_USAGE}")))
        }
        (None, None) => Ok(None),
    }
}

fn per_second(meta: &ParseNestedMeta<'_>) -> syn::Result<f64> {
    let literal: Lit = meta.value()?.parse()?;
    let rate = match &literal {
        Lit::Int(number) if number.suffix().is_empty() => number.base10_parse().ok(),
        Lit::Float(number) if number.suffix().is_empty() => number.base10_parse().ok(),
        _ => None,
    };
    rate.filter(|rate| RATES.contains(rate)).ok_or_else(|| {
        let (least, most) = (RATES.start(), RATES.end());
        let text = format!("`rate` is a number of messages per second, from {least} to {most}");
        Error::new_spanned(literal, text)
    })
}

fn at_once(meta: &ParseNestedMeta<'_>) -> syn::Result<u64> {
    let literal: Lit = meta.value()?.parse()?;
    let burst = match &literal {
        Lit::Int(number) if number.suffix().is_empty() => number.base10_parse().ok(),
        _ => None,
    };
    burst.filter(|burst| BURSTS.contains(burst)).ok_or_else(|| {
        let (least, most) = (BURSTS.start(), BURSTS.end());
        let text = format!("`burst` is a whole number of messages, from {least} to {most}");
        Error::new_spanned(literal, text)
    })
}
