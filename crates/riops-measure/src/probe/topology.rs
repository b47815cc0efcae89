//! The block devices below a file system: the device of its files, and the disks below that.
//!
//! Reads only /proc and /sys below a root directory, so that tests can use a tree of their own. Must not
//! guess: what cannot be resolved is absent.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Dev, makedev};

/// Maximum depth of devices on devices and of file systems on file systems. The kernel's limit for
/// stacked file systems is 2; LVM on RAID on partitions has 4 levels.
const DEPTH_MAX: u32 = 16;

/// A block device as listed in /proc/diskstats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    pub(super) major: u32,
    pub(super) minor: u32,
    /// Name of the device: `nvme0n1`.
    pub name: String,
}

/// The block device of a file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Volume {
    /// The device that the file system uses: a disk, a partition, a logical volume. btrfs can use several.
    pub members: Vec<Block>,
    /// The disks below, without the layers in between: partitions, LVM, md, dm-crypt.
    pub disks: Vec<Block>,
}

impl Volume {
    /// Returns the name of the device: `dm-0`; several names are joined by a plus sign.
    pub fn name(&self) -> String {
        name(&self.members)
    }
}

/// Returns the name of a device with these members.
pub(super) fn name(members: &[Block]) -> String {
    members.iter().map(|block| block.name.as_str()).collect::<Vec<_>>().join("+")
}

/// A line of mountinfo. Source: proc(5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mount {
    device: Dev,
    point: PathBuf,
    pub(super) options: String,
    pub(super) file_system: String,
    source: String,
    super_options: String,
}

/// The block devices and mounts of a machine.
#[derive(Debug, Clone)]
pub struct Topology {
    pub(super) root: PathBuf,
    mounts: Vec<Mount>,
    blocks: Vec<Block>,
}

impl Topology {
    /// Reads the devices and mounts of this machine.
    pub fn of_this_machine() -> Self {
        Self::below(Path::new("/"))
    }

    /// Reads `proc` and `sys` below this directory.
    pub(super) fn below(root: &Path) -> Self {
        let read = |path: &str| fs::read_to_string(root.join(path)).unwrap_or_default();
        Self {
            root: root.to_owned(),
            mounts: read("proc/self/mountinfo").lines().filter_map(mount).collect(),
            blocks: read("proc/diskstats").lines().filter_map(block).collect(),
        }
    }

    /// Returns the block device of the file system of `path`; `None` if it has none or is not visible
    /// (tmpfs, network file systems, the lower directories of a container).
    pub fn volume(&self, path: &Path) -> Option<Volume> {
        let path = path.canonicalize().ok()?;
        let device = fs::metadata(&path).ok()?.dev() as Dev;
        self.volume_of(&path, device)
    }

    /// Returns the block device of a canonical path on the file system with this device number.
    pub(super) fn volume_of(&self, path: &Path, device: Dev) -> Option<Volume> {
        let members = match self.numbered(device) {
            Some(block) => vec![block],
            None => self.members_of(self.mount_of(path)?, 0)?,
        };
        let mut disks = Vec::new();
        for member in &members {
            add_new(&mut disks, self.disks_below(member, 0));
        }
        Some(Volume { members, disks })
    }

    /// Returns the mount with the longest mount point above `path`. If two mounts have the same point, the later one
    /// hides the earlier one.
    pub(super) fn mount_of(&self, path: &Path) -> Option<&Mount> {
        let above = self.mounts.iter().filter(|mount| path.starts_with(&mount.point));
        above.max_by_key(|mount| mount.point.as_os_str().len())
    }

    /// Returns the devices of a mounted file system.
    fn members_of(&self, mount: &Mount, depth: u32) -> Option<Vec<Block>> {
        if let Some(block) = self.numbered(mount.device) {
            return Some(vec![block]);
        }
        let mut members = Vec::new();
        match mount.file_system.as_str() {
            _ if depth >= DEPTH_MAX => return None,
            "overlay" => {
                for layer in layers(&mount.super_options) {
                    // In a container, the layers are outside of the visible file system.
                    let below = self.mount_of(&layer).filter(|below| *below != mount)?;
                    self.root.join(layer.strip_prefix("/").ok()?).symlink_metadata().ok()?;
                    add_new(&mut members, self.members_of(below, depth + 1)?);
                }
            }
            // The device number of btrfs does not belong to a block device.
            "btrfs" => {
                let source = self.of_source(&mount.source)?;
                let all = self.btrfs_devices(&source).unwrap_or_else(|| vec![source]);
                add_new(&mut members, all);
            }
            _ => members.push(self.of_source(&mount.source)?),
        }
        (!members.is_empty()).then_some(members)
    }

    /// Returns the device of a source such as `/dev/mapper/vg-data`, which may be a symbolic link.
    fn of_source(&self, source: &str) -> Option<Block> {
        let path =
            self.root.join(source.strip_prefix('/').filter(|_| source.starts_with("/dev/"))?);
        let path = path.canonicalize().unwrap_or(path);
        self.named(path.file_name()?.to_str()?)
    }

    /// Returns all devices of the btrfs file system with this device.
    fn btrfs_devices(&self, one: &Block) -> Option<Vec<Block>> {
        let systems = names_in(&self.root.join("sys/fs/btrfs"));
        let devices = systems.iter().map(|uuid| {
            let names = names_in(&self.root.join("sys/fs/btrfs").join(uuid).join("devices"));
            names.iter().filter_map(|name| self.named(name)).collect::<Vec<_>>()
        });
        devices.into_iter().find(|devices| devices.contains(one))
    }

    fn numbered(&self, device: Dev) -> Option<Block> {
        self.blocks.iter().find(|block| makedev(block.major, block.minor) == device).cloned()
    }

    /// Returns the device with this name. In file names, the kernel writes `!` instead of `/`.
    fn named(&self, name: &str) -> Option<Block> {
        let name = name.replace('!', "/");
        self.blocks.iter().find(|block| block.name == name).cloned()
    }

    /// Returns the folder of a device in /sys.
    pub(super) fn folder(&self, block: &Block) -> PathBuf {
        self.root.join("sys/class/block").join(block.name.replace('/', "!"))
    }

    /// Returns the disks below a device: itself, if it is a disk.
    fn disks_below(&self, block: &Block, depth: u32) -> Vec<Block> {
        let folder = self.folder(block);
        let mut below: Vec<Block> =
            names_in(&folder.join("slaves")).iter().filter_map(|name| self.named(name)).collect();
        if below.is_empty() && folder.join("partition").exists() {
            below.extend(self.disk_of_partition(&folder));
        }
        if below.is_empty() || depth >= DEPTH_MAX {
            return vec![block.clone()];
        }
        let mut disks = Vec::new();
        for lower in below {
            add_new(&mut disks, self.disks_below(&lower, depth + 1));
        }
        disks
    }

    /// A partition is a folder in the folder of its disk.
    fn disk_of_partition(&self, folder: &Path) -> Option<Block> {
        let folder = folder.canonicalize().ok()?;
        self.named(folder.parent()?.file_name()?.to_str()?)
    }
}

fn add_new(all: &mut Vec<Block>, more: Vec<Block>) {
    for block in more {
        if !all.contains(&block) {
            all.push(block);
        }
    }
}

/// Returns the names in a directory, sorted; none if it does not exist.
fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<_> =
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}

/// Returns the directories that contain the files of an overlay. A database opens all its files for
/// writing, which copies them to the upper directory.
fn layers(options: &str) -> Vec<PathBuf> {
    let option = |name: &str| {
        let value = options.split(',').find_map(|option| option.strip_prefix(name));
        value.and_then(|value| value.strip_prefix('='))
    };
    if let Some(upper) = option("upperdir") {
        return vec![unescaped(upper).into()];
    }
    let lower = option("lowerdir").unwrap_or_default();
    lower
        .split(':')
        .filter(|layer| !layer.is_empty())
        .map(|layer| unescaped(layer).into())
        .collect()
}

/// Parses a line such as
/// `36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue`.
fn mount(line: &str) -> Option<Mount> {
    let (fields, rest) = line.split_once(" - ")?;
    let mut fields = fields.split(' ').skip(2);
    let (major, minor) = fields.next()?.split_once(':')?;
    let point = unescaped(fields.nth(1)?);
    let options = fields.next()?.to_owned();
    let mut rest = rest.split(' ');
    Some(Mount {
        device: makedev(major.parse().ok()?, minor.parse().ok()?),
        point: point.into(),
        options,
        file_system: rest.next()?.to_owned(),
        source: unescaped(rest.next()?),
        super_options: rest.next().unwrap_or_default().to_owned(),
    })
}

/// Decodes the octal escapes of space, tab, newline and backslash.
fn unescaped(text: &str) -> String {
    let codes = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")];
    codes.iter().fold(text.to_owned(), |text, (code, character)| text.replace(code, character))
}

/// Parses the first fields of a line of /proc/diskstats: major, minor, name.
fn block(line: &str) -> Option<Block> {
    let mut fields = line.split_whitespace();
    let (major, minor) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some(Block { major, minor, name: fields.next()?.to_owned() })
}

#[cfg(test)]
pub(super) mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A machine in a directory.
    pub(in super::super) struct Machine(pub(in super::super) tempfile::TempDir);

    impl Machine {
        /// Creates a machine with these block devices, given as major, minor and name.
        pub(in super::super) fn new(blocks: &[(u32, u32, &str)]) -> Self {
            let machine = Self(tempfile::tempdir().unwrap());
            let line = |(major, minor, name): &(u32, u32, &str)| {
                format!(" {major} {minor} {name} 1 0 8 1 1 0 8 1 0 2 2 0 0 0 0 0 0\n")
            };
            machine.write("proc/diskstats", &blocks.iter().map(line).collect::<String>());
            for (_, _, name) in blocks {
                std::fs::create_dir_all(machine.0.path().join("sys/devices").join(name)).unwrap();
                machine.link(&format!("sys/class/block/{name}"), &format!("sys/devices/{name}"));
            }
            machine
        }

        pub(in super::super) fn write(&self, path: &str, text: &str) {
            let path = self.0.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }

        pub(in super::super) fn link(&self, path: &str, target: &str) {
            let path = self.0.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            symlink(self.0.path().join(target), path).unwrap();
        }

        /// Makes `name` a partition of `disk`.
        pub(in super::super) fn partition(&self, name: &str, disk: &str) {
            let root = self.0.path();
            std::fs::remove_file(root.join("sys/class/block").join(name)).unwrap();
            self.write(&format!("sys/devices/{disk}/{name}/partition"), "1\n");
            self.link(&format!("sys/class/block/{name}"), &format!("sys/devices/{disk}/{name}"));
        }

        /// Puts `name` on top of `below`.
        fn stack(&self, name: &str, below: &str) {
            let link = format!("sys/class/block/{name}/slaves/{below}");
            self.link(&link, &format!("sys/class/block/{below}"));
        }

        fn mounts(&self, lines: &str) {
            self.write("proc/self/mountinfo", lines);
        }

        pub(in super::super) fn topology(&self) -> Topology {
            Topology::below(self.0.path())
        }

        /// Returns the names of the device and of the disks below.
        fn names(&self, path: &str, device: Dev) -> Option<(String, Vec<String>)> {
            let volume = self.topology().volume_of(Path::new(path), device)?;
            let disks = volume.disks.iter().map(|disk| disk.name.clone()).collect();
            Some((volume.name(), disks))
        }
    }

    fn expected(name: &str, disks: &[&str]) -> (String, Vec<String>) {
        (name.to_owned(), disks.iter().map(|&disk| disk.to_owned()).collect())
    }

    #[test]
    fn resolves_a_partition_to_its_disk() {
        let machine = Machine::new(&[(8, 0, "sda"), (8, 1, "sda1"), (259, 0, "nvme0n1")]);
        machine.partition("sda1", "sda");
        assert_eq!(machine.names("/data", makedev(8, 1)), Some(expected("sda1", &["sda"])));
        assert_eq!(
            machine.names("/data", makedev(259, 0)),
            Some(expected("nvme0n1", &["nvme0n1"]))
        );
        assert_eq!(machine.names("/data", makedev(0, 25)), None);
    }

    #[test]
    fn resolves_a_logical_volume_on_encrypted_raid_to_the_disks() {
        let machine = Machine::new(&[
            (8, 0, "sda"),
            (8, 1, "sda1"),
            (8, 16, "sdb"),
            (9, 0, "md0"),
            (253, 0, "dm-0"),
            (253, 1, "dm-1"),
            (104, 0, "cciss/c0d0"),
        ]);
        machine.partition("sda1", "sda");
        for (name, below) in [
            ("md0", "sda1"),
            ("md0", "sdb"),
            ("dm-0", "md0"),
            ("dm-1", "dm-0"),
            ("dm-1", "cciss!c0d0"),
        ] {
            machine.stack(name, below);
        }
        assert_eq!(
            machine.names("/", makedev(253, 1)),
            Some(expected("dm-1", &["cciss/c0d0", "sda", "sdb"]))
        );
    }

    #[test]
    fn resolves_the_anonymous_device_of_btrfs_to_all_its_disks() {
        let machine =
            Machine::new(&[(8, 0, "sda"), (8, 1, "sda1"), (8, 16, "sdb"), (253, 0, "dm-0")]);
        machine.partition("sda1", "sda");
        machine.stack("dm-0", "sdb");
        machine.write("dev/dm-0", "");
        machine.link("dev/mapper/pool", "dev/dm-0");
        for device in ["sda1", "dm-0"] {
            machine.write(&format!("sys/fs/btrfs/7e1c/devices/{device}"), "");
        }
        machine.write("sys/fs/btrfs/features/devices", "");
        machine.mounts(
            "22 1 0:20 / / rw - tmpfs none rw\n\
             28 22 0:30 /@data /my\\040data rw,noatime - btrfs /dev/mapper/pool rw,subvol=/@data\n",
        );
        // stat() returns another number than mountinfo for a subvolume.
        assert_eq!(
            machine.names("/my data/pg", makedev(0, 31)),
            Some(expected("dm-0+sda1", &["sdb", "sda"]))
        );
        assert_eq!(machine.names("/other", makedev(0, 20)), None);
    }

    #[test]
    fn resolves_an_overlay_to_the_device_of_its_upper_directory() {
        let machine = Machine::new(&[(8, 0, "sda"), (8, 16, "sdb")]);
        let lines = "1 0 0:40 / / rw - overlay overlay rw,lowerdir=/lower,upperdir=/layers/up,workdir=/w\n\
                     2 1 8:0 / /lower ro - ext4 /dev/sda ro\n\
                     3 1 8:16 / /layers rw - ext4 /dev/sdb rw\n";
        machine.mounts(lines);
        // The layers of a container are on its host.
        assert_eq!(machine.names("/var/lib", makedev(0, 40)), None);
        machine.write("layers/up/x", "");
        assert_eq!(machine.names("/var/lib", makedev(0, 40)), Some(expected("sdb", &["sdb"])));
        machine.write("lower/x", "");
        machine.mounts(&lines.replace("upperdir", "unknown"));
        assert_eq!(machine.names("/var/lib", makedev(0, 40)), Some(expected("sda", &["sda"])));
    }

    #[test]
    fn ends_at_loops_of_devices_and_overlays() {
        let machine = Machine::new(&[(253, 0, "dm-0")]);
        machine.stack("dm-0", "dm-0");
        assert_eq!(machine.names("/", makedev(253, 0)), Some(expected("dm-0", &["dm-0"])));
        machine.write("up", "");
        machine.mounts("1 0 0:40 / / rw - overlay overlay rw,upperdir=/up\n");
        assert_eq!(machine.names("/", makedev(0, 40)), None);
    }

    #[test]
    fn uses_the_nearest_and_last_mount_above_a_path() {
        let machine = Machine::new(&[]);
        machine.mounts(
            "1 0 254:0 / / rw,relatime - ext4 /dev/vda rw\n2 1 0:5 / /data rw - xfs /dev/sdb rw\n\
             3 1 0:6 / /data ro,noatime shared:7 - tmpfs tmpfs rw\n4 1 0:7 / /data/x rw - nfs a:/b rw\n",
        );
        let topology = machine.topology();
        let file_system =
            |path: &str| topology.mount_of(Path::new(path)).unwrap().file_system.clone();
        assert_eq!(
            [file_system("/database"), file_system("/data/pg"), file_system("/data/x/y")],
            ["ext4", "tmpfs", "nfs"]
        );
        let options = &topology.mount_of(Path::new("/data")).unwrap().options;
        assert_eq!(options, "ro,noatime");
    }
}
