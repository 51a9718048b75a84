use super::*;
use proptest::prelude::*;
use wire::build::{Frame, Ipv4, Tcp};

fn one(code: u16, k: u32) -> Instruction {
    Instruction { code, jt: 0, jf: 0, k }
}

fn test(code: u16, jt: u8, jf: u8, k: u32) -> Instruction {
    Instruction { code, jt, jf, k }
}

/// `tcp port 80` over IPv4, as tcpdump -ddd prints it for a shorter form: ether type, protocol, no fragment, either port.
fn http() -> Program {
    let code = [
        one(0x28, 12),
        test(0x15, 0, 10, 0x800),
        one(0x30, 23),
        test(0x15, 0, 8, 6),
        one(0x28, 20),
        test(0x45, 6, 0, 0x1fff),
        one(0xb1, 14),
        one(0x48, 14),
        test(0x15, 2, 0, 80),
        one(0x48, 16),
        test(0x15, 0, 1, 80),
        one(0x06, 262_144),
        one(0x06, 0),
    ];
    Program::new(&code).unwrap()
}

#[test]
fn a_filter_takes_what_it_says_and_nothing_that_is_cut_short() {
    let frame = |from, to| {
        let tcp = Tcp { src: from, dst: to, ..Tcp::default() };
        Frame::ethernet([2; 6], [4; 6]).ipv4(Ipv4::default()).tcp(tcp).finish()
    };
    assert!(http().takes(&frame(80, 9)[..]) && http().takes(&frame(9, 80)[..]));
    assert!(!http().takes(&frame(81, 9)[..]));
    for len in 0..37 {
        assert!(!http().takes(&frame(9, 80)[..len]), "{len}");
    }
}

#[test]
fn what_would_not_end_or_leaves_its_bounds_is_refused() {
    let bad = |code: &[Instruction]| Program::new(code).unwrap_err();
    assert_eq!(bad(&[]), BadProgram::Length(0));
    assert_eq!(bad(&[one(6, 0); MOST + 1]), BadProgram::Length(MOST + 1));
    assert_eq!(bad(&[one(0, 0)]), BadProgram::Past { at: 0 });
    assert_eq!(bad(&[one(5, 0), one(5, u32::MAX), one(6, 0)]), BadProgram::Past { at: 1 });
    assert_eq!(bad(&[test(0x15, 0, 1, 0), one(6, 0)]), BadProgram::Past { at: 0 });
    for (code, k) in [(0x60, 16), (2, 16), (0x34, 0), (0x94, 0), (0x64, 32), (0x20, 0xffff_f000)] {
        assert_eq!(bad(&[one(code, k), one(6, 0)]), BadProgram::Bounds { at: 0, k }, "{code:#x}");
    }
    for code in [0x55, 0x38, 0xb4, 0xa1, 0x106, 0x0e, 0xffff] {
        assert_eq!(bad(&[one(code, 1), one(6, 0)]), BadProgram::Code { at: 0, code });
    }
}

#[test]
fn a_division_by_nothing_takes_no_packet() {
    let by_x = |code| Program::new(&[one(0, 7), one(code, 0), one(6, 1)]).unwrap();
    assert!(!by_x(0x3c).takes(&[0u8; 20][..]) && !by_x(0x9c).takes(&[0u8; 20][..]));
}

proptest! {
    #[test]
    fn any_program_is_refused_or_ends(
        code in proptest::collection::vec((0..0xc0u16, 0..9u8, 0..9u8, 0..70u32), 1..60),
        packet in proptest::collection::vec(any::<u8>(), 0..90),
    ) {
        let mut code: Vec<_> =
            code.into_iter().map(|(code, jt, jf, k)| Instruction { code, jt, jf, k }).collect();
        code.push(one(6, 1));
        // What is refused by its place is left out, so that the rest is looked at.
        while let Err(BadProgram::Code { at, .. } | BadProgram::Bounds { at, .. } | BadProgram::Past { at }) =
            Program::new(&code)
        {
            code.remove(at);
        }
        if let Ok(program) = Program::new(&code) {
            program.takes(&packet[..]);
        }
    }
}
