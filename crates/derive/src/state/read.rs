//! Reading whole values and patches in `packed`.

use proc_macro2::TokenStream;
use quote::quote;

use super::tree::{Form, Look, Synced, SyncedField, Tree, wire_form};
use crate::fields::{Field, Policy};

impl Tree<'_> {
    pub(super) fn read(&self) -> TokenStream {
        let rt = &self.rt;
        let known: u64 = self.synced.iter().fold(0, |mask, synced| mask | synced.bit);
        let fields = self.all.iter().map(|field| {
            let Field { member, policy, quantize, .. } = field;
            let (of, _) = wire_form(rt, &self.names, field);
            let value = quantize.as_ref().map(|_| quote!(.value()));
            match policy {
                Policy::Everyone => {
                    quote!(#member: <#of as #rt::Read>::read_full(reader, part)?#value)
                }
                Policy::Owner | Policy::View if quantize.is_none() => {
                    quote!(#member: #rt::copy_default::<#of>())
                }
                Policy::Owner | Policy::View | Policy::Hidden | Policy::Skip => {
                    quote!(#member: ::std::default::Default::default())
                }
            }
        });
        let emptied = self.synced.iter().map(|Synced { field, .. }| {
            let SyncedField { member, of, form, .. } = field;
            match form {
                Form::Quantized if field.is_private() => {
                    quote!(self.#member = ::std::default::Default::default();)
                }
                Form::Quantized => quote!(),
                // A player may or may not see it. If not, it has the same value as in a struct that
                // was read whole.
                _ if field.is_private() => quote!(self.#member = #rt::copy_default::<#of>();),
                _ => quote!(<#of as #rt::Read>::empty_maps(&mut self.#member);),
            }
        });
        let pad = self.open().next().is_none().then(|| quote!(<() as #rt::Data>::decode(reader)?;));
        let read_mask = self.read_mask(known);
        let owner_reads: Vec<TokenStream> = self
            .owned()
            .map(|Synced { field, bit, .. }| {
                let (of, name) = (&field.of, &field.name);
                let read = field.read_into(|place| match &field.view {
                    Some(Look { by, .. }) => {
                        quote!(<#by as #rt::Viewed>::read_patch(#place, reader)?)
                    }
                    None => quote!(<#of as #rt::Read>::read_owner_patch(#place, reader, watch)?),
                });
                quote!(if mask & #bit != 0 {
                    watch.enter(#name);
                    #read
                    watch.leave();
                })
            })
            .collect();
        let owner_bits: u64 = self.owned().fold(0, |mask, synced| mask | synced.bit);
        let read_owner_mask = self.read_mask(owner_bits);
        let owner_full = (!owner_reads.is_empty()).then(|| {
            quote! {
                if part == #rt::Part::All {
                    let watch = &mut #rt::ChangeWatch::idle();
                    #read_owner_mask
                    #(#owner_reads)*
                }
            }
        });
        let open_reads = self.open().map(|Synced { field, bit, .. }| {
            let (of, name) = (&field.of, &field.name);
            let read = field.read_into(
                |place| quote!(<#of as #rt::Read>::read_patch(#place, reader, part, watch)?),
            );
            quote!(if mask & #bit != 0 {
                watch.enter(#name);
                #read
                watch.leave();
            })
        });
        let owner_refusal = (!owner_reads.is_empty()).then(|| {
            quote! {
                if part == #rt::Part::Shared && mask & #owner_bits != 0 {
                    return ::std::result::Result::Err(
                        #rt::DecodeError::new(at, "a field that only its owner sees was sent in the shared part"),
                    );
                }
            }
        });
        quote! {
            fn read_full(reader: &mut #rt::Reader<'_>, part: #rt::Part) -> ::std::result::Result<Self, #rt::DecodeError> {
                #[allow(unused_mut)]
                let mut this = Self { #(#fields),* };
                #pad
                let _ = part;
                #owner_full
                ::std::result::Result::Ok(this)
            }
            fn empty_maps(&mut self) {
                #(#emptied)*
            }
            fn read_patch(
                &mut self,
                reader: &mut #rt::Reader<'_>,
                part: #rt::Part,
                watch: &mut #rt::ChangeWatch<'_>,
            ) -> ::std::result::Result<(), #rt::DecodeError> {
                let this = self;
                let _ = (&this, part, &watch);
                #read_mask
                #owner_refusal
                #(#open_reads)*
                #(#owner_reads)*
                ::std::result::Result::Ok(())
            }
        }
    }

    /// Reads `mask`, in which only bits of `known` may be set; `at` is its offset.
    pub(super) fn read_mask(&self, known: u64) -> TokenStream {
        let rt = &self.rt;
        let mask_bytes = self.mask_bytes();
        quote! {
            let at = reader.offset();
            let mut bytes = [0_u8; 8];
            bytes[..#mask_bytes].copy_from_slice(reader.take(#mask_bytes)?);
            let mask = u64::from_le_bytes(bytes);
            if mask & !#known != 0 {
                return ::std::result::Result::Err(
                    #rt::DecodeError::new(at, ::std::format!("the mask {mask:#x} marks fields that are not allowed here")),
                );
            }
        }
    }
}
