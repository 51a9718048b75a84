//! Bytes on their way out, gathered and sent again and again.

/// A buffer that never gets shorter: what is appended is not cleared before, for its owner writes every byte of it.
#[derive(Default)]
pub(super) struct Outgoing {
    bytes: Vec<u8>,
    len: usize,
}

impl Outgoing {
    /// With memory for so many bytes, touched only as far as it is used.
    pub(super) fn of(bytes: usize) -> Self {
        Self { bytes: vec![0; bytes], len: 0 }
    }

    /// Room for so many bytes more. They hold what was sent before, perhaps another tenant's: the caller writes all of them.
    pub(super) fn append(&mut self, len: usize) -> &mut [u8] {
        let at = self.len;
        self.len += len;
        if self.bytes.len() < self.len {
            self.bytes.resize(self.len, 0);
        }
        &mut self.bytes[at..self.len]
    }

    /// What was appended.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn clear(&mut self) {
        self.len = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_appended_stands_behind_the_rest_and_is_gone_when_cleared() {
        let mut outgoing = Outgoing::default();
        outgoing.append(3).fill(1);
        outgoing.append(2).fill(2);
        assert_eq!(outgoing.bytes(), [1, 1, 1, 2, 2]);
        outgoing.clear();
        assert_eq!((outgoing.bytes(), outgoing.len()), (&[][..], 0));
        outgoing.append(1).fill(3);
        assert_eq!(outgoing.bytes(), [3]);
    }
}
