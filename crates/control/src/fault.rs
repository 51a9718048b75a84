//! Refusals: what `domain` finds wrong, and what the controller does, as every error of suiro looks.

use api::{ErrorBody, Fault, chain};
use axum::http::StatusCode;
use serve::error::ApiError;

/// Faults that `domain` has found. There is always one.
pub fn found(status: StatusCode, step: &str, faults: Vec<domain::Fault>) -> ApiError {
    let mut faults = faults.into_iter().map(|fault| one(step, fault));
    let error = faults
        .next()
        .unwrap_or_else(|| Fault::new("file", step, "it is refused", "please report this"));
    ApiError::new(status, ErrorBody { error, others: faults.collect() })
}

fn one(step: &str, fault: domain::Fault) -> Fault {
    let short = fault.short_by.map(|short| format!("; short by {short}")).unwrap_or_default();
    let fits = (!fault.fits.is_empty()).then(|| format!("this fits: {}", fault.fits.join(", or ")));
    let remedy = fits.or(fault.remedy).unwrap_or_else(|| "correct the file".into());
    let told = Fault::new(fault.thing, step, fault.what + &short, remedy);
    match fault.at {
        Some(at) => told.at(&at.file, at.line),
        None => told,
    }
}

/// A refusal of the controller's own.
pub fn refused(
    status: StatusCode,
    thing: impl Into<String>,
    step: &str,
    cause: impl Into<String>,
    remedy: &str,
) -> ApiError {
    ApiError::new(status, Fault::new(thing, step, cause, remedy))
}

/// The store does not take or give something (503).
pub fn store(error: &crate::store::StoreError) -> ApiError {
    let fault = Fault::new("store", "keep what was asked", chain(error), error.remedy());
    ApiError::new(StatusCode::SERVICE_UNAVAILABLE, fault)
}
