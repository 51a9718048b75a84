//! Multipart requests that come in parts (OpenFlow 1.3.5 §7.3.5): `OFPMPF_REQ_MORE` announces more under the same transaction.
//!
//! Only lists can be longer than a message, and of requests only table features are lists. What waits for its end is bounded, in bytes
//! and in number; a transaction that was refused is refused once, and the rest of its parts are swallowed.

use openflow::{ErrorCode, Fault, MultipartRequest, Part};

/// Bytes of messages that may wait. Chosen: twice the features of 254 tables as suiro describes them.
const MOST_BYTES: usize = 2 * 1024 * 1024;

/// Requests that may wait. Chosen: controllers send one at a time.
const MOST_BEGUN: usize = 16;

/// The requests of one connection whose ends have not come yet.
#[derive(Default)]
pub struct Assembly(Vec<Begun>);

struct Begun {
    xid: u32,
    bytes: usize,
    /// Its parts so far; `None` once it was refused.
    body: Option<MultipartRequest>,
}

impl Assembly {
    /// Takes a part, in a message of `bytes` bytes; gives the whole request with its last part.
    ///
    /// # Errors
    /// `OFPBRC_MULTIPART_BUFFER_OVERFLOW`, `OFPBRC_BAD_MULTIPART` when the parts are of several types, `OFPBRC_BAD_LEN` when what
    /// is no list goes on.
    pub fn take(
        &mut self,
        xid: u32,
        part: Part<MultipartRequest>,
        bytes: usize,
    ) -> Result<Option<MultipartRequest>, Fault> {
        let begun = self.0.iter().position(|begun| begun.xid == xid).map(|at| self.0.remove(at));
        if begun.is_none() && !part.more {
            return Ok(Some(part.body));
        }
        let joined = self.join(begun, part.body, bytes);
        match (joined, part.more) {
            (Ok((body, _)), false) => Ok(body),
            (Ok((body, bytes)), true) => {
                self.0.push(Begun { xid, bytes, body });
                Ok(None)
            }
            (Err(fault), more) => {
                if more && self.0.len() < MOST_BEGUN {
                    self.0.push(Begun { xid, bytes: 0, body: None });
                }
                Err(fault)
            }
        }
    }

    /// What has begun, longer by one part, and its bytes.
    fn join(
        &self,
        begun: Option<Begun>,
        part: MultipartRequest,
        bytes: usize,
    ) -> Result<(Option<MultipartRequest>, usize), Fault> {
        let (before, body) = match begun {
            None => (0, Some(part)),
            Some(Begun { body: None, .. }) => return Ok((None, 0)),
            Some(Begun { bytes, body: Some(body), .. }) => (bytes, Some(append(body, part)?)),
        };
        let waiting: usize = self.0.iter().map(|begun| begun.bytes).sum();
        if waiting + before + bytes > MOST_BYTES || self.0.len() >= MOST_BEGUN {
            return Err(Fault::new(
                ErrorCode::BadRequestMultipartBufferOverflow,
                "more parts of requests than may wait",
            ));
        }
        Ok((body, before + bytes))
    }
}

fn append(body: MultipartRequest, part: MultipartRequest) -> Result<MultipartRequest, Fault> {
    use MultipartRequest as Ask;
    if body.kind() != part.kind() {
        return Err(Fault::new(
            ErrorCode::BadRequestBadMultipart,
            "parts of several types in one request",
        ));
    }
    match (body, part) {
        (Ask::TableFeatures(mut tables), Ask::TableFeatures(more)) => {
            tables.extend(more);
            Ok(Ask::TableFeatures(tables))
        }
        (
            body @ (Ask::Desc
            | Ask::Table
            | Ask::GroupDesc
            | Ask::GroupFeatures
            | Ask::MeterFeatures
            | Ask::PortDesc),
            _,
        ) => Ok(body),
        _ => Err(Fault::new(ErrorCode::BadRequestBadLen, "a request goes on after its end")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use openflow::{PortNo, TableFeatures, TableId};

    fn table(number: u8) -> TableFeatures {
        TableFeatures {
            table: TableId(number),
            name: openflow::FixedText::from("t"),
            metadata_match: 0,
            metadata_write: 0,
            config: 0,
            max_entries: 0,
            properties: Vec::new(),
        }
    }

    fn tables(numbers: &[u8], more: bool) -> Part<MultipartRequest> {
        let tables = numbers.iter().copied().map(table).collect();
        Part { more, body: MultipartRequest::TableFeatures(tables) }
    }

    fn code(result: Result<Option<MultipartRequest>, Fault>) -> ErrorCode {
        result.unwrap_err().code
    }

    #[test]
    fn parts_of_two_transactions_are_told_apart_and_keep_their_order() {
        let mut parts = Assembly::default();
        assert_eq!(parts.take(1, tables(&[0, 1], true), 100), Ok(None));
        assert_eq!(parts.take(2, tables(&[7], true), 100), Ok(None));
        assert_eq!(
            parts.take(1, tables(&[2], false), 100),
            Ok(Some(tables(&[0, 1, 2], false).body))
        );
        assert_eq!(parts.take(2, tables(&[], false), 100), Ok(Some(tables(&[7], false).body)));
        assert_eq!(parts.take(2, tables(&[3], false), 100), Ok(Some(tables(&[3], false).body)));
    }

    #[test]
    fn a_request_too_long_is_refused_once_and_the_next_one_is_heard() {
        let mut parts = Assembly::default();
        assert_eq!(parts.take(1, tables(&[0], true), MOST_BYTES), Ok(None));
        let overflow = ErrorCode::BadRequestMultipartBufferOverflow;
        assert_eq!(code(parts.take(1, tables(&[1], true), 1)), overflow);
        assert_eq!(parts.take(1, tables(&[2], true), 1), Ok(None));
        assert_eq!(parts.take(1, tables(&[3], false), 1), Ok(None));
        assert!(parts.take(1, tables(&[3], false), 1).unwrap().is_some());
    }

    #[test]
    fn too_many_begun_requests_are_refused() {
        let mut parts = Assembly::default();
        for xid in 0..MOST_BEGUN as u32 {
            assert_eq!(parts.take(xid, tables(&[0], true), 1), Ok(None));
        }
        let overflow = ErrorCode::BadRequestMultipartBufferOverflow;
        assert_eq!(code(parts.take(99, tables(&[0], true), 1)), overflow);
    }

    #[test]
    fn only_lists_go_on() {
        let mut parts = Assembly::default();
        let port = |more| Part { more, body: MultipartRequest::PortStats(PortNo(1)) };
        assert_eq!(parts.take(1, port(true), 24), Ok(None));
        assert_eq!(code(parts.take(1, port(false), 24)), ErrorCode::BadRequestBadLen);
        assert_eq!(parts.take(2, tables(&[0], true), 24), Ok(None));
        assert_eq!(code(parts.take(2, port(false), 24)), ErrorCode::BadRequestBadMultipart);
        let desc = |more| Part { more, body: MultipartRequest::Desc };
        assert_eq!(parts.take(3, desc(true), 16), Ok(None));
        assert_eq!(parts.take(3, desc(false), 16), Ok(Some(MultipartRequest::Desc)));
    }
}
