//! How QEMU calls itself, its machine and its threads.

/// Longest name kept.
const NAME_MAX: usize = 64;

/// Whether a process of this name (15 bytes of it) is a machine. `qemu-x86_64` and its like run one program, not a machine.
pub(super) fn is_program(name: &str) -> bool {
    name.starts_with("qemu-system") || name == "qemu-kvm" || name == "kvm"
}

/// Whether a thread of this name is a virtual CPU: `CPU 0/KVM`. With one thread for all of them, TCG's is `ALL CPUs/TCG` (15 bytes: all of it).
pub(super) fn is_vcpu(name: &str) -> bool {
    let Some((who, accelerator)) = name.split_once('/') else { return false };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_one = who == "ALL CPUs" || who.strip_prefix("CPU ").is_some_and(is_number);
    is_one && matches!(accelerator, "KVM" | "TCG")
}

/// The machine's name: `-name vm1`, `-name guest=vm1,debug-threads=on`; else its `-uuid`.
pub(super) fn name(arguments: &[String]) -> Option<String> {
    let value = |option: &str| {
        let at = arguments.iter().position(|argument| {
            argument.strip_prefix('-').map(|rest| rest.strip_prefix('-').unwrap_or(rest))
                == Some(option)
        })?;
        arguments.get(at + 1).map(String::as_str)
    };
    let named = value("name").and_then(guest).or_else(|| value("uuid").map(str::to_owned))?;
    let plain = printable(&named);
    (!plain.is_empty()).then_some(plain)
}

/// The key `guest`, which may be left out when it stands first. A comma in a value is written twice.
fn guest(options: &str) -> Option<String> {
    let options = parts(options);
    let first = options.first().filter(|first| !first.contains('='));
    first
        .cloned()
        .or_else(|| options.iter().find_map(|part| Some(part.strip_prefix("guest=")?.to_owned())))
}

fn parts(options: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut rest = options.chars().peekable();
    while let Some(letter) = rest.next() {
        match (letter, rest.peek()) {
            (',', Some(',')) => {
                rest.next();
                parts.last_mut().expect("never empty").push(',');
            }
            (',', _) => parts.push(String::new()),
            _ => parts.last_mut().expect("never empty").push(letter),
        }
    }
    parts
}

/// Names are chosen by others, and are printed and used in paths: only letters, digits and a few signs stay.
fn printable(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "_-.:+@".contains(c) { c } else { '_' };
    name.chars().take(NAME_MAX).map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn named(arguments: &str) -> Option<String> {
        name(&arguments.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn a_machine_is_named_in_every_way_that_qemu_allows() {
        for line in [
            "qemu -name vm1",
            "qemu --name vm1",
            "qemu -m 64 -name guest=vm1,debug-threads=on",
            "qemu -name debug-threads=on,guest=vm1",
            "qemu -name vm1,process=x",
            "qemu -uuid 1-2-3 -name vm1",
        ] {
            assert_eq!(named(line).as_deref(), Some("vm1"), "{line}");
        }
        assert_eq!(named("qemu -uuid 1-2-3").as_deref(), Some("1-2-3"));
        assert_eq!(named("qemu -name debug-threads=on -uuid 1-2").as_deref(), Some("1-2"));
        assert_eq!(named("qemu -m 64"), None);
        assert_eq!(named("qemu -name"), None);
    }

    #[test]
    fn a_doubled_comma_is_part_of_the_name() {
        assert_eq!(parts("guest=a,,b,process=c"), ["guest=a,b", "process=c"]);
        assert_eq!(named("qemu -name guest=a,,b,process=c").as_deref(), Some("a_b"));
    }

    #[test]
    fn a_name_has_no_letters_that_a_terminal_obeys() {
        assert_eq!(named("qemu -name \u{1b}[2Jx/../y").as_deref(), Some("__2Jx_.._y"));
        assert_eq!(
            named(&format!("qemu -name {}", "x".repeat(100))).map(|name| name.len()),
            Some(64)
        );
    }

    proptest! {
        #[test]
        fn whatever_the_arguments_a_name_is_short_and_plain(arguments in proptest::collection::vec("-?-?(name|uuid|.{0,9})|(guest=)?.{0,80}", 0..6)) {
            let found = name(&arguments).unwrap_or_else(|| "none".into());
            prop_assert!((1..=NAME_MAX).contains(&found.len()));
            prop_assert!(found.bytes().all(|byte| byte.is_ascii_graphic()));
        }
    }

    #[test]
    fn virtual_cpus_are_told_by_their_names() {
        assert!(["CPU 0/KVM", "CPU 12/TCG", "ALL CPUs/TCG"].into_iter().all(is_vcpu));
        let others = ["CPU /KVM", "CPU 1", "CPU x/KVM", "IO mon_iothread", "call_rcu", "CPU 0/XYZ"];
        assert!(!others.into_iter().any(is_vcpu));
    }

    #[test]
    fn a_program_run_by_qemu_is_no_machine() {
        assert!(
            ["qemu-system-x86", "qemu-system-aar", "qemu-kvm", "kvm"].into_iter().all(is_program)
        );
        assert!(
            !["qemu-x86_64", "qemu-img", "kvm-nx-lpage-re", "bash"].into_iter().any(is_program)
        );
    }
}
