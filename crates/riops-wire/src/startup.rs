//! The connection startup, from the first byte to the first ReadyForQuery.
//!
//! Sans-I/O: the caller sends the appended bytes and passes in the received messages.

use postgres_protocol::authentication::md5_hash;

use crate::auth::{AuthPolicy, Method, SCRAM_SHA_256, SCRAM_SHA_256_PLUS, Scram, ScramError};
use crate::backend::{Authentication, Message, ServerError};
use crate::frontend::{self, EncodeError};

/// Maximum number of reported settings; PostgreSQL 18 reports 15.
const PARAMETERS_MAX: usize = 128;
/// Maximum length of the name or the value of a stored setting, in bytes. Longer ones are not stored: a
/// truncated value would be a wrong one, and riops needs only short ones such as `server_version`.
const PARAMETER_BYTES_MAX: usize = 4096;
/// Maximum length of the secret key for cancel requests in protocol 3.2, in bytes; 3.0 has 4 bytes.
const SECRET_BYTES_MAX: usize = 256;
/// Maximum number of messages before the first ReadyForQuery. A server that sends more does not
/// complete the startup.
const MESSAGES_MAX: usize = 1_000;

/// User, database and session settings of a connection.
#[derive(Clone, Default)]
pub struct Credentials {
    /// Role name.
    pub user: String,
    /// Password, if any.
    pub password: Option<String>,
    /// Database name.
    pub database: String,
    /// Session settings, by name.
    pub settings: Vec<(String, String)>,
    /// Accepted authentication methods.
    pub policy: AuthPolicy,
}

impl std::fmt::Debug for Credentials {
    // The password must not appear in logs.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Credentials")
            .field("user", &self.user)
            .field("database", &self.database)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

/// Session information that the server reports at startup.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionInfo {
    /// Reported settings, by name: `server_version`, `TimeZone`, …
    pub parameters: Vec<(String, String)>,
    /// Process ID of the backend.
    pub process: i32,
    /// Secret key for cancel requests.
    pub secret: Vec<u8>,
}

impl SessionInfo {
    /// Returns the value of a reported setting.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// Failure to establish a session.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StartupError {
    /// The server rejected the connection.
    #[error(transparent)]
    Server(Box<ServerError>),
    /// The server requires a password, but none was given.
    #[error("the server requires a password, but none was given")]
    PasswordMissing,
    /// The server requires an unsupported authentication method.
    #[error("authentication method {0} requested by the server is not supported")]
    UnsupportedMethod(String),
    /// The server requests the cleartext password over an unencrypted connection.
    #[error(
        "the server requests a cleartext password over an unencrypted connection; use TLS (sslmode=require) or allow it explicitly (require_auth=password)"
    )]
    CleartextRefused,
    /// The server uses a method that `require_auth` does not allow.
    #[error("authentication method {0} used by the server is not allowed by require_auth")]
    MethodRefused(&'static str),
    /// Channel binding is required but not possible.
    #[error("channel binding is required (channel_binding=require), but {0}")]
    NoChannelBinding(&'static str),
    /// SCRAM failed on the client side.
    #[error(transparent)]
    Scram(#[from] ScramError),
    /// A name or a setting cannot be encoded.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// The server sent an unexpected message.
    #[error("the server sent an unexpected message while connecting: {0}")]
    Unexpected(String),
}

/// State of the startup.
#[derive(Debug)]
pub struct Startup {
    credentials: Credentials,
    /// Authentication method used by the server; `None` until it requests one.
    method: Method,
    /// Whether channel binding is used.
    bound: bool,
    scram: Option<Scram>,
    /// Whether SCRAM has proved that the server knows the password. Without that proof, an
    /// AuthenticationOk during the exchange would be accepted from an impostor.
    scram_proved: bool,
    authenticated: bool,
    /// The session information; complete once the session is ready.
    pub session_info: SessionInfo,
    messages: usize,
}

impl Startup {
    /// Starts a connection: appends the startup message.
    ///
    /// # Errors
    /// Returns [`StartupError::Encode`] if a name or a setting cannot be encoded.
    pub fn begin(credentials: &Credentials, out: &mut Vec<u8>) -> Result<Self, StartupError> {
        let mut parameters = vec![
            ("user", credentials.user.as_str()),
            ("database", credentials.database.as_str()),
            ("client_encoding", "UTF8"),
        ];
        parameters.extend(
            credentials.settings.iter().map(|(name, value)| (name.as_str(), value.as_str())),
        );
        frontend::startup(out, &parameters)?;
        Ok(Self {
            credentials: credentials.clone(),
            method: Method::None,
            bound: false,
            scram: None,
            scram_proved: false,
            authenticated: false,
            session_info: SessionInfo::default(),
            messages: 0,
        })
    }

    /// Processes the next message and appends the reply, if one is required. Returns whether the
    /// session is ready.
    ///
    /// # Errors
    /// Returns [`StartupError`] if the session cannot be established.
    pub fn receive(
        &mut self,
        message: &Message<'_>,
        out: &mut Vec<u8>,
    ) -> Result<bool, StartupError> {
        self.messages += 1;
        if self.messages > MESSAGES_MAX {
            return Err(StartupError::Unexpected("too many messages".to_owned()));
        }
        match message {
            Message::Authentication(step) => self.authenticate(step, out).map(|()| false),
            Message::ErrorResponse(fields) => {
                Err(StartupError::Server(Box::new(ServerError::from_fields(*fields))))
            }
            Message::NoticeResponse(_) | Message::NegotiateProtocolVersion => Ok(false),
            Message::ParameterStatus { name, value } if self.authenticated => {
                if self.session_info.parameters.len() < PARAMETERS_MAX
                    && name.len().max(value.len()) <= PARAMETER_BYTES_MAX
                {
                    self.session_info.parameters.push(((*name).to_owned(), (*value).to_owned()));
                }
                Ok(false)
            }
            Message::BackendKeyData { process, secret } if self.authenticated => {
                if secret.len() > SECRET_BYTES_MAX {
                    let length = secret.len();
                    let text = format!(
                        "a secret key of {length} bytes, which exceeds the limit of {SECRET_BYTES_MAX}"
                    );
                    return Err(StartupError::Unexpected(text));
                }
                self.session_info.process = *process;
                self.session_info.secret = secret.to_vec();
                Ok(false)
            }
            Message::ReadyForQuery(_) if self.authenticated => Ok(true),
            other => Err(unexpected(other)),
        }
    }

    fn authenticate(
        &mut self,
        step: &Authentication<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), StartupError> {
        match (step, self.scram.as_mut()) {
            (Authentication::Ok, scram) if scram.is_none() || self.scram_proved => {
                self.allow(self.method)?;
                if self.credentials.policy.binding_required && !self.bound {
                    return Err(StartupError::NoChannelBinding(
                        "the server accepted the session without it",
                    ));
                }
                self.authenticated = true;
                Ok(())
            }
            (Authentication::Sasl(mechanisms), None) => self.begin_sasl(mechanisms, out),
            (Authentication::SaslContinue(server), Some(scram)) if !self.scram_proved => {
                scram.update(server)?;
                frontend::Message::Authentication(scram.message()).encode(out)?;
                Ok(())
            }
            (Authentication::SaslFinal(server), Some(scram)) if !self.scram_proved => {
                scram.finish(server)?;
                self.scram_proved = true;
                Ok(())
            }
            (Authentication::CleartextPassword, None) => {
                self.set_method(Method::Password)?;
                if !self.credentials.policy.cleartext {
                    return Err(StartupError::CleartextRefused);
                }
                send_password(self.password()?, out)
            }
            (Authentication::Md5Password(salt), None) => {
                self.set_method(Method::Md5)?;
                let password = self.password()?;
                let user = self.credentials.user.as_bytes();
                send_password(&md5_hash(user, password.as_bytes(), *salt), out)
            }
            (Authentication::Other(code), _) => {
                Err(StartupError::UnsupportedMethod(other_method(*code)))
            }
            (step, _) => Err(StartupError::Unexpected(format!("{step:?}"))),
        }
    }

    fn begin_sasl(&mut self, mechanisms: &[&str], out: &mut Vec<u8>) -> Result<(), StartupError> {
        let plus = mechanisms.contains(&SCRAM_SHA_256_PLUS);
        let plain = mechanisms.contains(&SCRAM_SHA_256);
        let unsupported = || StartupError::UnsupportedMethod(mechanisms.join(", "));
        if !plus && !plain {
            return Err(unsupported());
        }
        self.set_method(Method::ScramSha256)?;
        let policy = &self.credentials.policy;
        let end_point = policy.server_end_point.clone();
        if policy.binding_required && (!plus || end_point.is_none()) {
            return Err(StartupError::NoChannelBinding(if plus {
                "the connection is not encrypted, or the server's certificate has no usable hash"
            } else {
                "the server does not offer SCRAM-SHA-256-PLUS"
            }));
        }
        let bind = plus && end_point.is_some();
        if !bind && !plain {
            return Err(unsupported());
        }
        self.bound = bind;
        let scram = Scram::new(self.password()?, end_point, plus);
        let mut body = Vec::new();
        frontend::text(&mut body, if bind { SCRAM_SHA_256_PLUS } else { SCRAM_SHA_256 })?;
        frontend::value(&mut body, Some(scram.message()))?;
        frontend::Message::Authentication(&body).encode(out)?;
        self.scram = Some(scram);
        Ok(())
    }

    /// A server may request authentication only once.
    fn set_method(&mut self, method: Method) -> Result<(), StartupError> {
        if self.method != Method::None || self.authenticated {
            return Err(StartupError::Unexpected("a second authentication request".to_owned()));
        }
        self.method = method;
        self.allow(method)?;
        // Send no credentials before channel binding rules out a man in the middle.
        if self.credentials.policy.binding_required && method != Method::ScramSha256 {
            return Err(StartupError::NoChannelBinding(
                "the server requests a method without channel binding",
            ));
        }
        Ok(())
    }

    fn allow(&self, method: Method) -> Result<(), StartupError> {
        match &self.credentials.policy.allowed {
            Some(allowed) if !allowed.contains(&method) => {
                Err(StartupError::MethodRefused(method.name()))
            }
            _ => Ok(()),
        }
    }

    fn password(&self) -> Result<&str, StartupError> {
        self.credentials.password.as_deref().ok_or(StartupError::PasswordMissing)
    }
}

fn send_password(password: &str, out: &mut Vec<u8>) -> Result<(), StartupError> {
    let mut body = Vec::new();
    frontend::text(&mut body, password).map_err(|_| EncodeError::ZeroByte("…".to_owned()))?;
    frontend::Message::Authentication(&body).encode(out)?;
    Ok(())
}

/// Method names from "Authentication Request" in the message formats.
fn other_method(code: i32) -> String {
    match code {
        2 => "Kerberos V5".to_owned(),
        7 | 8 => "GSSAPI".to_owned(),
        9 => "SSPI".to_owned(),
        other => format!("number {other} (unknown)"),
    }
}

fn unexpected(message: &Message<'_>) -> StartupError {
    let mut text = format!("{message:?}");
    // The message may be several megabytes long.
    if let Some((cut, _)) = text.char_indices().nth(100) {
        text.truncate(cut);
    }
    StartupError::Unexpected(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::TransactionStatus;

    fn credentials(password: Option<&str>) -> Credentials {
        Credentials {
            user: "riops".to_owned(),
            password: password.map(str::to_owned),
            database: "postgres".to_owned(),
            settings: Vec::new(),
            policy: AuthPolicy::default(),
        }
    }

    #[test]
    fn trust_authentication_needs_no_password_and_stores_reported_settings() {
        let mut out = Vec::new();
        let mut startup = Startup::begin(&credentials(None), &mut out).unwrap();
        out.clear();
        let messages = [
            Message::Authentication(Authentication::Ok),
            Message::ParameterStatus { name: "server_version", value: "18.1" },
            Message::BackendKeyData { process: 7, secret: &[1, 2, 3, 4] },
        ];
        for message in &messages {
            assert_eq!(startup.receive(message, &mut out), Ok(false));
        }
        let ready = Message::ReadyForQuery(TransactionStatus::Idle);
        assert_eq!(startup.receive(&ready, &mut out), Ok(true));
        assert!(out.is_empty());
        let session_info = startup.session_info;
        assert_eq!(session_info.parameter("server_version"), Some("18.1"));
        assert_eq!((session_info.process, session_info.secret), (7, vec![1, 2, 3, 4]));
    }

    /// Returns a startup that the server has authenticated.
    fn authenticated() -> Startup {
        let mut startup = Startup::begin(&credentials(None), &mut Vec::new()).unwrap();
        let ok = Message::Authentication(Authentication::Ok);
        startup.receive(&ok, &mut Vec::new()).unwrap();
        startup
    }

    #[test]
    fn does_not_store_settings_longer_than_the_limit() {
        let mut startup = authenticated();
        let (limit, longer) =
            ("x".repeat(PARAMETER_BYTES_MAX), "x".repeat(PARAMETER_BYTES_MAX + 1));
        for (name, value) in
            [("search_path", longer.as_str()), (&longer, "a"), ("at_the_limit", &limit), ("a", "b")]
        {
            let status = Message::ParameterStatus { name, value };
            assert_eq!(startup.receive(&status, &mut Vec::new()), Ok(false));
        }
        let info = startup.session_info;
        let names: Vec<_> = info.parameters.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["at_the_limit", "a"]);
    }

    #[test]
    fn rejects_a_secret_key_longer_than_the_protocol_allows() {
        let key = |length: usize| {
            let secret = vec![1; length];
            let mut startup = authenticated();
            let message = Message::BackendKeyData { process: 7, secret: &secret };
            startup.receive(&message, &mut Vec::new()).map(|_| startup.session_info.secret)
        };
        assert_eq!(key(SECRET_BYTES_MAX).unwrap().len(), SECRET_BYTES_MAX);
        assert!(matches!(key(SECRET_BYTES_MAX + 1), Err(StartupError::Unexpected(_))));
    }

    #[test]
    fn rejects_authentication_ok_before_the_scram_proof() {
        let mut out = Vec::new();
        let mut startup = Startup::begin(&credentials(Some("secret")), &mut out).unwrap();
        let sasl = Message::Authentication(Authentication::Sasl(vec![SCRAM_SHA_256]));
        assert_eq!(startup.receive(&sasl, &mut out), Ok(false));
        let ok = Message::Authentication(Authentication::Ok);
        assert!(matches!(startup.receive(&ok, &mut out), Err(StartupError::Unexpected(_))));
    }

    #[test]
    fn reports_a_missing_password_and_an_unsupported_method() {
        let mut out = Vec::new();
        let mut startup = Startup::begin(&credentials(None), &mut out).unwrap();
        let sasl = Message::Authentication(Authentication::Sasl(vec![SCRAM_SHA_256]));
        assert_eq!(startup.receive(&sasl, &mut out), Err(StartupError::PasswordMissing));
        let kerberos = Message::Authentication(Authentication::Other(7));
        assert_eq!(
            startup.receive(&kerberos, &mut out),
            Err(StartupError::UnsupportedMethod("GSSAPI".to_owned()))
        );
    }

    /// Sends `step` from a server that accepts any reply, and returns the client's reply.
    fn request(policy: AuthPolicy, step: Authentication<'_>) -> Result<Vec<u8>, StartupError> {
        let mut out = Vec::new();
        let credentials = Credentials { policy, ..credentials(Some("secret")) };
        let mut startup = Startup::begin(&credentials, &mut out).unwrap();
        out.clear();
        let sasl = matches!(step, Authentication::Sasl(_));
        startup.receive(&Message::Authentication(step), &mut out)?;
        let ok = Message::Authentication(Authentication::Ok);
        if !sasl && !out.is_empty() {
            startup.receive(&ok, &mut Vec::new())?;
        }
        Ok(out)
    }

    #[test]
    fn md5_responds_with_the_salted_hash() {
        // 'md5' || md5(md5('secret' || 'riops') || salt), as md5sum computes it.
        let answer =
            request(AuthPolicy::default(), Authentication::Md5Password([1, 2, 3, 4])).unwrap();
        assert_eq!(&answer[5..40], b"md50de3df0eeeadbdcfae16a7768ff578c9");
    }

    #[test]
    fn sends_a_cleartext_password_only_if_allowed() {
        let request_with = |cleartext| {
            request(
                AuthPolicy { cleartext, ..AuthPolicy::default() },
                Authentication::CleartextPassword,
            )
        };
        assert_eq!(request_with(false), Err(StartupError::CleartextRefused));
        assert_eq!(request_with(true).unwrap(), b"p\0\0\0\x0bsecret\0");
    }

    #[test]
    fn rejects_methods_that_are_not_allowed() {
        let only = |methods: &[Method]| AuthPolicy {
            allowed: Some(methods.to_vec()),
            ..AuthPolicy::default()
        };
        let md5 = || Authentication::Md5Password([0; 4]);
        assert!(request(only(&[Method::Md5]), md5()).is_ok());
        assert_eq!(
            request(only(&[Method::ScramSha256]), md5()),
            Err(StartupError::MethodRefused("md5"))
        );
        // No request counts as the method `none`.
        assert_eq!(
            request(only(&[Method::ScramSha256]), Authentication::Ok),
            Err(StartupError::MethodRefused("none"))
        );
        assert!(request(only(&[Method::None]), Authentication::Ok).is_ok());
    }

    #[test]
    fn uses_channel_binding_if_both_sides_support_it_and_fails_if_required_but_impossible() {
        let both = || Authentication::Sasl(vec![SCRAM_SHA_256_PLUS, SCRAM_SHA_256]);
        let plain = || Authentication::Sasl(vec![SCRAM_SHA_256]);
        let policy = |end_point: Option<&[u8]>, binding_required| AuthPolicy {
            server_end_point: end_point.map(<[u8]>::to_vec),
            binding_required,
            ..AuthPolicy::default()
        };
        let contains = |result: Result<Vec<u8>, StartupError>, text: &[u8]| {
            result.unwrap().windows(text.len()).any(|window| window == text)
        };
        assert!(contains(request(policy(Some(b"hash"), true), both()), b"SCRAM-SHA-256-PLUS"));
        assert!(contains(request(policy(Some(b"hash"), true), both()), b"p=tls-server-end-point"));
        // The client supports channel binding and the server does not offer it: `y` lets the server
        // detect a removed offer.
        assert!(contains(request(policy(Some(b"hash"), false), plain()), b"y,,"));
        assert!(contains(request(policy(None, false), both()), b"n,,"));
        for (end_point, offer) in [(None, both()), (Some(b"hash".as_slice()), plain())] {
            let refused = request(policy(end_point, true), offer);
            assert!(matches!(refused, Err(StartupError::NoChannelBinding(_))), "{refused:?}");
        }
        for step in [
            Authentication::Ok,
            Authentication::Md5Password([0; 4]),
            Authentication::CleartextPassword,
        ] {
            let policy = AuthPolicy { cleartext: true, ..policy(Some(b"hash"), true) };
            let refused = request(policy, step);
            assert!(matches!(refused, Err(StartupError::NoChannelBinding(_))), "{refused:?}");
        }
    }

    #[test]
    fn rejects_a_second_authentication_request() {
        let mut out = Vec::new();
        let policy = AuthPolicy { cleartext: true, ..AuthPolicy::default() };
        let credentials = Credentials { policy, ..credentials(Some("secret")) };
        let mut startup = Startup::begin(&credentials, &mut out).unwrap();
        let md5 = Message::Authentication(Authentication::Md5Password([0; 4]));
        assert_eq!(startup.receive(&md5, &mut out), Ok(false));
        let clear = Message::Authentication(Authentication::CleartextPassword);
        assert!(matches!(startup.receive(&clear, &mut out), Err(StartupError::Unexpected(_))));
    }

    #[test]
    fn rejects_ready_for_query_before_authentication() {
        let mut out = Vec::new();
        let mut startup = Startup::begin(&credentials(None), &mut out).unwrap();
        let ready = Message::ReadyForQuery(TransactionStatus::Idle);
        assert!(startup.receive(&ready, &mut out).is_err());
    }

    #[test]
    fn debug_output_does_not_contain_the_password() {
        assert!(!format!("{:?}", credentials(Some("secret"))).contains("secret"));
    }
}
