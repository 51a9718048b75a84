//! The first messages of a connection: both sides say which versions they speak, and one is agreed on (OpenFlow 1.3.5 §6.3.1).

use crate::agent::end::End;
use crate::agent::stream::Input;
use crate::agent::tap::Tap;
use openflow::{ErrorCode, ErrorKind, ErrorMsg, Header, Hello, Message, Version, VersionSet};
use std::io;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf};

/// Exchanges hellos and agrees on a version.
pub async fn negotiate<S: AsyncRead + AsyncWrite>(
    input: &mut Input<ReadHalf<S>>,
    write: &mut WriteHalf<S>,
    ours: VersionSet,
) -> Result<Version, End> {
    let newest = ours.known().next_back().expect("a switch speaks a version");
    let versions = ours.needs_bitmap().then_some(ours);
    send(write, input.tap(), (newest, 0), &Message::Hello(Hello { versions })).await?;
    let (header, hello) = first_message(input).await?;
    let agreed = hello.and_then(|hello| ours.agree(header.version, hello.versions));
    if let Some(version) = agreed {
        return Ok(version);
    }
    let text = match hello {
        Some(_) => format!("this switch speaks OpenFlow {ours}, and you do not"),
        None => "an OpenFlow hello comes first".to_owned(),
    };
    let kind = ErrorKind::Known(ErrorCode::HelloFailedIncompatible);
    let error = Message::Error(ErrorMsg { kind, data: text.into_bytes() });
    // In the peer's own version if it is one of ours at all, so that the peer can read it.
    let version = Version::from_wire(header.version).unwrap_or(newest);
    send(write, input.tap(), (version, header.xid), &error).await?;
    Err(match hello {
        Some(_) => End::NoVersion { ours, theirs: header.version },
        // Record types 21 (alert) and 22 (handshake), version 3.x (RFC 8446 §5.1).
        None if matches!(header.version, 21 | 22) && header.kind == 3 => End::TlsSpoken,
        None => End::NoHello { version: header.version, kind: header.kind },
    })
}

/// The header of the first message, and its hello if it is one.
async fn first_message<R: AsyncRead + Unpin>(
    input: &mut Input<R>,
) -> Result<(Header, Option<Hello>), End> {
    loop {
        // Eight bytes say whether this is OpenFlow: a web browser's request is refused before its "length" is awaited.
        if let Some(header) =
            Header::peek(input.rest()).filter(|header| header.kind != 0 || header.length < 8)
        {
            return Ok((header, None));
        }
        if let Ok(Some(range)) = input.next_frame() {
            let header = Header::peek(input.frame(&range)).expect("a frame has a header");
            return Ok(match Message::decode(input.frame(&range)) {
                Ok((header, Message::Hello(hello))) => (header, Some(hello)),
                _ => (header, None),
            });
        }
        input.fill().await?;
    }
}

async fn send(
    write: &mut (impl AsyncWrite + Unpin),
    tap: Option<&Tap>,
    (version, xid): (Version, u32),
    message: &Message,
) -> io::Result<()> {
    let bytes = message.encode(version, xid).map_err(io::Error::other)?;
    tap.inspect(|tap| tap.went(&bytes));
    write.write_all(&bytes).await?;
    write.flush().await
}
