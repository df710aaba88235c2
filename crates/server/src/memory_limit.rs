//! The memory that this process may use: what the machine has, or less if a container allows less.

use std::path::{Component, Path, PathBuf};

/// The most memory that the process may use, and what says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MemoryLimit {
    pub(crate) bytes: u64,
    pub(crate) said_by: PathBuf,
}

impl MemoryLimit {
    /// Asks the system. `None` where it does not say, which is so except on Linux.
    pub(crate) fn of_this_process() -> Option<Self> {
        Self::read(|path| std::fs::read_to_string(path).ok())
    }

    /// The least of the machine's memory (proc_meminfo(5)) and the limits of the process's control
    /// groups, in either version (cgroups(7)), and of all groups around them. `read` reads a file.
    fn read(read: impl Fn(&Path) -> Option<String>) -> Option<Self> {
        let mut limits = of_groups(&read);
        limits.extend(of_machine(&read));
        limits.into_iter().min_by_key(|limit| limit.bytes)
    }
}

fn of_machine(read: &impl Fn(&Path) -> Option<String>) -> Option<MemoryLimit> {
    let said_by = Path::new("/proc/meminfo");
    let text = read(said_by)?;
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kilobytes: u64 = total.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(MemoryLimit { bytes: kilobytes.checked_mul(1024)?, said_by: said_by.into() })
}

fn of_groups(read: &impl Fn(&Path) -> Option<String>) -> Vec<MemoryLimit> {
    let [groups, mounts] = ["/proc/self/cgroup", "/proc/self/mountinfo"]
        .map(|path| read(Path::new(path)).unwrap_or_default());
    let mut limits = Vec::new();
    for Mount { root, point, is_v2 } in mounts.lines().filter_map(Mount::read) {
        let Some(group) = groups.lines().find_map(|line| group_of(line, is_v2)) else { continue };
        let file = if is_v2 { "memory.max" } else { "memory.limit_in_bytes" };
        for directory in directories(&point, &root, group) {
            let said_by = directory.join(file);
            // Without a limit it says `max`, or in version 1 a number past any machine's memory.
            if let Some(bytes) = read(&said_by).and_then(|text| text.trim().parse().ok()) {
                limits.push(MemoryLimit { bytes, said_by });
            }
        }
    }
    limits
}

/// The directories of a group and of those around it, as far as they are under the mount point,
/// which shows the groups from `root` on.
fn directories(point: &Path, root: &Path, group: &Path) -> Vec<PathBuf> {
    let inside = group.strip_prefix(root).or_else(|_| group.strip_prefix("/")).unwrap_or(group);
    // A group outside of what the process sees is named by `..`.
    let is_inside = inside.components().all(|part| matches!(part, Component::Normal(_)));
    let inside = if is_inside { inside } else { Path::new("") };
    inside.ancestors().map(|part| point.join(part)).collect()
}

/// A mount of control groups with limits of memory.
struct Mount {
    root: PathBuf,
    point: PathBuf,
    is_v2: bool,
}

impl Mount {
    /// Reads a line of proc_pid_mountinfo(5).
    fn read(line: &str) -> Option<Self> {
        let (place, kind) = line.split_once(" - ")?;
        let mut place = place.split(' ').skip(3).map(|path| path.replace("\\040", " ").into());
        let (root, point) = (place.next()?, place.next()?);
        let mut kind = kind.split(' ');
        let is_v2 = match kind.next()? {
            "cgroup2" => true,
            "cgroup" if kind.nth(1)?.split(',').any(|option| option == "memory") => false,
            _ => return None,
        };
        Some(Self { root, point, is_v2 })
    }
}

/// The group that a line of `/proc/self/cgroup` names, if it is the one that limits memory.
fn group_of(line: &str, is_v2: bool) -> Option<&Path> {
    let mut parts = line.splitn(3, ':');
    let (number, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
    let is_it = match is_v2 {
        true => number == "0" && controllers.is_empty(),
        false => controllers.split(',').any(|controller| controller == "memory"),
    };
    is_it.then(|| Path::new(path))
}

#[cfg(test)]
mod tests {
    use super::MemoryLimit;

    const MEMINFO: (&str, &str) =
        ("/proc/meminfo", "MemTotal:       16384000 kB\nMemFree:          1000 kB\n");
    const V2: (&str, &str) = (
        "/proc/self/mountinfo",
        "22 1 8:1 / / rw - ext4 /dev/sda rw\n\
         31 23 0:28 / /sys/fs/cgroup rw,relatime shared:4 - cgroup2 cgroup2 rw,nsdelegate\n",
    );

    /// The limit, and the file that gives it, on a machine with these files.
    fn limit(files: &[(&str, &str)]) -> Option<(u64, String)> {
        let read = |path: &std::path::Path| {
            let found = files.iter().find(|(name, _)| std::path::Path::new(name) == path);
            found.map(|(_, text)| (*text).to_owned())
        };
        MemoryLimit::read(read).map(|limit| (limit.bytes, limit.said_by.display().to_string()))
    }

    fn of(bytes: u64, said_by: &str) -> Option<(u64, String)> {
        Some((bytes, said_by.to_owned()))
    }

    #[test]
    fn without_groups_it_is_the_memory_of_the_machine() {
        assert_eq!(limit(&[]), None);
        assert_eq!(limit(&[MEMINFO]), of(16_384_000 << 10, "/proc/meminfo"));
        let unlimited = [
            MEMINFO,
            V2,
            ("/proc/self/cgroup", "0::/user.slice/app\n"),
            ("/sys/fs/cgroup/user.slice/app/memory.max", "max\n"),
        ];
        assert_eq!(limit(&unlimited), of(16_384_000 << 10, "/proc/meminfo"));
    }

    #[test]
    fn the_least_limit_of_a_group_and_those_around_it_holds() {
        let group = ("/proc/self/cgroup", "0::/user.slice/app/one\n");
        let inner = ("/sys/fs/cgroup/user.slice/app/one/memory.max", "536870912\n");
        assert_eq!(limit(&[MEMINFO, V2, group, inner]), of(512 << 20, inner.0));
        let outer = ("/sys/fs/cgroup/user.slice/memory.max", "268435456\n");
        assert_eq!(limit(&[MEMINFO, V2, group, inner, outer]), of(256 << 20, outer.0));
    }

    #[test]
    fn in_a_container_its_own_group_is_the_mount_point() {
        let own = ("/sys/fs/cgroup/memory.max", "134217728\n");
        let group = ("/proc/self/cgroup", "0::/\n");
        assert_eq!(limit(&[MEMINFO, V2, group, own]), of(128 << 20, own.0));
        // It was moved to a group that it does not see.
        let group = ("/proc/self/cgroup", "0::/../other\n");
        assert_eq!(limit(&[MEMINFO, V2, group, own]), of(128 << 20, own.0));
    }

    #[test]
    fn version_1_is_read_too_also_where_only_a_part_of_its_groups_is_mounted() {
        let group = ("/proc/self/cgroup", "5:cpu,cpuacct:/\n4:memory:/docker/abc\n0::/\n");
        let at = |root: &str| {
            format!(
                "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n\
                 34 31 0:31 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n\
                 35 31 0:32 {root} /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
            )
        };
        let whole = at("/");
        let mounts = ("/proc/self/mountinfo", whole.as_str());
        let path = "/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes";
        let unlimited = ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
        let files = [MEMINFO, group, mounts, unlimited, (path, "104857600\n")];
        assert_eq!(limit(&files), of(100 << 20, path));
        assert_eq!(limit(&files[..4]), of(16_384_000 << 10, "/proc/meminfo"));

        let part = at("/docker/abc");
        let mounts = ("/proc/self/mountinfo", part.as_str());
        let own = (unlimited.0, "104857600\n");
        assert_eq!(limit(&[MEMINFO, group, mounts, own]), of(100 << 20, own.0));
    }

    #[test]
    fn what_can_not_be_read_limits_nothing() {
        for group in ["", "0", "0::", "4:memory", "\n\n", "x:y:z"] {
            for mounts in ["", "-", " - cgroup2", "a b c d - cgroup2", "1 2 3 / /x - cgroup cgroup"]
            {
                let files = [
                    MEMINFO,
                    ("/proc/self/cgroup", group),
                    ("/proc/self/mountinfo", mounts),
                    ("/x/memory.max", "many"),
                ];
                assert_eq!(limit(&files), of(16_384_000 << 10, "/proc/meminfo"));
            }
        }
        assert_eq!(limit(&[("/proc/meminfo", "MemTotal: much kB\n")]), None);
    }
}
