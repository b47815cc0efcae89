//! The conversation from the first byte to the first ReadyForQuery.
//!
//! Sans-I/O: the owner sends what is appended and feeds what it receives.

use crate::auth::{SCRAM_SHA_256, Scram, ScramError};
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
#[derive(Debug)]
pub struct Startup {
    password: Option<String>,
    scram: Option<Scram>,
    /// Whether SCRAM has proved that the server knows the password: without that proof an
    /// AuthenticationOk in the middle of the exchange would be accepted from anybody.
    scram_proved: bool,
    authenticated: bool,
    greeting: Greeting,
    messages: usize,
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
            password: credentials.password.clone(),
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
                self.authenticated = true;
                Ok(())
            }
            (Authentication::Sasl(mechanisms), None) => {
                if !mechanisms.contains(&SCRAM_SHA_256) {
                    return Err(StartupError::UnsupportedMethod(mechanisms.join(", ")));
                }
                let password = self.password.as_deref().ok_or(StartupError::PasswordMissing)?;
                let scram = Scram::new(password);
                let mut body = Vec::new();
                frontend::text(&mut body, SCRAM_SHA_256)?;
                frontend::value(&mut body, Some(scram.message()))?;
                frontend::Message::Authentication(&body).encode(out)?;
                self.scram = Some(scram);
                Ok(())
            }
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
            (Authentication::CleartextPassword, _) => Err(unsupported("password (cleartext)")),
            (Authentication::Md5Password(_), _) => Err(unsupported("md5")),
            (Authentication::Other(code), _) => Err(unsupported(&format!("number {code}"))),
            (step, _) => Err(StartupError::Unexpected(format!("{step:?}"))),
        }
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
            Err(StartupError::UnsupportedMethod("number 7".to_owned()))
        );
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
