//! Whether standard output was open when the process started.
//!
//! The Rust runtime opens `/dev/null` in place of a closed standard output, so that all writes succeed and the result is
//! lost. The flags of the file do not show this afterwards: Python and Node.js also open `/dev/null` for reading and
//! writing if the caller discards the output. Therefore the file is examined before the runtime starts, by a function
//! that the loader calls (System V gABI, "Initialization and Termination Functions").

use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::{FdFlags, fcntl_getfd, fcntl_setfd};
use rustix::stdio::stdout;

static WAS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Notes that standard output is closed. Only a system call: the runtime has not started.
extern "C" fn examine() {
    WAS_CLOSED.store(fcntl_getfd(stdout()).is_err(), Ordering::Relaxed);
}

#[expect(unsafe_code, reason = "only the loader calls functions before the runtime starts")]
// SAFETY: the section contains addresses of functions with the C calling convention, and this is one.
#[cfg_attr(target_vendor = "apple", unsafe(link_section = "__DATA,__mod_init_func"))]
#[cfg_attr(not(target_vendor = "apple"), unsafe(link_section = ".init_array"))]
#[used]
static EXAMINE: extern "C" fn() = examine;

/// Returns whether standard output was closed when the process started.
pub(crate) fn was_closed() -> bool {
    WAS_CLOSED.load(Ordering::Relaxed)
}

/// Closes a replaced standard output again for the programs that this process executes. riops executes itself to hide
/// passwords.
pub(crate) fn keep_closed() {
    if was_closed() {
        let _ = fcntl_setfd(stdout(), FdFlags::CLOEXEC);
    }
}
