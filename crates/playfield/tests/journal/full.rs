//! A journal on a disk that is full.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::{Files, Node, PATIENCE, World, ask, bots};

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
        let is_mounted = mounted.is_ok_and(|status| status.success());
        if !is_mounted {
            println!("no file system can be mounted here: left out");
        }
        is_mounted.then_some(this)
    }

    /// Has a node write its journal there.
    fn settings(&self) -> String {
        format!("journal.folder={}", self.0.join("journal").display())
    }

    /// Takes the rest of the space.
    fn fill(&self) {
        let mut file = std::fs::File::create(self.0.join("ballast")).unwrap();
        while file.write_all(&[0; 512]).is_ok() {}
    }

    /// Gives it back.
    fn empty(&self) {
        std::fs::remove_file(self.0.join("ballast")).unwrap();
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).stderr(Stdio::null()).status();
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// Kills the node, and has the bots go on with the next one.
fn crash_and_go_on(
    (files, settings): (&Files, &str),
    world: &Arc<World>,
    mut node: Node,
    players: JoinHandle<()>,
) {
    node.kill();
    players.join().expect("nothing is lost");
    let node = files.start_with(settings).unwrap();
    let players = bots(world, &node.url());
    world.wait(&players, 60);
    world.is_over.store(true, Ordering::Relaxed);
    players.join().expect("nothing is lost");
    drop(node);
}

#[test]
fn nothing_is_answered_while_the_disk_is_full_and_all_goes_on_after_that() {
    let Some(small) = Small::new("full", 1 << 20) else { return };
    let (files, settings) = (Files::new("full"), small.settings());
    let world = Arc::new(World::default());
    let node = files.start_with(&settings).unwrap();
    let players = bots(&world, &node.url());
    world.wait(&players, 60);
    small.fill();
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
    small.empty();
    world.wait(&players, 60);
    crash_and_go_on((&files, &settings), &world, node, players);
}

#[test]
fn an_upgrade_is_refused_while_the_journal_stands_still_and_done_after_that() {
    let Some(small) = Small::new("upgrade", 1 << 20) else { return };
    let (files, settings) = (Files::new("full-upgrade"), small.settings());
    let world = Arc::new(World { comes_back: Duration::from_secs(3), ..World::default() });
    let mut node = files.start_with(&settings).unwrap();
    let players = bots(&world, &node.url());
    world.wait(&players, 60);
    small.fill();
    let refused = "the journal was not written within journal.wait";
    // A last block may fit into the journal's file. Then the new process has no space for its own.
    let by = Instant::now() + PATIENCE;
    loop {
        let answer = ask(&node.address, "POST /upgrade/node");
        if answer.contains(refused) {
            break;
        }
        assert!(answer.contains("failed ") && Instant::now() < by, "{answer}");
    }
    let answered = world.answered.load(Ordering::Relaxed);
    let answer = ask(&node.address, "POST /upgrade/node");
    assert!(answer.contains(refused), "{answer}");
    assert_eq!(world.answered.load(Ordering::Relaxed), answered, "nothing can be answered");
    small.empty();
    // The rooms go on where they were, and then in the new process.
    world.wait(&players, 60);
    let answer = ask(&node.address, "POST /upgrade/node");
    let pid = answer.rsplit_once("done ").and_then(|(_, pid)| pid.trim().parse().ok());
    node.pid = pid.unwrap_or_else(|| panic!("{answer}"));
    world.wait(&players, 60);
    crash_and_go_on((&files, &settings), &world, node, players);
}
