//! The header is the one that this crate makes.

use std::path::Path;

/// `PLAYFIELD_WRITE_HEADER=1 cargo test -p playfield-ffi header` writes it.
#[test]
fn the_header_is_current() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml")).expect("a configuration");
    // The file and its modules: with the crate itself, cbindgen would run cargo.
    let builder = cbindgen::Builder::new().with_config(config).with_src(root.join("src/lib.rs"));
    let mut made = Vec::new();
    builder.generate().expect("sources that cbindgen can read").write(&mut made);
    let made = String::from_utf8(made).expect("text");

    let path = root.join("include/playfield.h");
    if std::env::var_os("PLAYFIELD_WRITE_HEADER").is_some() {
        std::fs::create_dir_all(root.join("include")).expect("a folder");
        std::fs::write(&path, &made).expect("a place to write to");
    }
    let present = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        present == made,
        "{} is not what the sources say: run `PLAYFIELD_WRITE_HEADER=1 cargo test -p \
         playfield-ffi header`",
        path.display()
    );
}
