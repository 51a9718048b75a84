//! Files of keys: what is read, what is refused, and that TOML agrees.

use super::*;
use proptest::prelude::*;

fn hex(byte: u8, len: usize) -> String {
    format!("{byte:02x}").repeat(len)
}

fn pair(spi: u32, byte: u8) -> String {
    let (key_out, key_in) = (hex(byte, 20), hex(byte + 1, 36));
    format!(
        "[[sa]]\nspi_out = {spi}\nspi_in = {spi:#x} # theirs\nkey_out = \"{key_out}\"\nkey_in = \"{key_in}\"\n"
    )
}

#[test]
fn a_file_has_pairs_of_sas_and_what_is_left_out_is_usual() {
    let text = format!(
        "# mine\n\n{}{}esn = false\nmode = \"tunnel\"\nreceive_only = true\n",
        pair(256, 1),
        pair(4097, 3)
    );
    let pairs = parse(&text).unwrap();
    let [first, second] = &pairs[..] else { panic!("{pairs:?}") };
    assert_eq!((first.spi_in, first.out.as_ref().map(|(spi, _)| *spi)), (256, Some(256)));
    assert_eq!((first.has_esn, first.sends, first.mode), (true, true, Mode::Transport));
    assert_eq!((second.has_esn, second.sends, second.mode), (false, false, Mode::Tunnel));
    let old = format!(
        "{}[[sa]]\nspi_in = 300\nkey_in = \"{}\"\nreceive_only = true",
        pair(256, 1),
        hex(9, 20)
    );
    assert!(parse(&old).unwrap()[1].out.is_none());
}

#[test]
fn what_is_wrong_is_told_with_its_line_and_without_a_key() {
    let own = pair(256, 1);
    let cases = [
        (String::new(), 1, "no SA sends"),
        (format!("{own}receive_only = true"), 1, "no SA sends"),
        ("spi_in = 256".into(), 1, "belongs to no SA"),
        (format!("{own}spi_in = 257"), 6, "said twice"),
        (format!("{own}\ncolour = 1"), 7, "`colour` is no name"),
        (format!("{own}esn = 1"), 6, "neither true nor false"),
        (format!("{own}mode = \"bridge\""), 6, "is no mode"),
        (format!("{own}what"), 6, "no line of a key file"),
        (own.replace("= 0x100", "= 255"), 3, "no SPI"),
        (own.replace("= 0x100", "= 0x100000000"), 3, "no SPI"),
        (own.replace(&hex(1, 20), &hex(1, 16)), 4, "20 bytes (AES-128) or 36"),
        (own.replace(&hex(1, 20), &"xy".repeat(20)), 4, "hexadecimal"),
        (own.replace("spi_out", "# spi_out"), 1, "no spi_out"),
        (own.replace("key_in", "# key_in"), 1, "no key_in"),
        (own.replace(&hex(2, 36), &hex(1, 20)), 1, "a key is there twice"),
        (format!("{own}{}", pair(257, 1)), 6, "a key is there twice"),
        (format!("{own}{}", pair(256, 3)), 6, "SPI 0x100 in the same direction"),
    ];
    for (text, line, cause) in cases {
        let error = parse(&text).map(|pairs| pairs.len()).expect_err(cause);
        assert!(error.line == line && error.cause.contains(cause), "{error}, not {cause}");
        let said = format!("{error:?}");
        assert!(!said.contains(&hex(1, 4)) && !said.contains("xyxy"), "{said}");
    }
}

/// The general parser's view, where it has one.
fn toml_sees(line: &str) -> Option<toml::Table> {
    line.parse().ok()
}

proptest! {
    #[test]
    fn a_line_that_is_accepted_means_what_toml_says(line in "(spi|key|esn|[a-z_]{0,3})[ \t]?=?[ \t]?(0x[0-9a-f]{0,5}|[0-9]{1,5}|true|false|\"[a-z0-9\\\\ ]{0,4}\"?|[x.]{1,2})[ \t]?(#.{0,4})?") {
        match Line::parse(&line) {
            Some(Line::Pair(name, value)) => {
                let table = toml_sees(&line);
                let seen = table.as_ref().and_then(|table| table.get(name));
                let agrees = match value {
                    Value::Number(number) => seen.and_then(toml::Value::as_integer) == i64::try_from(number).ok(),
                    Value::Flag(flag) => seen.and_then(toml::Value::as_bool) == Some(flag),
                    Value::Text(text) => seen.and_then(toml::Value::as_str) == Some(text),
                };
                prop_assert!(agrees, "{:?}: {:?}", line, table);
            }
            Some(Line::Blank) => prop_assert!(toml_sees(&line).is_some_and(|table| table.is_empty())),
            _ => {}
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in "(\\[\\[sa\\]\\]|[ -~]{0,20}|\n){0,12}") {
        let _ = parse(&text);
    }
}
