#![no_main]
//! Connection strings, `PG*` variables, service files and password files. The input has these four parts, with a zero
//! byte after each.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use riops::server::ConnInfo;

/// Must not be shown, if it is a part of the password only.
const SECRET: &str = "S3cr3t";

struct Files {
    service: PathBuf,
    password: PathBuf,
}

static FILES: LazyLock<Files> = LazyLock::new(|| {
    let folder = std::env::temp_dir().join(format!("riops-fuzz-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a writable directory for temporary files");
    Files { service: folder.join("service"), password: folder.join("password") }
});

/// Returns the path of a file with these contents.
fn write_file(path: &PathBuf, contents: Option<&str>) -> Option<String> {
    fs::write(path, contents?).expect("the file can be written");
    let owner_only = fs::Permissions::from_mode(0o600);
    fs::set_permissions(path, owner_only).expect("the owner may change the permissions");
    Some(path.display().to_string())
}

fuzz_target!(|input: &str| {
    let mut parts = input.split('\0');
    let text = parts.next().unwrap_or_default();
    let lines = parts.next().unwrap_or_default().lines();
    let variables: HashMap<_, _> = lines.filter_map(|line| line.split_once('=')).collect();
    let service_file = write_file(&FILES.service, parts.next());
    let password_file = write_file(&FILES.password, parts.next());
    let environment = |name: &str| match name {
        "PGSERVICEFILE" => service_file.clone(),
        "PGPASSFILE" => password_file.clone(),
        "HOME" | "PGSYSCONFDIR" => Some("/nonexistent".to_owned()),
        _ => variables.get(name).map(|&value| value.to_owned()),
    };
    let _ = ConnInfo::is_in_environment(environment);
    let shown = ConnInfo::without_password(text);
    let Ok(info) = ConnInfo::parse(text, environment) else {
        return;
    };
    let shown = shown.expect("a connection string that can be used can be shown");
    ConnInfo::parse(&shown, environment).expect("what is shown is a connection string");
    let has_secret = text.contains(SECRET) && input.matches(SECRET).count() == 1;
    for server in &info.servers {
        let password = info.credentials(server, true, None).password.unwrap_or_default();
        if password.contains(SECRET) && has_secret {
            assert!(!shown.contains(SECRET), "{shown}");
            assert!(!format!("{info}{info:?}").contains(SECRET));
        }
    }
});
