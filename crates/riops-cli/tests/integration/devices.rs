//! Devices of the server: a tablespace on a separate device, and reads by I/O workers.

use std::io::Write;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use riops::server::Connection;
use serde_json::Value;

use crate::fixture::{CommandOutput, Database, database, folder, is_root, open, program};
use crate::server::command_on;

/// Size of the loop device, in bytes.
const LOOP_BYTES: u64 = 512 << 20;

/// A file system on a loop device, unmounted on drop.
struct LoopDevice {
    /// Path of the device: `/dev/loop0`.
    device: String,
    mount: PathBuf,
}

/// Runs a program of the system; `None` if it fails.
fn system(program: &str, arguments: &[&str]) -> Option<String> {
    let out = Command::new(program).args(arguments).output().ok()?;
    out.status.success().then(|| String::from_utf8(out.stdout).unwrap().trim().to_owned())
}

impl LoopDevice {
    /// Creates a file system in this folder; `None` without root or loop devices.
    fn mount_in(folder: &Path) -> Option<Self> {
        let mount = folder.join("mount");
        // A failed test leaves it mounted.
        let _ = system("umount", &[mount.to_str().unwrap()]);
        let image = folder.join("image");
        std::fs::File::create(&image).unwrap().set_len(LOOP_BYTES).unwrap();
        let image = image.to_str().unwrap();
        system("mkfs.ext4", &["-q", "-F", image])?;
        let device = system("losetup", &["--find", "--show", image])?;
        std::fs::create_dir_all(&mount).unwrap();
        let mounted = Self { device, mount };
        system("mount", &[&mounted.device, mounted.mount.to_str().unwrap()])?;
        Some(mounted)
    }

    fn name(&self) -> &str {
        self.device.strip_prefix("/dev/").unwrap()
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // The server of all tests still uses files on it. Without them, its checkpoints fail, and with them
            // the other tests.
            return;
        }
        let _ = system("umount", &[self.mount.to_str().unwrap()]);
        let _ = system("losetup", &["--detach", &self.device]);
    }
}

/// Creates the tablespace and moves the empty database to it. Returns a connection to another database.
fn move_to_tablespace(database: &Database, tablespace: &str, location: &Path) -> Connection {
    let data = database.value("show data_directory").unwrap();
    let owner = std::fs::metadata(data).unwrap();
    std::fs::create_dir(location).unwrap();
    chown(location, Some(owner.uid()), Some(owner.gid())).unwrap();
    let mut conninfo = database.conninfo.clone();
    "postgres".clone_into(&mut conninfo.database);
    let mut admin = open(&conninfo);
    let location = location.display();
    admin.execute(&format!("create tablespace {tablespace} location '{location}'")).unwrap();
    let name = &database.conninfo.database;
    admin.execute(&format!("alter database {name} set tablespace {tablespace}")).unwrap();
    admin
}

fn roles(disk: &Value) -> Vec<&str> {
    disk["roles"].as_array().unwrap().iter().map(|role| role.as_str().unwrap()).collect()
}

fn find_disk<'a>(disks: &'a Value, name: &str) -> Option<&'a Value> {
    disks.as_array().unwrap().iter().find(|disk| disk["name"] == name)
}

#[test]
fn a_tablespace_on_a_separate_device_is_measured_there() {
    let folder = folder("devices-tablespace");
    let Some(device) = LoopDevice::mount_in(&folder).filter(|_| is_root()) else {
        std::io::stderr().write_all(b"skipped: no loop device can be mounted\n").unwrap();
        return;
    };
    let database = database("devices_tablespace");
    let mut admin = move_to_tablespace(&database, "riops_devices", &device.mount.join("pg"));
    database.riops("prepare rows --size 200M --layout block").expect(0);
    // Long enough for counters that a busy machine reads late.
    let run = "run rows --batch 100 --transactions 200 -c 1 --cold --warmup 0";
    let record = database.riops(&format!("{run} --output json")).expect(0).json();

    let io = &record["stages"][0]["io"];
    assert_eq!(io["name"], device.name(), "{io}");
    assert!(io["reads_per_s"].as_f64().unwrap() > 0.0, "{io}");
    assert!(io["queue_depth"].as_f64().unwrap() > 0.0, "{io}");
    assert!(io["sources"]["device_share"].as_f64().unwrap() > 0.3, "{io}");
    let disk = find_disk(&io["devices"], device.name()).unwrap();
    assert_eq!(roles(disk), ["tablespace riops_devices", "temporary"]);
    // The counters of devices and of disks are read one after the other.
    let reads = |counters: &Value| counters["reads_per_s"].as_f64().unwrap();
    assert!((reads(disk) / reads(io) - 1.0).abs() < 0.2, "{io}");
    let target = &record["target"];
    assert_eq!(target["storage"]["device"], device.name());
    assert!(find_disk(&target["devices"], device.name()).unwrap()["identity"].is_string());
    // The data directory of the tests can be on a device that is not visible.
    if let Some(other) = io["devices"].as_array().unwrap().iter().find(|device| *device != disk) {
        assert_eq!(roles(other), ["data", "wal"]);
    }

    if program("fio").is_some() {
        let doctor =
            format!("doctor --disk --disk-size 64MB -t 1 --disk-dir {}", device.mount.display());
        let limit = database.riops(&format!("{doctor} --output json")).expect(0).json();
        assert!(limit["random_read"]["jobs"].as_u64().unwrap() >= 1, "{limit}");
        let record = database.riops(&format!("{run} --output json")).expect(0).json();
        let target = &record["target"];
        assert_eq!(target["disk_limit"], limit);
        for disk in target["devices"].as_array().unwrap() {
            let expected = if disk["name"] == device.name() { &limit } else { &Value::Null };
            assert_eq!(&disk["disk_limit"], expected);
        }
    }
    let text = database.riops(run).expect(0).stdout;
    let shown = format!("{} (tablespace riops_devices, temporary) ", device.name());
    assert!(text.contains(&shown), "{text}");
    admin.execute("drop database devices_tablespace").unwrap();
    admin.execute("drop tablespace riops_devices").unwrap();
}

#[test]
fn reads_by_io_workers_are_part_of_the_sources_of_a_sequential_scan() {
    let home = folder("devices-io-workers");
    // Autovacuum would read the new table with the same workers.
    let settings = "--server-set shared_buffers=32MB --server-set autovacuum=off";
    let server =
        |line: &str| CommandOutput::run(&mut command_on(&home, &format!("{line} {settings}")));
    // 66 MB, twice the shared buffers.
    server("prepare oltp --table-size 300000").expect(0);
    let scan = "run oltp --test sequential-scan --range-size 300000 --time 4 -c 1";
    let record = server(&format!("{scan} --cold --warmup 0 --output json")).expect(0).json();
    assert_eq!(record["target"]["settings"]["io_method"], "worker");
    let stage = &record["stages"][0];
    let bytes = |counters: &str| stage[counters]["all"].as_u64().unwrap();
    assert!(bytes("io_worker_io") > 3 * bytes("process_io"), "{stage}");
    // The first scan reads from the device, the others from the page cache. The share includes the reads of the I/O
    // workers. It is absent if something else uses the workers.
    if let Some(share) = stage["io"]["sources"]["page_cache_share"].as_f64() {
        assert!((0.5..1.0).contains(&share), "{}", stage["io"]);
    }
}
