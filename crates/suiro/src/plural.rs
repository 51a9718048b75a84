//! Numbers of things in words: "1 switch", "2 switches".

/// `count` things; `many` is the word for any number but 1.
pub fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

#[test]
fn one_thing_is_not_many() {
    assert_eq!(
        [0, 1, 2].map(|count| counted(count, "switch", "switches")),
        ["0 switches", "1 switch", "2 switches"]
    );
}
