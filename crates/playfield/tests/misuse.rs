//! A type that can't be synced doesn't compile, and the error names the field and how to fix it.

#[test]
fn misuse_errors_name_the_field_and_the_fix() {
    trybuild::TestCases::new().compile_fail("tests/misuse/*.rs");
}
