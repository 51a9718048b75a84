//! Rust mirrors of the structs that programs and user space share: same names, same order, compared with the objects' BTF by tests.

/// A struct of the programs' headers: its name there, and each field's name and offset.
#[cfg_attr(not(test), expect(dead_code, reason = "read by the test of the layout"))]
pub(crate) trait Mirror {
    const NAME: &'static str;
    const FIELDS: &'static [(&'static str, usize)];
}

/// A table of structs; a function cannot take field names.
macro_rules! mirrors {
    ($($(#[$doc:meta])* $name:ident = $c:literal { $($(#[$field_doc:meta])* $field:ident: $ty:ty,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(C)]
        pub(crate) struct $name { $($(#[$field_doc])* pub(crate) $field: $ty,)* }

        impl Mirror for $name {
            const NAME: &'static str = $c;
            const FIELDS: &'static [(&'static str, usize)] =
                &[$((stringify!($field), std::mem::offset_of!($name, $field)),)*];
        }
    )*};
}

pub(crate) use mirrors;
