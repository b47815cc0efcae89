//! COPY over a blocking connection.

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
            if self.interrupt.is_requested() {
                return Err(ConnectionError::Interrupted);
            }
            data.clear();
            more = fill(&mut data);
            frontend::Message::CopyData(&data).encode(&mut self.out)?;
            self.flush()?;
        }
        frontend::Message::CopyDone.encode(&mut self.out)?;
        self.collect().map(drop)
    }

    /// Reads up to the message that starts the transfer. After an error of the server, the connection remains usable.
    fn await_copy_start(&mut self) -> Result<(), ConnectionError> {
        loop {
            let (frame, _) = self.next_frame()?;
            match Message::decode(frame)? {
                Message::CopyInResponse => return Ok(()),
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
