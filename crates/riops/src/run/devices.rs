//! The devices of the server for the record, with the limits that were measured before.

use crate::engine::History;
use crate::probe::locations::{Locations, RoleDisk};
use crate::probe::topology::{Topology, Volume};
use crate::record::{Disk, DiskLimit, Storage};

/// What the record has about the devices of the server. Empty if the server is on another machine.
#[derive(Default)]
pub(super) struct DeviceRecords {
    /// Storage of the measured tables.
    pub(super) storage: Option<Storage>,
    /// Limits of its device.
    pub(super) disk_limit: Option<DiskLimit>,
    /// The disks of the server.
    pub(super) disks: Vec<Disk>,
}

impl DeviceRecords {
    /// Reads the devices of these locations of a server on the machine `host`.
    pub(super) fn read(locations: &Locations, host: &str, history: &dyn History) -> Self {
        let topology = Topology::of_this_machine();
        let devices = locations.devices(&topology);
        let limit = |volume: &Volume| {
            history.disk_limit(host, &volume.name(), topology.identity(volume).as_deref())
        };
        let disk = |each: &RoleDisk| {
            // The limits of a volume on several disks are not those of one disk.
            let alone = Volume { members: vec![each.disk.clone()], disks: vec![each.disk.clone()] };
            let volumes = || devices.volumes_on(&each.disk);
            let measured = volumes().find_map(|volume| Some((volume, limit(volume)?)));
            let volume = measured.as_ref().map(|(volume, _)| *volume).or_else(|| volumes().next());
            Disk {
                name: each.disk.name.clone(),
                roles: each.roles.clone(),
                model: topology.model(&each.disk),
                identity: topology.identity(volume.unwrap_or(&alone)),
                disk_limit: measured.map(|(_, limit)| limit),
            }
        };
        Self {
            storage: locations.of_tables().map(Storage::of_path),
            disk_limit: devices.volume_of_tables().and_then(limit),
            disks: devices.disks.iter().map(disk).collect(),
        }
    }
}
