//! Names the shared library as it is installed: `libplayfield`, with the version of the ABI.
//! Extracts the duel of the guide, which the client of `docs/cpp.md` is for.

use std::path::Path;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    match std::env::var("CARGO_CFG_TARGET_OS").as_deref() {
        Ok("macos") => {
            println!("cargo:rustc-cdylib-link-arg=-Wl,-install_name,@rpath/libplayfield.0.dylib");
        }
        Ok("windows") => {}
        _ => println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libplayfield.so.0"),
    }

    // Only the example `duel` needs it, which is built where the guide is.
    let guide = "../../docs/guide.md";
    println!("cargo:rerun-if-changed={guide}");
    let Ok(guide) = std::fs::read_to_string(guide) else { return };
    let step = guide.split("\n## 4. ").nth(1).unwrap_or_default();
    let program = step.split("```rust,no_run\n").nth(1).unwrap_or_default();
    let program = program.split("\n```\n").next().unwrap_or_default();
    let out = std::env::var("OUT_DIR").expect("cargo sets it");
    std::fs::write(Path::new(&out).join("duel.rs"), program).expect("a folder to write to");
}
