//! Where the server stores the measured tables, its WAL and its temporary files, and on which devices.

use std::path::{Path, PathBuf};

use super::device::Device;
use super::topology::{Block, Topology, Volume};
use crate::server::capabilities::optional;
use crate::server::{Connection, ConnectionError};

const LOCATIONS: &str = include_str!("../../sql/probe/locations.sql");

/// A directory of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Location {
    /// Data that the server stores here: `data` with the default tablespace, `wal`, `tablespace NAME` for another one
    /// with measured tables or indexes, or `temporary` for files.
    role: String,
    path: PathBuf,
    /// Whether it contains measured tables or indexes.
    has_tables: bool,
}

/// The directories of a server on this machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Locations(Vec<Location>);

/// A disk with its roles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoleDisk {
    /// Data that the server stores on it.
    pub roles: Vec<String>,
    /// The disk.
    pub disk: Block,
}

/// The devices of a server on this machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Devices {
    /// The devices of the file systems, each with whether it contains measured tables or indexes.
    volumes: Vec<(Volume, bool)>,
    /// The disks below them.
    pub disks: Vec<RoleDisk>,
}

impl Locations {
    /// Returns the locations that are known without the server.
    pub fn of_data(data: &Path) -> Self {
        let mut locations = Self::default();
        locations.add("data", data.to_owned(), true);
        // It may be a symbolic link, visible only to root and to the server's user.
        locations.add("wal", data.join("pg_wal"), false);
        locations
    }

    /// Returns the locations of a PostgreSQL server with this data directory and of these tables, given with their
    /// schemas. Locations that the server does not show are missing.
    ///
    /// # Errors
    /// Returns [`ConnectionError`] if the connection is lost.
    pub fn read(
        connection: &mut Connection,
        data: &Path,
        tables: &[String],
    ) -> Result<Self, ConnectionError> {
        let mut locations = Self::of_data(data);
        let rows = connection.query(&LOCATIONS.replace("{tables}", &tables.join(",")));
        let rows = optional(rows)?.unwrap_or_default().into_iter();
        let rows: Vec<_> = rows.filter_map(|row| <[_; 3]>::try_from(row).ok()).collect();
        let is_measured = |kind: &Option<String>| kind.as_deref() == Some("tables");
        if rows.iter().any(|[kind, ..]| is_measured(kind)) {
            locations.0.iter_mut().for_each(|location| location.has_tables = false);
        }
        for [kind, name, location] in rows {
            let (Some(name), Some(location)) = (name, location) else {
                continue;
            };
            let role = match (is_measured(&kind), location.is_empty()) {
                (false, _) => "temporary",
                (true, true) => "data",
                (true, false) => &format!("tablespace {name}"),
            };
            locations.add(role, data.join(location), is_measured(&kind));
        }
        Ok(locations)
    }

    fn add(&mut self, role: &str, path: PathBuf, has_tables: bool) {
        match self.0.iter_mut().find(|known| known.role == role && known.path == path) {
            Some(known) => known.has_tables |= has_tables,
            None => self.0.push(Location { role: role.to_owned(), path, has_tables }),
        }
    }

    /// Returns the directory of the measured tables.
    pub fn of_tables(&self) -> Option<&Path> {
        let first = self.0.iter().find(|location| location.has_tables);
        first.map(|location| location.path.as_path())
    }

    /// Returns the devices of the locations. Locations without a visible block device are missing.
    pub fn devices(&self, topology: &Topology) -> Devices {
        self.devices_by(&|path| topology.volume(path))
    }

    fn devices_by(&self, find: &dyn Fn(&Path) -> Option<Volume>) -> Devices {
        let mut devices = Devices::default();
        for Location { role, path, has_tables } in &self.0 {
            let Some(volume) = find(path) else {
                continue;
            };
            for disk in &volume.disks {
                match devices.disks.iter_mut().find(|known| known.disk == *disk) {
                    Some(known) if known.roles.contains(role) => {}
                    Some(known) => known.roles.push(role.clone()),
                    None => devices
                        .disks
                        .push(RoleDisk { roles: vec![role.clone()], disk: disk.clone() }),
                }
            }
            match devices.volumes.iter_mut().find(|(known, _)| *known == volume) {
                Some((_, known)) => *known |= has_tables,
                None => devices.volumes.push((volume, *has_tables)),
            }
        }
        devices
    }
}

impl Devices {
    /// Returns the device of the measured tables and indexes, which can be on several.
    pub fn of_tables(&self) -> Option<Device> {
        Device::of_blocks(self.with_tables().flat_map(|volume| volume.members.clone()).collect())
    }

    fn with_tables(&self) -> impl Iterator<Item = &Volume> {
        self.volumes.iter().filter(|(_, has_tables)| *has_tables).map(|(volume, _)| volume)
    }

    /// Returns the volume of the measured tables and indexes; `None` if they are on several.
    pub fn volume_of_tables(&self) -> Option<&Volume> {
        let mut volumes = self.with_tables();
        let first = volumes.next()?;
        volumes.next().is_none().then_some(first)
    }

    /// Returns the volumes that consist only of this disk.
    pub fn volumes_on<'a>(&'a self, disk: &'a Block) -> impl Iterator<Item = &'a Volume> {
        let volumes = self.volumes.iter().map(|(volume, _)| volume);
        volumes.filter(move |volume| volume.disks.as_slice() == std::slice::from_ref(disk))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(name: &str) -> Block {
        Block { major: 8, minor: 0, name: name.to_owned() }
    }

    fn volume(member: &str, disks: &[&str]) -> Volume {
        Volume {
            members: vec![block(member)],
            disks: disks.iter().map(|name| block(name)).collect(),
        }
    }

    fn device(members: &[&str]) -> Option<Device> {
        Device::of_blocks(members.iter().map(|name| block(name)).collect())
    }

    fn locations(entries: &[(&str, &str, bool)]) -> Locations {
        let location = |(role, path, has_tables): &(&str, &str, bool)| Location {
            role: (*role).to_owned(),
            path: (*path).into(),
            has_tables: *has_tables,
        };
        Locations(entries.iter().map(location).collect())
    }

    fn shown(devices: &Devices) -> Vec<String> {
        let disk = |entry: &RoleDisk| format!("{}: {}", entry.disk.name, entry.roles.join(", "));
        devices.disks.iter().map(disk).collect()
    }

    #[test]
    fn a_disk_with_several_roles_is_one_entry() {
        let locations = locations(&[
            ("data", "/data", true),
            ("wal", "/wal", false),
            ("temporary", "/data", false),
            ("temporary", "/nfs", false),
        ]);
        let devices = locations.devices_by(&|path| match path.to_str() {
            Some("/data") => Some(volume("sda1", &["sda"])),
            Some("/wal") => Some(volume("sda2", &["sda"])),
            _ => None,
        });
        assert_eq!(shown(&devices), ["sda: data, wal, temporary"]);
        assert_eq!(devices.of_tables(), device(&["sda1"]));
        let on_disk: Vec<_> = devices.volumes_on(&block("sda")).map(Volume::name).collect();
        assert_eq!(on_disk, ["sda1", "sda2"]);
    }

    #[test]
    fn finds_the_device_of_the_tables_by_their_tablespaces() {
        let fast = ("tablespace fast", "/fast", true);
        let find = |path: &Path| match path.to_str() {
            Some("/fast") => Some(volume("dm-0", &["sdb", "sdc"])),
            _ => Some(volume("sda", &["sda"])),
        };
        let one = locations(&[("data", "/data", false), fast]);
        let devices = one.devices_by(&find);
        assert_eq!(shown(&devices), ["sda: data", "sdb: tablespace fast", "sdc: tablespace fast"]);
        assert_eq!(devices.of_tables(), device(&["dm-0"]));
        assert_eq!(devices.volume_of_tables().unwrap().name(), "dm-0");
        // The maximum of a striped volume is not the maximum of one of its disks.
        assert_eq!(devices.volumes_on(&block("sdb")).count(), 0);
        let both = locations(&[("data", "/data", true), fast]);
        let devices = both.devices_by(&find);
        assert_eq!(devices.of_tables(), device(&["sda", "dm-0"]));
        assert_eq!(devices.volume_of_tables(), None);
    }
}
