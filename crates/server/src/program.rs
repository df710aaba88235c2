//! The program that runs, as its recordings and journals name it.

use std::env;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::OnceLock;

use flate2::Crc;

/// The program's name, the version of Playfield, and a checksum of its file, which differs in each
/// build.
pub(crate) fn build() -> &'static str {
    static BUILD: OnceLock<String> = OnceLock::new();
    BUILD.get_or_init(|| {
        let program = env::current_exe().unwrap_or_default();
        let name = program.file_name().unwrap_or_default().display();
        // The file may have been replaced since the program was started.
        let own = Path::new("/proc/self/exe");
        let sum = checksum(if own.exists() { own } else { &program });
        let sum = sum.map_or_else(|_| String::new(), |sum| format!(", {sum:08x}"));
        format!("{name} (Playfield {}{sum})", env!("CARGO_PKG_VERSION"))
    })
}

/// A checksum of the program's file; 0 if it can't be read.
pub(crate) fn build_number() -> u64 {
    let sum = build().rsplit(", ").next().and_then(|rest| rest.strip_suffix(')'));
    sum.and_then(|sum| u64::from_str_radix(sum, 16).ok()).unwrap_or(0)
}

fn checksum(path: &Path) -> io::Result<u32> {
    let (mut file, mut piece) = (File::open(path)?, vec![0; 256 << 10]);
    let mut sum = Crc::new();
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(sum.sum()),
            read => sum.update(&piece[..read]),
        }
    }
}
