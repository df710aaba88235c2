//! WebSocket libraries in Rust, as programs that `playfield-bench bench peers` measures.

/// The version of a package that this one is built with.
///
/// # Panics
/// If the lock file does not have it.
pub fn version(package: &str) -> &'static str {
    let lock = include_str!("../Cargo.lock");
    let found = lock.split("[[package]]").find_map(|entry| {
        let version = entry.strip_prefix(&format!("\nname = \"{package}\"\nversion = \""))?;
        version.split('"').next()
    });
    found.expect("the package is a dependency")
}
