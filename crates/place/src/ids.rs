//! Names of cores, guests and units, each its own type.

use std::fmt;
use std::num::NonZeroU16;

/// A core, by the number that the kernel gives it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CoreId(pub u16);

/// A NUMA node, by the number that the kernel gives it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NumaNode(pub u16);

/// A guest on this host, 1..=65535. "Not given", the paper's 0, is `Option::None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VmId(NonZeroU16);

impl VmId {
    /// The largest that the flow control field carries: 7 bits (VS-extend §3.4, figure 3).
    pub const FCF_MAX: u16 = 127;

    /// `None` for 0.
    pub const fn new(id: u16) -> Option<Self> {
        match NonZeroU16::new(id) {
            Some(id) => Some(Self(id)),
            None => None,
        }
    }

    /// The number, never 0.
    pub const fn get(self) -> u16 {
        self.0.get()
    }

    /// Whether the flow control field has room for it.
    pub const fn fits_fcf(self) -> bool {
        self.get() <= Self::FCF_MAX
    }
}

/// A tenant, by the number that the operator gives it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TenantId(pub u32);

/// What is placed and moved as one: a flow group, or the flows of one entry. The number is the enforcing side's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnitId(pub u32);

macro_rules! shown_as_number {
    ($($name:ident),*) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }
    )*};
}
shown_as_number!(CoreId, NumaNode, VmId, TenantId, UnitId);
