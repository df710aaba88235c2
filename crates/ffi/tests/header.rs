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

/// The members of `Options` and the public functions of the classes in `client.hpp` are in the
/// tables of `docs/cpp.md`.
#[test]
fn the_document_lists_every_option_and_every_function() {
    let header = include_str!("../../../sdk/cpp/include/playfield/client.hpp");
    let document = include_str!("../../../docs/cpp.md");
    let section = |title: &str| {
        let after = document.split(&format!("\n## {title}\n")).nth(1).expect("the section");
        after.split("\n## ").next().unwrap_or_default()
    };
    let body = |class: &str| {
        let after = header.split(&format!("\n{class} {{\n")).nth(1).expect("the class");
        after
            .split("\n};")
            .next()
            .unwrap_or_default()
            .split("\nprivate:")
            .next()
            .unwrap_or_default()
    };
    let members = |line: &str| {
        let is_member = line.starts_with("    ") && !line[4..].starts_with([' ', '/', '}']);
        is_member.then(|| line.trim().to_owned())
    };
    let word = |text: &str| {
        let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
        text.rsplit(|letter| !is_part(letter)).next().unwrap_or_default().to_owned()
    };

    let mut missing = Vec::new();
    for member in body("struct Options").lines().filter_map(members) {
        let declared = member.trim_end_matches(';').replace("{}", "").replace(" = false", "");
        let names = declared.split(", ").map(word);
        for name in names.filter(|name| !section("Options").contains(&format!("`{name}`"))) {
            missing.push(format!("Options::{name}"));
        }
    }
    for class in ["Client", "Room", "Channel", "Device", "Command"] {
        for member in body(&format!("class {class}")).lines().filter_map(members) {
            let Some((before, _)) = member.split_once('(') else { continue };
            let name = word(before);
            let is_listed = section("All functions").contains(&format!("{name}("));
            if !is_listed && !["", "raw", "bool", class].contains(&&*name) {
                missing.push(format!("{class}::{name}"));
            }
        }
    }
    assert_eq!(missing, [""; 0]);
}
