//! Why a packet was not opened.

/// One variant and one counter per cause.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[repr(u8)]
pub enum Refusal {
    /// No SA of that SPI.
    #[error("no SA has its SPI")]
    UnknownSpi,
    /// A packet of that sequence number was accepted before.
    #[error("its sequence number was there before")]
    Replayed,
    /// Its sequence number is left of the window: whether it was there before is not known any more. Seldom with ESN: see [`Refusal::BadIcv`].
    #[error("its sequence number is too old")]
    TooOld,
    /// Changed on the way, made by someone else, or for another key. With ESN also one that is too old: it is taken for one of the next 2³².
    #[error("its integrity check value is wrong")]
    BadIcv,
    /// Too short for its header and ICV, or of an odd length.
    #[error("it is truncated")]
    Truncated,
    /// Authentic, but its padding is not 1, 2, 3, … (RFC 4303 §2.4).
    #[error("its padding is wrong")]
    BadPadding,
    /// Authentic, but not what the SA's mode carries.
    #[error("what is inside is not the tunnel's")]
    BadContents,
}

impl Refusal {
    /// Every one, in declaration order: index = counter.
    pub const ALL: [Self; 7] = [
        Self::UnknownSpi,
        Self::Replayed,
        Self::TooOld,
        Self::BadIcv,
        Self::Truncated,
        Self::BadPadding,
        Self::BadContents,
    ];
}
