//! What a group may do that may not do everything: by which socket it is answered, and which key names it.

/// What members of a group may do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Right {
    /// See everything.
    Read,
    /// See frames, too, and ask what becomes of one.
    Capture,
}

impl Right {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Read, Self::Capture];

    /// The name of its socket.
    pub fn socket(self) -> &'static str {
        match self {
            Self::Read => api::READ_SOCKET,
            Self::Capture => api::CAPTURE_SOCKET,
        }
    }

    /// The key that names its group.
    pub fn key(self) -> &'static str {
        match self {
            Self::Read => "read_group",
            Self::Capture => "capture_group",
        }
    }
}
