//! Files as users send them: which kind each is, and what it says.

use crate::fault;
use api::Declaration;
use axum::http::StatusCode;
use domain::file::slice::FileText;
use domain::{Domain, Slice};
use serve::error::ApiError;

/// Puts the texts that the client has sent in place of their paths.
///
/// # Errors
/// One was not sent.
pub fn with_files(slice: &mut Slice, declared: &Declaration) -> Result<(), ApiError> {
    let files = slice.spec.guests.values_mut().flat_map(|guest| guest.files.values_mut());
    for file in files {
        let FileText::From(path) = file else { continue };
        let text = declared.files.get(path).ok_or_else(|| {
            fault::refused(
                StatusCode::BAD_REQUEST,
                path.clone(),
                "read it",
                "its text was not sent with the slice's file",
                "use the suiro command",
            )
        })?;
        *file = FileText::Text(text.clone());
    }
    Ok(())
}
/// Whether a file declares a domain: its first key says so.
pub fn is_domain(text: &str) -> bool {
    let lines = text.lines().map(str::trim).find(|line| line.starts_with("suiro:"));
    lines.is_some_and(|line| line.contains("domain/"))
}

/// A slice.
///
/// # Errors
/// Everything that is wrong with the file.
pub fn slice(declared: &Declaration) -> Result<Slice, ApiError> {
    Slice::parse(&declared.file, &declared.text)
        .map_err(|faults| fault::found(StatusCode::BAD_REQUEST, "read it", faults))
}

/// A domain.
///
/// # Errors
/// Everything that is wrong with the file.
pub fn domain(declared: &Declaration) -> Result<Domain, ApiError> {
    Domain::parse(&declared.file, &declared.text)
        .map_err(|faults| fault::found(StatusCode::BAD_REQUEST, "read it", faults))
}
