//! Values that are compared and sent whole.

use proc_macro2::TokenStream;
use quote::quote;
use syn::Ident;

/// What is compared and sent whole: an enum, or a key. It derives `Data` and `Clone` as well.
pub(crate) fn whole_value(ident: &Ident) -> TokenStream {
    let rt = crate::rt();
    quote! {
        #[automatically_derived]
        impl #rt::State for #ident {
            type Shadow = #rt::Leaf<Self>;

            const UNOWNED: ::std::option::Option<&'static str> = ::std::option::Option::None;
            const HAS_OWNED: bool = false;
            const NESTED_OWNERS: bool = false;
            const COLUMN: bool = true;
            const PLAIN: bool = true;

            fn schema() -> #rt::schema::Type {
                <Self as #rt::Data>::schema()
            }
            fn bind(&mut self, now: u64) -> <Self as #rt::State>::Shadow {
                #rt::Leaf::new(self, now)
            }
            fn diff(&mut self, shadow: &mut <Self as #rt::State>::Shadow, step: #rt::Step) -> #rt::Changed {
                shadow.diff(self, step)
            }
            fn same_shared(&self, shadow: &<Self as #rt::State>::Shadow, _: #rt::Tracking) -> bool {
                #rt::Data::same(shadow.value(), self)
            }
            fn look(&self) -> u64 {
                #rt::Data::digest(self)
            }
            fn stamps(shadow: &<Self as #rt::State>::Shadow) -> #rt::Stamps {
                shadow.stamps()
            }
            fn write_full(shadow: &<Self as #rt::State>::Shadow, _: #rt::Lens, out: &mut ::std::vec::Vec<u8>) {
                #rt::Data::encode(shadow.value(), out);
            }
            fn write_patch(shadow: &<Self as #rt::State>::Shadow, _: #rt::Lens, out: &mut ::std::vec::Vec<u8>) -> bool {
                #rt::Data::encode(shadow.value(), out);
                true
            }
            fn column_key(_: &<Self as #rt::State>::Shadow, _: #rt::Lens) -> ::std::option::Option<u64> {
                ::std::option::Option::Some(1)
            }
            fn tree_full(shadow: &<Self as #rt::State>::Shadow, _: #rt::Lens, out: #rt::TreeWriter<'_>) {
                #rt::Data::to_tree(shadow.value(), out);
            }
            fn tree_patch(shadow: &<Self as #rt::State>::Shadow, _: #rt::Lens, ops: &mut #rt::Ops<'_, '_>) {
                ops.set(|out| #rt::Data::to_tree(shadow.value(), out));
            }
            fn read_full(reader: &mut #rt::Reader<'_>, _: #rt::Part) -> ::std::result::Result<Self, #rt::DecodeError> {
                <Self as #rt::Data>::decode(reader)
            }
            fn read_patch(
                &mut self,
                reader: &mut #rt::Reader<'_>,
                _: #rt::Part,
            ) -> ::std::result::Result<(), #rt::DecodeError> {
                *self = <Self as #rt::Data>::decode(reader)?;
                ::std::result::Result::Ok(())
            }
            fn digest(&self) -> u64 {
                #rt::Data::digest(self)
            }
            fn shadow_digest(shadow: &<Self as #rt::State>::Shadow, lens: #rt::Lens) -> u64 {
                if lens.part == #rt::Part::Owned { 0 } else { #rt::Data::digest(shadow.value()) }
            }
            fn view(&self, sight: #rt::Sight) -> #rt::Value {
                #rt::tree(self, sight.format)
            }
        }
    }
}
