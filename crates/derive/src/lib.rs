//! The derive macros `State`, `Data`, `Key`, `Message` and `Packet`, and the attribute `room`.
//!
//! The crates `playfield_state` and `playfield_room` and the guide document how to use them.

mod data;
mod fields;
mod key;
mod message;
mod names;
mod packet;
mod placed;
mod room;
mod state;
mod stub;

use proc_macro::TokenStream;
use quote::quote;
use syn::{DeriveInput, parse_macro_input};

/// Makes a type a state that is synced to clients. See `playfield_state::State`.
///
/// Fields may have `#[sync(owner)]`, `#[sync(hidden)]`, `#[sync(skip)]`, `#[sync(mask =
/// function)]`, `#[sync(view = function, viewer = map)]`, `#[sync(quantize = step)]` (optionally
/// with `range = least..=most`) or `#[sync(angle = step)]`. An enum is atomic: it is compared and
/// sent as a whole. It must also derive `Data` and `Clone`.
#[proc_macro_derive(State, attributes(sync))]
pub fn derive_state(input: TokenStream) -> TokenStream {
    derive(input, state::expand_state, stub::state)
}

/// Makes a struct or an enum an atomic value, which is sent as a whole. See
/// `playfield_state::Data`.
#[proc_macro_derive(Data)]
pub fn derive_data(input: TokenStream) -> TokenStream {
    derive(input, data::expand_data, stub::data)
}

/// Makes a struct of one field a key of maps, and an atomic value. See
/// `playfield_state::Key`.
#[proc_macro_derive(Key)]
pub fn derive_key(input: TokenStream) -> TokenStream {
    derive(input, key::expand_key, stub::key)
}

/// Makes a struct or an enum a message. See `playfield_room::Message`.
#[proc_macro_derive(Message, attributes(reply, message))]
pub fn derive_message(input: TokenStream) -> TokenStream {
    derive(input, message::expand_message, stub::message)
}

/// Makes a struct a packet or a part of one, with its fields in order. See
/// `playfield_wire::packet`.
///
/// The struct may have `#[packet(opcode = 7_u16)]`. Fields may have `#[packet(len = u8)]` (or
/// `u16`, the default, `u32` or `varint`), `#[packet(padded = 16)]`,
/// `#[packet(varint)]` or, the last one, `#[packet(rest)]`.
#[proc_macro_derive(Packet, attributes(packet))]
pub fn derive_packet(input: TokenStream) -> TokenStream {
    derive(input, packet::expand_packet, stub::packet)
}

/// Declares a room type. See `playfield_room::Room`.
#[proc_macro_attribute]
pub fn room(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let arguments = parse_macro_input!(arguments as room::Arguments);
    let as_it_is = proc_macro2::TokenStream::from(item.clone());
    let expanded = syn::parse(item).and_then(|item| room::expand_room(&arguments, &item));
    finish(expanded, || as_it_is)
}

/// Returns the code of a derive or, if it fails, its error and a stub for what others expect of the
/// type.
fn derive(
    input: TokenStream,
    expand: fn(&DeriveInput) -> syn::Result<proc_macro2::TokenStream>,
    stub: fn(&DeriveInput) -> proc_macro2::TokenStream,
) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    finish(expand(&input), || stub(&input))
}

/// Returns the expanded code or, if that failed, the error and a placeholder.
fn finish(
    expanded: syn::Result<proc_macro2::TokenStream>,
    stand_in: impl FnOnce() -> proc_macro2::TokenStream,
) -> TokenStream {
    let expanded = expanded.unwrap_or_else(|error| {
        let (error, stand_in) = (error.to_compile_error(), stand_in());
        quote! {
            #error
            #stand_in
        }
    });
    expanded.into()
}

/// The module that generated code takes its names from. Playfield's own crates can't name the
/// facade.
pub(crate) fn rt() -> proc_macro2::TokenStream {
    match std::env::var("CARGO_PKG_NAME").as_deref() {
        Ok("playfield-wire") => quote!(::playfield_wire),
        Ok("playfield-state") => quote!(::playfield_state::__rt),
        Ok(
            "playfield-room" | "playfield-server" | "playfield-store" | "playfield-client"
            | "playfield-bench" | "playfield-load",
        ) => {
            quote!(::playfield_room::__rt)
        }
        _ => quote!(::playfield::__rt),
    }
}
