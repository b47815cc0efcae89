//! Where the server stores the measured tables, its WAL and its temporary files, and on which devices.

use std::fmt;
use std::path::{Path, PathBuf};

use super::device::Device;
use super::topology::{Block, Topology, Volume};
use crate::server::{Connection, ConnectionError};

const LOCATIONS: &str = include_str!("../../sql/probe/locations.sql");

/// What the server stores in a location.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Role {
    /// The data directory, with the default tablespace.
    Data,
    /// Write-ahead log.
    Wal,
    /// Another tablespace with measured tables or indexes.
    Tablespace(String),
    /// Temporary files.
    Temporary,
}

impl fmt::Display for Role {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Data => write!(formatter, "data"),
            Self::Tablespace(name) => write!(formatter, "tablespace {name}"),
            Self::Wal => write!(formatter, "wal"),
            Self::Temporary => write!(formatter, "temporary"),
        }
    }
}

/// A directory of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Location {
    role: Role,
    path: PathBuf,
    /// Whether it contains measured tables or indexes.
    has_tables: bool,
}

/// The directories of a server on this machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Locations(Vec<Location>);

/// A device with its roles, and what it consists of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoleVolume {
    /// The roles, in the order of [`Role`].
    pub roles: Vec<Role>,
    /// The device of the file system.
    pub volume: Volume,
    /// Whether it contains measured tables or indexes.
    pub has_tables: bool,
}

/// A disk with its roles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoleDisk {
    /// The roles, in the order of [`Role`].
    pub roles: Vec<Role>,
    /// The disk.
    pub disk: Block,
}

/// The devices of a server on this machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Devices {
    /// The devices of the file systems.
    pub volumes: Vec<RoleVolume>,
    /// The disks below them.
    pub disks: Vec<RoleDisk>,
}

impl Locations {
    /// Returns the locations that are known without the server.
    #[must_use]
    pub fn of_data(data: &Path) -> Self {
        let mut locations =
            Self(vec![Location { role: Role::Data, path: data.to_owned(), has_tables: true }]);
        // It may be a symbolic link, visible only to root and to the server's user.
        locations.add(Role::Wal, data.join("pg_wal"), false);
        locations
    }

    /// Returns the locations of a PostgreSQL server with this data directory, and those of these tables,
    /// given with their schemas. What the server does not show is missing.
    ///
    /// # Errors
    /// Returns [`ConnectionError`] if the connection is lost.
    pub fn read(
        connection: &mut Connection,
        data: &Path,
        tables: &[String],
    ) -> Result<Self, ConnectionError> {
        let mut locations = Self::of_data(data);
        let rows = match connection.query(&LOCATIONS.replace("{tables}", &tables.join(","))) {
            Ok(rows) => rows,
            Err(ConnectionError::Server(_)) => return Ok(locations),
            Err(error) => return Err(error),
        };
        let rows: Vec<_> =
            rows.into_iter().filter_map(|row| <[_; 3]>::try_from(row).ok()).collect();
        let is_measured = |kind: &Option<String>| kind.as_deref() == Some("tables");
        if rows.iter().any(|[kind, ..]| is_measured(kind)) {
            locations.0.iter_mut().for_each(|location| location.has_tables = false);
        }
        for [kind, name, location] in rows {
            let (Some(name), Some(location)) = (name, location) else {
                continue;
            };
            let role = match (is_measured(&kind), location.is_empty()) {
                (false, _) => Role::Temporary,
                (true, true) => Role::Data,
                (true, false) => Role::Tablespace(name),
            };
            locations.add(role, data.join(location), is_measured(&kind));
        }
        Ok(locations)
    }

    fn add(&mut self, role: Role, path: PathBuf, has_tables: bool) {
        match self.0.iter_mut().find(|known| known.role == role && known.path == path) {
            Some(known) => known.has_tables |= has_tables,
            None => self.0.push(Location { role, path, has_tables }),
        }
    }

    /// Returns the directory of the measured tables.
    #[must_use]
    pub fn of_tables(&self) -> Option<&Path> {
        let first = self.0.iter().find(|location| location.has_tables);
        first.map(|location| location.path.as_path())
    }

    /// Returns the devices of the locations. Locations without a visible block device are missing.
    #[must_use]
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
                let known = devices.disks.iter_mut().find(|known| known.disk == *disk);
                if let Some(known) = known {
                    add_role(&mut known.roles, role);
                } else {
                    let roles = vec![role.clone()];
                    devices.disks.push(RoleDisk { roles, disk: disk.clone() });
                }
            }
            match devices.volumes.iter_mut().find(|known| known.volume == volume) {
                Some(known) => {
                    add_role(&mut known.roles, role);
                    known.has_tables |= has_tables;
                }
                None => devices.volumes.push(RoleVolume {
                    roles: vec![role.clone()],
                    volume,
                    has_tables: *has_tables,
                }),
            }
        }
        devices
    }
}

fn add_role(roles: &mut Vec<Role>, role: &Role) {
    if !roles.contains(role) {
        roles.push(role.clone());
    }
}

impl Devices {
    /// Returns the device of the measured tables and indexes, which can be on several.
    #[must_use]
    pub fn of_tables(&self) -> Option<Device> {
        let volumes = self.volumes.iter().filter(|each| each.has_tables);
        Device::of_blocks(volumes.flat_map(|each| each.volume.members.clone()).collect())
    }

    /// Returns the volume of the measured tables and indexes; `None` if they are on several.
    #[must_use]
    pub fn volume_of_tables(&self) -> Option<&Volume> {
        let mut volumes = self.volumes.iter().filter(|each| each.has_tables);
        let first = volumes.next()?;
        volumes.next().is_none().then_some(&first.volume)
    }

    /// Returns the volumes that consist only of this disk.
    pub fn volumes_on<'a>(&'a self, disk: &'a Block) -> impl Iterator<Item = &'a Volume> {
        let volumes = self.volumes.iter().map(|each| &each.volume);
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

    fn locations(of: &[(Role, &str, bool)]) -> Locations {
        let location = |(role, path, has_tables): &(Role, &str, bool)| Location {
            role: role.clone(),
            path: (*path).into(),
            has_tables: *has_tables,
        };
        Locations(of.iter().map(location).collect())
    }

    fn shown(devices: &Devices) -> Vec<String> {
        let roles =
            |roles: &[Role]| roles.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let disk = |each: &RoleDisk| format!("{}: {}", each.disk.name, roles(&each.roles));
        devices.disks.iter().map(disk).collect()
    }

    #[test]
    fn a_disk_with_several_roles_is_one_entry() {
        let locations = locations(&[
            (Role::Data, "/data", true),
            (Role::Wal, "/wal", false),
            (Role::Temporary, "/data", false),
            (Role::Temporary, "/nfs", false),
        ]);
        let devices = locations.devices_by(&|path| match path.to_str() {
            Some("/data") => Some(volume("sda1", &["sda"])),
            Some("/wal") => Some(volume("sda2", &["sda"])),
            _ => None,
        });
        assert_eq!(shown(&devices), ["sda: data, wal, temporary"]);
        assert_eq!(devices.of_tables().unwrap().name(), "sda1");
        let on_disk: Vec<_> = devices.volumes_on(&block("sda")).map(Volume::name).collect();
        assert_eq!(on_disk, ["sda1", "sda2"]);
    }

    #[test]
    fn the_device_of_the_tables_is_that_of_their_tablespaces() {
        let fast = || Role::Tablespace("fast".to_owned());
        let find = |path: &Path| match path.to_str() {
            Some("/fast") => Some(volume("dm-0", &["sdb", "sdc"])),
            _ => Some(volume("sda", &["sda"])),
        };
        let one = locations(&[(Role::Data, "/data", false), (fast(), "/fast", true)]);
        let devices = one.devices_by(&find);
        assert_eq!(shown(&devices), ["sda: data", "sdb: tablespace fast", "sdc: tablespace fast"]);
        assert_eq!(devices.of_tables().unwrap().name(), "dm-0");
        assert_eq!(devices.volume_of_tables().unwrap().name(), "dm-0");
        // The maximum of a striped volume is not that of one of its disks.
        assert_eq!(devices.volumes_on(&block("sdb")).count(), 0);
        let both = locations(&[(Role::Data, "/data", true), (fast(), "/fast", true)]);
        let devices = both.devices_by(&find);
        assert_eq!(devices.of_tables().unwrap().name(), "sda+dm-0");
        assert_eq!(devices.volume_of_tables(), None);
    }
}
