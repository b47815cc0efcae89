//! Storage of the server's data, if it is on this machine.

use std::path::Path;

use super::topology::{Block, Topology};
use crate::host::machine::selected;
use crate::record::Storage;

impl Storage {
    /// Reads the storage of `path` from the operating system.
    pub fn of_path(path: &Path) -> Self {
        let topology = Topology::of_this_machine();
        let canonical = path.canonicalize().ok();
        let mount = canonical.and_then(|path| topology.mount_of(&path).cloned());
        let volume = topology.volume(path);
        // Partitions and logical volumes have no model and no queue of their own.
        let disk = volume.as_ref().and_then(|volume| volume.disks.first());
        let queue = |file: &str| topology.attribute(disk?, file);
        Self {
            model: disk.and_then(|disk| topology.model(disk)),
            rotational: queue("queue/rotational").map(|text| text == "1"),
            scheduler: queue("queue/scheduler").map(|text| selected(&text).unwrap_or(text)),
            file_system: mount.as_ref().map(|mount| mount.file_system.clone()),
            mount_options: mount.map(|mount| mount.options),
            device: volume.map(|volume| volume.name()),
        }
    }
}

impl Topology {
    /// Returns the model name that the disk reports.
    pub fn model(&self, disk: &Block) -> Option<String> {
        self.attribute(disk, "device/model")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_has_a_file_system() {
        assert!(Storage::of_path(Path::new("/")).file_system.is_some());
    }
}
