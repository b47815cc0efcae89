//! The process title: `/proc/PID/cmdline`, which every user of the machine can read.

use std::net::TcpListener;

use crate::fixture::{command, start_until};

#[test]
fn removes_the_password_from_the_title_for_every_form_of_the_database_option() {
    // Accepts connections and never responds, so riops still waits when its title is read.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    for form in ["-nd ", "-nd", "-nd=", "-d ", "--database ", "--database="] {
        let url = format!("postgresql://u:secret@{address}/x");
        let line = format!("run load --no_store {form}{url} --report_interval=1");
        let mut child = start_until(&mut command(&line), "target: ");
        let title = std::fs::read_to_string(format!("/proc/{}/cmdline", child.id())).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(title.contains("\0load\0") && !title.contains("secret"), "{form}: {title}");
        assert!(title.contains("\0--interval=1\0"), "{form}: {title}");
        let is_flag_left = title.contains("\0--non-transactional\0");
        assert_eq!(is_flag_left, form.starts_with("-n"), "{form}: {title}");
    }
}
