//! Failure to start a server.

/// Failure to start the dashboard or the metrics of a run.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The text is not an address.
    #[error(
        "\"{0}\" is not an address to listen on: give ADDRESS:PORT, such as 127.0.0.1:8080 or [::1]:8080"
    )]
    NotAnAddress(String),
    /// The text is not an address of a receiver.
    #[error(
        "\"{0}\" is not an address to send metrics to: give http(s)://HOST:PORT/PATH, such as http://localhost:9090/api/v1/write"
    )]
    PushAddress(String),
    /// The port cannot be opened.
    #[error("cannot listen on {address}: {source}{}", listen_hint(.source))]
    Listen {
        /// Address as typed.
        address: String,
        /// Reason.
        source: std::io::Error,
    },
    /// Other machines could read the results.
    #[error(
        "{address} can be reached from other machines: set a token with {option}, or listen on 127.0.0.1"
    )]
    TokenRequired {
        /// Address as typed.
        address: String,
        /// The option that reads a token from a file.
        option: &'static str,
    },
    /// Other users of the machine could change the store.
    #[error("changes require a token, because other users of this machine can connect too")]
    EditRequiresToken,
    /// A token that can be guessed.
    #[error("the token has {length} characters: use at least {min}, without spaces")]
    WeakToken {
        /// Its length.
        length: usize,
        /// Minimum length.
        min: usize,
    },
    /// The threads or timers of the server cannot be created.
    #[error("cannot start the server for {address}: {source}")]
    Start {
        /// Address as typed.
        address: String,
        /// Reason.
        source: std::io::Error,
    },
    /// A template of riops is wrong.
    #[error("cannot render a page: {0}")]
    Template(#[from] minijinja::Error),
}

fn listen_hint(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::AddrInUse => {
            "; another program uses this port: choose another one, or 0 for a free one"
        }
        std::io::ErrorKind::PermissionDenied => "; ports below 1024 need privileges",
        _ => "",
    }
}
