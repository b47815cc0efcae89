//! COPY over a blocking connection, in both directions.

use riops_wire::backend::{Message, ServerError};
use riops_wire::frontend;

use super::connection::{Connection, ConnectionError};

impl Connection {
    /// Runs COPY … FROM STDIN. Each call of `fill` appends one chunk of data and returns false after
    /// the last one. The command is complete when this function returns.
    ///
    /// # Errors
    /// As [`Self::query`].
    pub fn copy_in(
        &mut self,
        sql: &str,
        mut fill: impl FnMut(&mut Vec<u8>) -> bool,
    ) -> Result<(), ConnectionError> {
        self.encode_query(sql)?;
        self.flush()?;
        self.await_copy_start()?;
        let mut more = true;
        let mut data = Vec::new();
        while more {
            if self.is_interrupted() {
                return Err(ConnectionError::Interrupted);
            }
            data.clear();
            more = fill(&mut data);
            frontend::Message::CopyData(&data).encode(self.out())?;
            self.flush()?;
        }
        frontend::Message::CopyDone.encode(self.out())?;
        self.collect().map(drop)
    }

    /// Runs COPY … TO STDOUT and passes each chunk of data to `take`.
    ///
    /// # Errors
    /// As [`Self::query`].
    pub fn copy_out(
        &mut self,
        sql: &str,
        mut take: impl FnMut(&[u8]),
    ) -> Result<(), ConnectionError> {
        self.encode_query(sql)?;
        self.flush()?;
        self.await_copy_start()?;
        let mut next = |message: &Message<'_>| match message {
            Message::CopyData(data) => {
                take(data);
                Some(true)
            }
            Message::CopyDone => Some(false),
            _ => None,
        };
        while self.await_message(&mut next)? {}
        self.collect().map(drop)
    }

    fn await_copy_start(&mut self) -> Result<(), ConnectionError> {
        self.await_message(|message| {
            matches!(message, Message::CopyInResponse | Message::CopyOutResponse).then_some(())
        })
    }

    /// Reads up to a message that is expected. After an error of the server, the connection remains usable.
    fn await_message<T>(
        &mut self,
        mut expected: impl FnMut(&Message<'_>) -> Option<T>,
    ) -> Result<T, ConnectionError> {
        loop {
            let (frame, _) = self.next_frame()?;
            let message = Message::decode(frame)?;
            if let Some(found) = expected(&message) {
                return Ok(found);
            }
            match message {
                Message::ErrorResponse(fields) => {
                    let error = Box::new(ServerError::from_fields(fields));
                    self.collect()?;
                    return Err(ConnectionError::Server(error));
                }
                Message::NoticeResponse(_) | Message::ParameterStatus { .. } => {}
                other => {
                    let text = format!("unexpected message during COPY: {other:?}");
                    return Err(ConnectionError::Protocol(text));
                }
            }
        }
    }
}
