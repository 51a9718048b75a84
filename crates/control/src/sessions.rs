//! Sessions of browsers: 256 random bits in a cookie, a digest in the store, an end.
//!
//! The token that changes must bring is made from the cookie's secret, so both come and go together and a page that cannot read the one cannot know the
//! other. Pages of other origins can neither read it nor send the header (Fetch, "CORS-preflight").

use crate::authority::sha256;
use crate::record::hex;
use axum::http::{HeaderMap, header};
use serde::{Deserialize, Serialize};

/// A session ends so long after its sign-in (domain's design, D13).
pub const LASTS_S: u64 = 12 * 3600;
/// It ends so long after its last request.
pub const IDLE_S: u64 = 3600;
/// Sessions of a user at a time: the oldest goes. Chosen: all browsers of a person.
pub const OF_A_USER: usize = 16;
/// That there was a request is written down so often at most: a session may end so much earlier where the controller was restarted.
const WRITTEN_S: u64 = 60;
/// The cookie by TLS: the browser itself sees that it is `Secure`, of this host and of all paths (RFC 6265bis, 4.1.3.2).
const SECURE: &str = "__Host-suiro";
/// The cookie on loopback, where there is no TLS.
const NEAR: &str = "suiro";

/// A session, as it is kept under the digest of its secret.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Session {
    /// Whose.
    pub user: String,
    /// When it began, in seconds since 1970.
    pub began_s: u64,
    /// When its last request was.
    pub seen_s: u64,
}

impl Session {
    /// One that begins.
    pub fn new(user: &str, now_s: u64) -> Self {
        Self { user: user.into(), began_s: now_s, seen_s: now_s }
    }

    /// Whether it goes on.
    pub fn lives(&self, now_s: u64) -> bool {
        now_s < self.ends_s() && now_s < self.seen_s + IDLE_S
    }

    /// When it ends at the latest.
    pub fn ends_s(&self) -> u64 {
        self.began_s + LASTS_S
    }

    /// The same with a request now, if that is to be written down.
    pub fn seen(&self, now_s: u64) -> Option<Self> {
        (now_s >= self.seen_s + WRITTEN_S).then(|| Self { seen_s: now_s, ..self.clone() })
    }
}

/// A session's secret, as the cookie has it. It is printed nowhere else.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret([u8; 32]);

impl Secret {
    /// Of random bytes.
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The one that a request's cookie has, if it has one that can be read. On loopback without TLS it has another name.
    pub fn of(headers: &HeaderMap, is_near: bool) -> Option<Self> {
        let name = cookie(is_near);
        let cookies =
            headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs = cookies.flat_map(|line| line.split(';'));
        let value = pairs.find_map(|pair| pair.trim().strip_prefix(name)?.strip_prefix('='))?;
        let mut bytes = [0; 32];
        if value.len() != 64 || !value.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        for (byte, pair) in bytes.iter_mut().zip(value.as_bytes().chunks(2)) {
            *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
        }
        Some(Self(bytes))
    }

    /// What it is kept under.
    pub fn digest(&self) -> String {
        hex(&sha256(&self.0))
    }

    /// What changes must bring.
    pub fn csrf(&self) -> String {
        hex(&sha256(&[b"csrf", &self.0[..]].concat()))
    }

    /// Whether a change brings it. Both sides are digests of a secret: how long that takes tells nothing of it.
    pub fn is_meant(&self, headers: &HeaderMap) -> bool {
        let said = headers.get(api::CSRF_HEADER).map(|value| sha256(value.as_bytes()));
        said == Some(sha256(self.csrf().as_bytes()))
    }

    /// The header that gives a browser the cookie, by that door.
    pub fn set_cookie(&self, is_near: bool) -> String {
        format!("{}={}; Max-Age={LASTS_S}{}", cookie(is_near), hex(&self.0), attributes(is_near))
    }
}

/// The header that takes the cookie from a browser.
pub fn unset_cookie(is_near: bool) -> String {
    format!("{}=; Max-Age=0{}", cookie(is_near), attributes(is_near))
}

fn cookie(is_near: bool) -> &'static str {
    if is_near { NEAR } else { SECURE }
}

fn attributes(is_near: bool) -> &'static str {
    if is_near {
        "; Path=/; HttpOnly; SameSite=Strict"
    } else {
        "; Path=/; HttpOnly; SameSite=Strict; Secure"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3600;

    #[test]
    fn a_session_ends_twelve_hours_after_its_sign_in_and_an_hour_after_its_last_request() {
        let at = |began_h: u64, seen_m: u64| Session {
            user: "alice".into(),
            began_s: began_h * HOUR,
            seen_s: began_h * HOUR + seen_m * 60,
        };
        for (seen_m, now_m, lives) in [
            (0, 0, true),
            (0, 59, true),
            (0, 60, false),
            (59, 118, true),
            (59, 119, false),
            (700, 719, true),
            (700, 720, false),
            (719, 721, false),
        ] {
            let session = at(1000, seen_m);
            assert_eq!(session.lives(1000 * HOUR + now_m * 60), lives, "{seen_m} {now_m}");
        }
    }

    #[test]
    fn a_request_is_written_down_once_a_minute() {
        let session = Session::new("alice", 1000);
        assert_eq!(session.seen(1059), None);
        assert_eq!(session.seen(1060).unwrap(), Session { seen_s: 1060, ..session });
    }

    #[test]
    fn a_cookie_is_read_as_it_was_given_by_that_door_and_nothing_else_is_one() {
        let secret = Secret([0xa5; 32]);
        let read = |text: &str, is_near: bool| {
            let mut headers = HeaderMap::new();
            headers.insert(header::COOKIE, text.parse().unwrap());
            Secret::of(&headers, is_near)
        };
        for is_near in [false, true] {
            let given = secret.set_cookie(is_near);
            assert!(given.contains("; Path=/; HttpOnly; SameSite=Strict"), "{given}");
            assert_eq!(given.ends_with("; Secure"), !is_near);
            let pair = given.split(';').next().unwrap();
            assert!(read(&format!("a=b; {pair}; c"), is_near) == Some(secret.clone()));
            for bad in [&pair[..pair.len() - 1], &format!("{pair}0"), &pair.replace('a', "g")] {
                assert!(read(bad, is_near).is_none(), "{bad}");
            }
            assert!(read(pair, !is_near).is_none(), "one door's cookie is not the other's");
        }
        assert!(unset_cookie(false).starts_with("__Host-suiro=; Max-Age=0; Path=/"));
    }

    #[test]
    fn a_change_is_meant_only_with_the_token_of_its_own_session() {
        let secret = Secret([1; 32]);
        let with = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(api::CSRF_HEADER, value.parse().unwrap());
            secret.is_meant(&headers)
        };
        assert!(with(&secret.csrf()));
        assert!(!secret.is_meant(&HeaderMap::new()));
        for bad in ["", "1", &Secret([2; 32]).csrf(), &secret.digest(), &hex(&[1; 32])] {
            assert!(!with(bad), "{bad}");
        }
    }
}
