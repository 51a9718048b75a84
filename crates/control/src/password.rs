//! Passwords: kept as argon2id (RFC 9106) in the form of the password hashing competition, and compared in constant time.

use argon2::password_hash::phc::PasswordHash;
use argon2::{Algorithm, Argon2, Params, PasswordHasher, PasswordVerifier, Version};

/// Memory in KiB, passes, lanes. Chosen: OWASP's first recommendation for argon2id (19 MiB, 2, 1).
const COST: (u32, u32, u32) = (19 * 1024, 2, 1);
/// Bytes of a password. Chosen: longer than what is guessed, shorter than what takes time to read.
pub const LENGTH: std::ops::RangeInclusive<usize> = 12..=256;

fn argon() -> Argon2<'static> {
    let (memory, passes, lanes) = COST;
    let params = Params::new(memory, passes, lanes, None).expect("the cost is within its bounds");
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
}

/// What is kept of a password.
pub fn kept(password: &str, salt: &[u8; 16]) -> String {
    let hash = argon().hash_password_with_salt(password.as_bytes(), salt);
    hash.expect("salt and output have lengths that argon2 takes").to_string()
}

/// Whether that is the password. Where nobody has one it takes as long as where somebody has.
pub fn is(password: &str, kept: Option<&str>) -> bool {
    let stranger = || self::kept("nobody's password", &[0; 16]);
    let Some(kept) = kept else {
        // The work is done all the same, and its result is of no use.
        let _ = stranger();
        return false;
    };
    let parsed = PasswordHash::new(kept);
    parsed.is_ok_and(|hash| argon().verify_password(password.as_bytes(), &hash).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_known_by_what_is_kept_which_is_not_it() {
        let text = kept("correct horse battery", &[7; 16]);
        assert!(text.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{text}");
        assert!(!text.contains("horse") && text != kept("correct horse battery", &[8; 16]));
        assert!(is("correct horse battery", Some(&text)));
        for (password, kept) in [
            ("correct horse batterz", Some(&*text)),
            ("", Some(&*text)),
            ("x", None),
            ("x", Some("$")),
        ] {
            assert!(!is(password, kept), "{password}");
        }
    }
}
