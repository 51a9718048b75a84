//! Objects of programs, as they are embedded.

use aya::{Ebpf, EbpfError, EbpfLoader};

/// Makes an object's maps. [`Ebpf::load`] reads all types of the kernel twice for it, 22 MB and 20 ms each time; this, once.
pub(crate) fn load(object: &[u8]) -> Result<Ebpf, EbpfError> {
    EbpfLoader::new().load(object)
}
