//! Server-sent events as a client reads them (HTML, "Server-sent events"): lines `field: value`, and an empty line behind each message.

/// A message.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Message {
    /// Its name.
    pub event: String,
    /// From where to go on behind it, if it says so.
    pub id: Option<String>,
    /// What it says.
    pub data: String,
}

/// Finds messages in bytes that come in pieces.
#[derive(Default)]
pub struct Messages {
    line: Vec<u8>,
    message: Message,
}

impl Messages {
    /// Takes more bytes; returns the messages that they complete.
    pub fn read(&mut self, bytes: &[u8]) -> Vec<Message> {
        let mut found = Vec::new();
        for &byte in bytes {
            if byte == b'\n' {
                let line = std::mem::take(&mut self.line);
                found.extend(self.take(&String::from_utf8_lossy(&line)));
            } else {
                self.line.push(byte);
            }
        }
        found
    }

    /// Takes a line; an empty one ends the message. One without data, or of a field that is not known, says nothing.
    fn take(&mut self, line: &str) -> Option<Message> {
        if line.is_empty() {
            return Some(std::mem::take(&mut self.message)).filter(|found| !found.data.is_empty());
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => self.message.event = value.into(),
            "id" => self.message.id = Some(value.into()),
            "data" => self.message.data += value,
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_the_same_in_whatever_pieces_they_come() {
        let text = b"event: gone\ndata: {}\n\n:\n\nevent: change\nid: 7\ndata: {\"a\":1}\n\nid: 9\n\nevent";
        let message = |event: &str, id: Option<&str>, data: &str| Message {
            event: event.into(),
            id: id.map(Into::into),
            data: data.into(),
        };
        let wanted = [message("gone", None, "{}"), message("change", Some("7"), "{\"a\":1}")];
        for size in 1..=text.len() {
            let mut messages = Messages::default();
            let found: Vec<_> = text.chunks(size).flat_map(|piece| messages.read(piece)).collect();
            assert_eq!(found, wanted, "{size}");
        }
    }
}
