//! What can't be kept in step doesn't compile, and the compiler says which field it is and how to
//! mend it.

#[test]
fn misuse_is_told_with_the_field_and_the_mend() {
    trybuild::TestCases::new().compile_fail("tests/misuse/*.rs");
}
