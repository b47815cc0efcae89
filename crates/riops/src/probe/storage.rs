//! Storage of the server's data, if it is on this machine.

use std::fs;
use std::path::Path;

use super::device::Device;

/// Storage of a path. Unknown values are absent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Storage {
    /// File system: `ext4`, `xfs`, `tmpfs`, …
    pub file_system: Option<String>,
    /// Mount options.
    pub mount_options: Option<String>,
    /// Block device.
    pub device: Option<String>,
    /// Model of the device.
    pub model: Option<String>,
    /// Whether the device is rotational, as reported by the kernel.
    pub rotational: Option<bool>,
    /// I/O scheduler: `none`, `mq-deadline`, …
    pub scheduler: Option<String>,
}

impl Storage {
    /// Reads the storage of `path` from the operating system.
    #[must_use]
    pub fn of_path(path: &Path) -> Self {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let mount = path.canonicalize().ok().and_then(|path| mount_of(&mounts, &path));
        let device = Device::of_path(path).map(|device| device.name().to_owned());
        // A partition has no queue; use the queue of its disk, the parent directory.
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
            scheduler: queue("queue/scheduler").map(|text| selected(&text)),
            file_system: mount.as_ref().map(|(fs_type, _)| fs_type.clone()),
            mount_options: mount.map(|(_, options)| options),
            device,
        }
    }
}

/// Returns the file system type and the options of the longest mount point above `path`.
fn mount_of(mounts: &str, path: &Path) -> Option<(String, String)> {
    mounts
        .lines()
        .filter_map(|line| {
            let mut fields = line.split(' ').skip(1);
            let point = fields.next()?.replace("\\040", " ");
            let (fs_type, options) = (fields.next()?, fields.next()?);
            path.starts_with(&point)
                .then(|| (point.len(), (fs_type.to_owned(), options.to_owned())))
        })
        // Of two mounts at the same point, the later one hides the earlier one.
        .max_by_key(|(length, _)| *length)
        .map(|(_, found)| found)
}

/// Returns the name in brackets: `none [mq-deadline] kyber`.
fn selected(text: &str) -> String {
    let inside = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    inside.map_or(text, |(selected, _)| selected).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_file_system_of_the_nearest_mount_point() {
        let mounts = "/dev/vda / ext4 rw,relatime 0 0\nproc /proc proc rw 0 0\n\
                      /dev/nvme0n1 /data xfs rw,noatime 0 0\ntmpfs /data/my\\040tmp tmpfs rw 0 0\n";
        let fs_type = |path: &str| mount_of(mounts, Path::new(path)).unwrap().0;
        assert_eq!(fs_type("/data/pg"), "xfs");
        assert_eq!(fs_type("/database"), "ext4");
        assert_eq!(fs_type("/data/my tmp/x"), "tmpfs");
        assert_eq!(mount_of(mounts, Path::new("/data")).unwrap().1, "rw,noatime");
    }

    #[test]
    fn selects_the_scheduler_in_brackets() {
        assert_eq!(selected("none [mq-deadline] kyber"), "mq-deadline");
        assert_eq!(selected("none"), "none");
    }

    #[test]
    fn the_root_has_a_file_system() {
        assert!(Storage::of_path(Path::new("/")).file_system.is_some());
    }
}
