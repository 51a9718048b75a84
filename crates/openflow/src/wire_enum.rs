//! Enumerations that are numbers on the wire.

/// Declares an enum with explicit wire numbers and its conversions, written once so that no pair of them drifts apart.
macro_rules! wire_enum {
    ($(#[$meta:meta])* $name:ident: $int:ty { $($(#[$doc:meta])* $variant:ident = $number:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum $name { $($(#[$doc])* $variant = $number,)* }

        impl $name {
            /// Every value, in order of declaration.
            pub const ALL: &'static [$name] = &[$($name::$variant,)*];

            /// The value's number in OpenFlow 1.3.
            pub const fn wire(self) -> $int {
                self as $int
            }

            /// The value with this number.
            pub const fn from_wire(number: $int) -> Option<Self> {
                match number { $($number => Some($name::$variant),)* _ => None }
            }
        }
    };
}
pub(crate) use wire_enum;
