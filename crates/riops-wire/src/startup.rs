//! The conversation from the first byte to the first ReadyForQuery.
//!
//! Sans-I/O: the owner sends what is appended and feeds what it receives.

use crate::auth::{
    AuthPolicy, Method, SCRAM_SHA_256, SCRAM_SHA_256_PLUS, Scram, ScramError, md5_answer,
};
use crate::backend::{Authentication, Message, ServerError};
use crate::frontend::{self, EncodeError};

/// Settings that a server may report; PostgreSQL 18 reports 15.
const PARAMETERS_MAX: usize = 128;
/// Messages before the first ReadyForQuery; beyond that the server does not mean to end it.
const MESSAGES_MAX: usize = 1_000;

/// Who connects, to what, with which settings.
#[derive(Clone, Default)]
pub struct Credentials {
    /// Name of the role.
    pub user: String,
    /// Its password, where there is one.
    pub password: Option<String>,
    /// Name of the database.
    pub database: String,
    /// Settings for the session, by name.
    pub settings: Vec<(String, String)>,
    /// What the server may ask for.
    pub policy: AuthPolicy,
}

impl std::fmt::Debug for Credentials {
    // A password is never printed.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Credentials")
            .field("user", &self.user)
            .field("database", &self.database)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

/// What the server told of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Greeting {
    /// Its settings, by name: `server_version`, `TimeZone`, …
    pub parameters: Vec<(String, String)>,
    /// The process that serves this session.
    pub process: i32,
    /// The secret that a cancel request has to name.
    pub secret: Vec<u8>,
}

impl Greeting {
    /// The value of a setting that the server reported.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }
}

/// Why no session came about.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StartupError {
    /// The server said no.
    #[error(transparent)]
    Server(Box<ServerError>),
    /// The server wants a password and there is none.
    #[error("the server asks for a password and none was given")]
    PasswordMissing,
    /// The server wants a method that riops does not offer.
    #[error("the server asks for the authentication method {0}, which riops does not offer")]
    UnsupportedMethod(String),
    /// The server wants the password as it is, over a connection that others may read.
    #[error(
        "the server asks for the password in cleartext over an unencrypted connection: use TLS (sslmode=require), or allow it by name (require_auth=password)"
    )]
    CleartextRefused,
    /// The server uses a method that `require_auth` does not allow.
    #[error("the server uses the authentication method {0}, which require_auth does not allow")]
    MethodRefused(&'static str),
    /// `channel_binding=require` cannot be kept.
    #[error("channel_binding=require cannot be kept: {0}")]
    NoChannelBinding(&'static str),
    /// SCRAM failed on this side.
    #[error(transparent)]
    Scram(#[from] ScramError),
    /// A name or a setting cannot be sent.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// The server sends what does not belong here.
    #[error("the server sent an unexpected message while connecting: {0}")]
    Unexpected(String),
}

/// The state of the conversation.
pub struct Startup {
    user: String,
    password: Option<String>,
    policy: AuthPolicy,
    /// How the server made sure of the client; nothing as long as it did not ask.
    method: Method,
    /// Whether the exchange was bound to the TLS channel.
    bound: bool,
    scram: Option<Scram>,
    /// Whether SCRAM has proved that the server knows the password: without that proof an
    /// AuthenticationOk in the middle of the exchange would be accepted from anybody.
    scram_proved: bool,
    authenticated: bool,
    greeting: Greeting,
    messages: usize,
}

impl std::fmt::Debug for Startup {
    // It holds the password.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Startup").field("user", &self.user).finish_non_exhaustive()
    }
}

impl Startup {
    /// Begins a conversation: appends the startup message.
    ///
    /// # Errors
    /// [`StartupError::Encode`]
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
            user: credentials.user.clone(),
            password: credentials.password.clone(),
            policy: credentials.policy.clone(),
            method: Method::None,
            bound: false,
            scram: None,
            scram_proved: false,
            authenticated: false,
            greeting: Greeting::default(),
            messages: 0,
        })
    }

    /// Takes the next message and appends the answer, where one is due. Returns whether the
    /// session is ready.
    ///
    /// # Errors
    /// [`StartupError`]
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
                if self.greeting.parameters.len() < PARAMETERS_MAX {
                    self.greeting.parameters.push(((*name).to_owned(), (*value).to_owned()));
                }
                Ok(false)
            }
            Message::BackendKeyData { process, secret } if self.authenticated => {
                self.greeting.process = *process;
                self.greeting.secret = secret.to_vec();
                Ok(false)
            }
            Message::ReadyForQuery(_) if self.authenticated => Ok(true),
            other => Err(unexpected(other)),
        }
    }

    /// What the server told of itself, once the session is ready.
    #[must_use]
    pub fn into_greeting(self) -> Greeting {
        self.greeting
    }

    fn authenticate(
        &mut self,
        step: &Authentication<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), StartupError> {
        match (step, self.scram.as_mut()) {
            (Authentication::Ok, scram) if scram.is_none() || self.scram_proved => {
                self.allow(self.method)?;
                if self.policy.binding_required && !self.bound {
                    return Err(StartupError::NoChannelBinding(
                        "the server let the session in without it",
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
                self.note_method(Method::Password)?;
                if !self.policy.cleartext {
                    return Err(StartupError::CleartextRefused);
                }
                let password = self.password()?.to_owned();
                send_password(&password, out)
            }
            (Authentication::Md5Password(salt), None) => {
                self.note_method(Method::Md5)?;
                let password = self.password()?;
                send_password(&md5_answer(&self.user, password, *salt), out)
            }
            (Authentication::Other(code), _) => Err(unsupported(&other_method(*code))),
            (step, _) => Err(StartupError::Unexpected(format!("{step:?}"))),
        }
    }

    fn begin_sasl(&mut self, mechanisms: &[&str], out: &mut Vec<u8>) -> Result<(), StartupError> {
        let plus = mechanisms.contains(&SCRAM_SHA_256_PLUS);
        if !plus && !mechanisms.contains(&SCRAM_SHA_256) {
            return Err(StartupError::UnsupportedMethod(mechanisms.join(", ")));
        }
        self.note_method(Method::ScramSha256)?;
        let end_point = self.policy.server_end_point.clone();
        if self.policy.binding_required && (!plus || end_point.is_none()) {
            return Err(StartupError::NoChannelBinding(if plus {
                "the connection is not encrypted, or the server's certificate has no hash to bind to"
            } else {
                "the server does not offer SCRAM-SHA-256-PLUS"
            }));
        }
        let bind = plus && end_point.is_some();
        if !bind && !mechanisms.contains(&SCRAM_SHA_256) {
            return Err(StartupError::UnsupportedMethod(mechanisms.join(", ")));
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

    /// A server asks once.
    fn note_method(&mut self, method: Method) -> Result<(), StartupError> {
        if self.method != Method::None || self.authenticated {
            return Err(StartupError::Unexpected("a second authentication".to_owned()));
        }
        self.method = method;
        self.allow(method)?;
        // Nothing that a third party could use is sent before it is sure that there is none.
        if self.policy.binding_required && method != Method::ScramSha256 {
            return Err(StartupError::NoChannelBinding(
                "the server asks for a method that cannot be bound to the channel",
            ));
        }
        Ok(())
    }

    fn allow(&self, method: Method) -> Result<(), StartupError> {
        if self.policy.allows(method) {
            return Ok(());
        }
        Err(StartupError::MethodRefused(method.name()))
    }

    fn password(&self) -> Result<&str, StartupError> {
        self.password.as_deref().ok_or(StartupError::PasswordMissing)
    }
}

fn send_password(password: &str, out: &mut Vec<u8>) -> Result<(), StartupError> {
    let mut body = Vec::new();
    frontend::text(&mut body, password).map_err(|_| EncodeError::ZeroByte("…".to_owned()))?;
    frontend::Message::Authentication(&body).encode(out)?;
    Ok(())
}

/// The methods of "Authentication Request" in the message formats.
fn other_method(code: i32) -> String {
    match code {
        2 => "Kerberos V5".to_owned(),
        7 | 8 => "GSSAPI".to_owned(),
        9 => "SSPI".to_owned(),
        other => format!("number {other}"),
    }
}

fn unsupported(method: &str) -> StartupError {
    StartupError::UnsupportedMethod(method.to_owned())
}

fn unexpected(message: &Message<'_>) -> StartupError {
    let mut text = format!("{message:?}");
    // What the server sent may be megabytes.
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
    fn trust_needs_no_password_and_collects_what_the_server_says() {
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
        let greeting = startup.into_greeting();
        assert_eq!(greeting.parameter("server_version"), Some("18.1"));
        assert_eq!((greeting.process, greeting.secret), (7, vec![1, 2, 3, 4]));
    }

    #[test]
    fn a_server_that_skips_the_proof_is_not_believed() {
        let mut out = Vec::new();
        let mut startup = Startup::begin(&credentials(Some("secret")), &mut out).unwrap();
        let sasl = Message::Authentication(Authentication::Sasl(vec![SCRAM_SHA_256]));
        assert_eq!(startup.receive(&sasl, &mut out), Ok(false));
        let ok = Message::Authentication(Authentication::Ok);
        assert!(matches!(startup.receive(&ok, &mut out), Err(StartupError::Unexpected(_))));
    }

    #[test]
    fn a_missing_password_and_an_unknown_method_are_named() {
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

    /// What happens when a server asks for `step` and is content with the answer.
    fn ask(policy: AuthPolicy, step: Authentication<'_>) -> Result<Vec<u8>, StartupError> {
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
    fn md5_answers_with_the_salted_hash() {
        // 'md5' || md5(md5('secret' || 'riops') || salt), as md5sum computes it.
        let answer = ask(AuthPolicy::default(), Authentication::Md5Password([1, 2, 3, 4])).unwrap();
        assert_eq!(&answer[5..40], b"md50de3df0eeeadbdcfae16a7768ff578c9");
    }

    #[test]
    fn a_cleartext_password_goes_only_where_it_was_allowed() {
        let ask_with = |cleartext| {
            ask(
                AuthPolicy { cleartext, ..AuthPolicy::default() },
                Authentication::CleartextPassword,
            )
        };
        assert_eq!(ask_with(false), Err(StartupError::CleartextRefused));
        assert_eq!(ask_with(true).unwrap(), b"p\0\0\0\x0bsecret\0");
    }

    #[test]
    fn a_method_that_is_not_allowed_is_refused() {
        let only = |methods: &[Method]| AuthPolicy {
            allowed: Some(methods.to_vec()),
            ..AuthPolicy::default()
        };
        let md5 = || Authentication::Md5Password([0; 4]);
        assert!(ask(only(&[Method::Md5]), md5()).is_ok());
        assert_eq!(
            ask(only(&[Method::ScramSha256]), md5()),
            Err(StartupError::MethodRefused("md5"))
        );
        // A server that asks for nothing is a method too: `none`.
        assert_eq!(
            ask(only(&[Method::ScramSha256]), Authentication::Ok),
            Err(StartupError::MethodRefused("none"))
        );
        assert!(ask(only(&[Method::None]), Authentication::Ok).is_ok());
    }

    #[test]
    fn channel_binding_is_used_where_both_sides_can_and_demanded_where_it_is_required() {
        let both = || Authentication::Sasl(vec![SCRAM_SHA_256_PLUS, SCRAM_SHA_256]);
        let plain = || Authentication::Sasl(vec![SCRAM_SHA_256]);
        let policy = |end_point: Option<&[u8]>, binding_required| AuthPolicy {
            server_end_point: end_point.map(<[u8]>::to_vec),
            binding_required,
            ..AuthPolicy::default()
        };
        let says = |result: Result<Vec<u8>, StartupError>, text: &[u8]| {
            result.unwrap().windows(text.len()).any(|window| window == text)
        };
        assert!(says(ask(policy(Some(b"hash"), true), both()), b"SCRAM-SHA-256-PLUS"));
        assert!(says(ask(policy(Some(b"hash"), true), both()), b"p=tls-server-end-point"));
        // The client could, the server does not offer it: `y`, so that a removed offer is noticed.
        assert!(says(ask(policy(Some(b"hash"), false), plain()), b"y,,"));
        assert!(says(ask(policy(None, false), both()), b"n,,"));
        for (end_point, offer) in [(None, both()), (Some(b"hash".as_slice()), plain())] {
            let refused = ask(policy(end_point, true), offer);
            assert!(matches!(refused, Err(StartupError::NoChannelBinding(_))), "{refused:?}");
        }
        for step in [
            Authentication::Ok,
            Authentication::Md5Password([0; 4]),
            Authentication::CleartextPassword,
        ] {
            let policy = AuthPolicy { cleartext: true, ..policy(Some(b"hash"), true) };
            let refused = ask(policy, step);
            assert!(matches!(refused, Err(StartupError::NoChannelBinding(_))), "{refused:?}");
        }
    }

    #[test]
    fn a_second_question_is_refused() {
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
    fn a_session_is_not_ready_before_it_is_authenticated() {
        let mut out = Vec::new();
        let mut startup = Startup::begin(&credentials(None), &mut out).unwrap();
        let ready = Message::ReadyForQuery(TransactionStatus::Idle);
        assert!(startup.receive(&ready, &mut out).is_err());
    }

    #[test]
    fn a_password_is_not_in_the_debug_text() {
        assert!(!format!("{:?}", credentials(Some("secret"))).contains("secret"));
    }
}
