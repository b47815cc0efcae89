//! A stable identity of a device: names such as `sda` and host names occur on many machines.

use std::fs;

use sha2::{Digest, Sha256};

use super::topology::{Block, Topology, Volume};
use crate::host::files::trimmed;

/// Files with the id of the machine. Source: machine-id(5).
const MACHINE_ID_FILES: [&str; 2] = ["etc/machine-id", "var/lib/dbus/machine-id"];
/// Files of a disk with its world-wide or serial number: `NVMe`, SCSI, virtio; the file of a loop device.
const DISK_FILES: [&str; 6] =
    ["wwid", "device/wwid", "serial", "device/serial", "device/cid", "loop/backing_file"];
/// Properties of a disk in the database of udev.
const DISK_PROPERTIES: [&str; 2] = ["ID_SERIAL", "ID_WWN"];

impl Topology {
    /// Returns the identity of a device: a hash of the id of the machine, of the serial or world-wide
    /// numbers of its disks, of the UUID of its partition or volume, and of its size. Without serial number,
    /// the UUID of the file system is used. `None` if neither the machine nor the device has an id.
    ///
    /// It is a hash because machine-id(5) requires that the id is not disclosed.
    pub fn identity(&self, volume: &Volume) -> Option<String> {
        let machine = MACHINE_ID_FILES
            .iter()
            .find_map(|file| trimmed(self.root.join(file)).filter(|id| id != "uninitialized"));
        let mut is_known = machine.is_some();
        let mut hash = Sha256::new();
        let mut add = |name: &str, value: Option<String>| {
            hash.update(format!("{name}={}\n", value.unwrap_or_default()));
        };
        add("machine", machine);
        for disk in &volume.disks {
            let id = self.disk_id(disk);
            is_known |= id.is_some();
            add("disk", id);
            add("size", self.attribute(disk, "size"));
        }
        let has_serial = volume.disks.iter().all(|disk| self.disk_id(disk).is_some());
        for member in &volume.members {
            let is_disk = volume.disks.contains(member);
            let id = if is_disk { None } else { self.volume_id(member) };
            let id =
                id.or_else(|| self.file_system_id(member).filter(|_| !(is_disk && has_serial)));
            is_known |= id.is_some();
            add("volume", id);
            add("size", self.attribute(member, "size"));
            add("start", self.attribute(member, "start"));
        }
        // Half of the hash is sufficient.
        let start = u128::from_be_bytes(*hash.finalize().first_chunk()?);
        is_known.then(|| format!("{start:032x}"))
    }

    fn disk_id(&self, disk: &Block) -> Option<String> {
        let file = DISK_FILES.iter().find_map(|file| self.attribute(disk, file));
        file.or_else(|| DISK_PROPERTIES.iter().find_map(|name| self.property(disk, name)))
    }

    /// Returns the UUID of a logical volume, an array or a partition.
    fn volume_id(&self, block: &Block) -> Option<String> {
        let uevent = || {
            let text = self.attribute(block, "uevent")?;
            text.lines().find_map(|line| line.strip_prefix("PARTUUID=")).map(str::to_owned)
        };
        self.attribute(block, "dm/uuid")
            .or_else(|| self.attribute(block, "md/uuid"))
            .or_else(uevent)
            .or_else(|| self.property(block, "ID_PART_ENTRY_UUID"))
            .or_else(|| self.property(block, "MD_UUID"))
            .or_else(|| self.link("dev/disk/by-partuuid", block))
    }

    fn file_system_id(&self, block: &Block) -> Option<String> {
        self.property(block, "ID_FS_UUID").or_else(|| self.link("dev/disk/by-uuid", block))
    }

    /// Returns the contents of a file of the device in /sys.
    pub(super) fn attribute(&self, block: &Block, file: &str) -> Option<String> {
        trimmed(self.folder(block).join(file))
    }

    /// Returns a property in the database of udev.
    fn property(&self, block: &Block, name: &str) -> Option<String> {
        let database = format!("run/udev/data/b{}:{}", block.major, block.minor);
        let database = trimmed(self.root.join(&database))?;
        let value = |line: &str| {
            Some(line.strip_prefix("E:")?.strip_prefix(name)?.strip_prefix('=')?.trim().to_owned())
        };
        database.lines().find_map(value).filter(|value| !value.is_empty())
    }

    /// Returns the name of the symbolic link to the device in this directory.
    fn link(&self, folder: &str, block: &Block) -> Option<String> {
        let links = fs::read_dir(self.root.join(folder)).ok()?.flatten();
        let mut names = links.filter(|link| {
            let target = fs::read_link(link.path()).ok();
            target.is_some_and(|target| {
                target.file_name().and_then(|name| name.to_str()) == Some(block.name.as_str())
            })
        });
        names.next()?.file_name().into_string().ok()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::topology::tests::Machine;

    fn machine() -> Machine {
        let machine = Machine::new(&[(8, 0, "sda"), (8, 1, "sda1")]);
        machine.partition("sda1", "sda");
        machine
    }

    fn identity(machine: &Machine, minor: u32) -> Option<String> {
        let topology = machine.topology();
        let device = rustix::fs::makedev(8, minor);
        topology.identity(&topology.volume_of(Path::new("/"), device).unwrap())
    }

    #[test]
    fn depends_on_machine_disk_partition_and_size() {
        let machine = machine();
        machine.write("etc/machine-id", "0123\n");
        machine.write("sys/devices/sda/device/wwid", "naa.5000\n");
        machine.write("sys/devices/sda/sda1/uevent", "DEVNAME=sda1\nPARTUUID=aa-bb\n");
        let first = identity(&machine, 1).unwrap();
        assert_eq!((first.len(), &identity(&machine, 1).unwrap()), (32, &first));
        assert_ne!(identity(&machine, 0).unwrap(), first);
        for (file, other, same) in [
            ("etc/machine-id", "4567\n", "0123\n"),
            ("sys/devices/sda/device/wwid", "naa.6000\n", "naa.5000\n"),
            ("sys/devices/sda/sda1/uevent", "PARTUUID=cc-dd\n", "PARTUUID=aa-bb\n"),
        ] {
            machine.write(file, other);
            assert_ne!(identity(&machine, 1).unwrap(), first, "{file}");
            machine.write(file, same);
        }
        machine.write("sys/devices/sda/size", "4096\n");
        assert_ne!(identity(&machine, 1).unwrap(), first);
    }

    #[test]
    fn uses_the_file_system_of_a_disk_without_serial_number() {
        let machine = machine();
        assert_eq!(identity(&machine, 0), None);
        machine.write("run/udev/data/b8:0", "S:disk\nE:ID_FS_UUID=11\nE:ID_FS_UUID_ENC=1\n");
        let first = identity(&machine, 0).unwrap();
        machine.write("run/udev/data/b8:0", "E:ID_FS_UUID=22\n");
        assert_ne!(identity(&machine, 0).unwrap(), first);
        // A new file system does not change a disk that is identified by its serial number.
        machine.write("sys/devices/sda/serial", "S1\n");
        let by_serial = identity(&machine, 0);
        machine.write("run/udev/data/b8:0", "E:ID_FS_UUID=33\n");
        assert_eq!(identity(&machine, 0), by_serial);
    }

    #[test]
    fn reads_the_links_of_a_machine_without_udev_database() {
        let machine = machine();
        machine.write("dev/sda", "");
        machine.link("dev/disk/by-uuid/77", "dev/sda");
        let by_link = identity(&machine, 0).unwrap();
        machine.write("run/udev/data/b8:0", "E:ID_FS_UUID=77\n");
        assert_eq!(identity(&machine, 0).unwrap(), by_link);
    }

    #[test]
    fn the_machine_alone_is_an_identity_but_a_machine_without_id_is_not() {
        let machine = machine();
        machine.write("etc/machine-id", "uninitialized\n");
        assert_eq!(identity(&machine, 0), None);
        machine.write("var/lib/dbus/machine-id", "0123\n");
        let (disk, partition) = (identity(&machine, 0), identity(&machine, 1));
        assert!(disk.is_some() && disk == partition, "{disk:?} {partition:?}");
    }
}
