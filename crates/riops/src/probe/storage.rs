//! What the server's data lie on, where that is on this machine.

use std::fs;
use std::path::Path;

use super::device::Device;

/// Where data lie. What cannot be told is absent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Storage {
    /// The file system: `ext4`, `xfs`, `tmpfs`, …
    pub file_system: Option<String>,
    /// The options that it is mounted with.
    pub mount_options: Option<String>,
    /// The block device below it.
    pub device: Option<String>,
    /// What the device calls itself.
    pub model: Option<String>,
    /// Whether it has turning disks, as far as the system knows.
    pub rotational: Option<bool>,
    /// How requests are ordered: `none`, `mq-deadline`, …
    pub scheduler: Option<String>,
}

impl Storage {
    /// Asks the operating system about the place of `path`.
    #[must_use]
    pub fn of_path(path: &Path) -> Self {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let mount = path.canonicalize().ok().and_then(|path| mount_of(&mounts, &path));
        let device = Device::of_path(path).map(|device| device.name().to_owned());
        // A partition has no queue of its own: its disk stands above it.
        let queue = |name: &str| {
            let device = device.as_deref()?;
            let folder = Path::new("/sys/class/block").join(device);
            ["", ".."].iter().find_map(|up| {
                let text = fs::read_to_string(folder.join(up).join(name)).ok()?;
                Some(text.trim().to_owned()).filter(|text| !text.is_empty())
            })
        };
        Self {
            model: queue("device/model"),
            rotational: queue("queue/rotational").map(|text| text == "1"),
            scheduler: queue("queue/scheduler").map(|text| chosen(&text)),
            file_system: mount.as_ref().map(|(kind, _)| kind.clone()),
            mount_options: mount.map(|(_, options)| options),
            device,
        }
    }
}

/// The file system's kind and options of the longest mount point above `path`.
fn mount_of(mounts: &str, path: &Path) -> Option<(String, String)> {
    mounts
        .lines()
        .filter_map(|line| {
            let mut fields = line.split(' ').skip(1);
            let point = fields.next()?.replace("\\040", " ");
            let (kind, options) = (fields.next()?, fields.next()?);
            path.starts_with(&point).then(|| (point.len(), (kind.to_owned(), options.to_owned())))
        })
        // Of two at the same place the later one covers the other.
        .max_by_key(|(length, _)| *length)
        .map(|(_, found)| found)
}

/// The one in brackets: `none [mq-deadline] kyber`.
fn chosen(text: &str) -> String {
    let inside = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    inside.map_or(text, |(chosen, _)| chosen).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_mount_point_tells_the_file_system() {
        let mounts = "/dev/vda / ext4 rw,relatime 0 0\nproc /proc proc rw 0 0\n\
                      /dev/nvme0n1 /data xfs rw,noatime 0 0\ntmpfs /data/my\\040tmp tmpfs rw 0 0\n";
        let kind = |path: &str| mount_of(mounts, Path::new(path)).unwrap().0;
        assert_eq!(kind("/data/pg"), "xfs");
        assert_eq!(kind("/database"), "ext4");
        assert_eq!(kind("/data/my tmp/x"), "tmpfs");
        assert_eq!(mount_of(mounts, Path::new("/data")).unwrap().1, "rw,noatime");
    }

    #[test]
    fn the_chosen_scheduler_stands_in_brackets() {
        assert_eq!(chosen("none [mq-deadline] kyber"), "mq-deadline");
        assert_eq!(chosen("none"), "none");
    }

    #[test]
    fn the_root_has_a_file_system() {
        assert!(Storage::of_path(Path::new("/")).file_system.is_some());
    }
}
