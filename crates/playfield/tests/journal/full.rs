//! A journal on a disk that is full.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::{Files, PATIENCE, World, bots};

/// A file system with little space, while it is in scope.
struct Small(PathBuf);

impl Small {
    /// `None` where this user may not mount one.
    fn new(name: &str, bytes: u64) -> Option<Self> {
        let path =
            std::env::temp_dir().join(format!("playfield-small-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        let size = format!("size={bytes}");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(&path).stderr(Stdio::null());
        let mounted = mount.status();
        let this = Self(path);
        mounted.is_ok_and(|status| status.success()).then_some(this)
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).stderr(Stdio::null()).status();
        let _ = std::fs::remove_dir(&self.0);
    }
}

#[test]
fn nothing_is_answered_while_the_disk_is_full_and_all_goes_on_after_that() {
    let Some(small) = Small::new("full", 1 << 20) else {
        println!("no file system can be mounted here: left out");
        return;
    };
    let files = Files::new("full");
    let journal = small.0.join("journal");
    let settings = format!("journal.folder={}", journal.display());
    let world = Arc::new(World::default());
    let mut node = files.start_with(&settings).unwrap();
    let players = bots(&world, &node.url());
    world.wait(&players, 60);
    // The rest of the disk is taken.
    let ballast = small.0.join("ballast");
    let mut file = std::fs::File::create(&ballast).unwrap();
    while file.write_all(&[0; 512]).is_ok() {}
    drop(file);
    // Only that which was written until then is answered.
    let by = Instant::now() + PATIENCE;
    let mut last = (world.answered.load(Ordering::Relaxed), Instant::now());
    while last.1.elapsed() < Duration::from_secs(2) {
        assert!(Instant::now() < by, "the disk is full");
        let answered = world.answered.load(Ordering::Relaxed);
        if answered != last.0 {
            last = (answered, Instant::now());
        }
        #[expect(clippy::disallowed_methods, reason = "the bots count without a signal")]
        std::thread::sleep(Duration::from_millis(20));
    }
    std::fs::remove_file(&ballast).unwrap();
    world.wait(&players, 60);
    node.kill();
    players.join().expect("nothing is lost");
    let mut node = files.start_with(&settings).unwrap();
    let players = bots(&world, &node.url());
    world.wait(&players, 60);
    world.is_over.store(true, Ordering::Relaxed);
    players.join().expect("nothing is lost");
    node.kill();
}
