//! Filters as libpcap compiles them: classic BPF, checked and run.
//!
//! Whoever asks for a capture brings the program; nobody trusts it. A checked program jumps forward only and ends, so that a run takes no more steps
//! than it has instructions. What reads beyond the packet or divides by 0 takes no packet, as in libpcap. Extensions of kernels are refused.
//!
//! Source: McCanne and Jacobson, "The BSD Packet Filter" (1993); the numbers are those of Linux' `filter.h`.

/// Most instructions of a program. Chosen: the kernel's own bound.
pub const MOST: usize = 4096;
/// Cells of scratch memory.
const CELLS: usize = 16;

/// An instruction as it is compiled: code, two jumps, a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Instruction {
    /// What to do.
    pub code: u16,
    /// Instructions to skip if it is true.
    pub jt: u8,
    /// Instructions to skip if it is not.
    pub jf: u8,
    /// Its number.
    pub k: u32,
}

/// Why a program is not run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadProgram {
    /// None, or too many.
    #[error("{0} instructions; from 1 to {MOST} may be")]
    Length(usize),
    /// An instruction that there is not.
    #[error("instruction {at}: code {code:#x} is unknown")]
    Code {
        /// Its place.
        at: usize,
        /// Its code.
        code: u16,
    },
    /// A number that is out of bounds there.
    #[error("instruction {at}: {k} is out of bounds")]
    Bounds {
        /// Its place.
        at: usize,
        /// Its number.
        k: u32,
    },
    /// It jumps behind the program's end.
    #[error("instruction {at} leads past the end")]
    Past {
        /// Its place.
        at: usize,
    },
}

/// A packet to look at.
pub trait Packet {
    /// Bytes that it has.
    fn len(&self) -> usize;

    /// Copies the bytes from `at` on; what lies outside is never asked for.
    fn copy_to(&self, at: usize, into: &mut [u8]);

    /// Whether there is none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Packet for [u8] {
    fn len(&self) -> usize {
        <[u8]>::len(self)
    }

    fn copy_to(&self, at: usize, into: &mut [u8]) {
        into.copy_from_slice(&self[at..at + into.len()]);
    }
}

/// The second operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Operand {
    Number(u32),
    X,
}

/// Where a load finds its bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    At(u32),
    /// Behind X.
    Behind(u32),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Math {
    Add,
    Sub,
    Mul,
    Div,
    Or,
    And,
    Left,
    Right,
    Mod,
    Xor,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Test {
    Equal,
    Greater,
    AtLeast,
    AnyBit,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    /// Bytes of a size to A.
    Load(usize, Place),
    Length,
    Number(u32),
    Cell(u8),
    LengthToX,
    NumberToX(u32),
    CellToX(u8),
    /// Length of the IPv4 header there to X.
    HeaderToX(u32),
    Store(u8),
    StoreX(u8),
    Math(Math, Operand),
    Negate,
    Jump(usize),
    If(Test, Operand, u8, u8),
    AToX,
    XToA,
    /// It takes the packet, or not.
    Return(bool),
    ReturnA,
}

/// A program that may be run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Program(Box<[Step]>);

impl Program {
    /// Checks a program.
    ///
    /// # Errors
    /// [`BadProgram`].
    pub fn new(code: &[Instruction]) -> Result<Self, BadProgram> {
        if !(1..=MOST).contains(&code.len()) {
            return Err(BadProgram::Length(code.len()));
        }
        let step = |(at, one): (usize, &Instruction)| {
            let step = decode(at, one)?;
            let farthest = match step {
                Step::Jump(skip) => Some(at.saturating_add(skip).saturating_add(1)),
                Step::If(_, _, jt, jf) => Some(at + 1 + usize::from(jt.max(jf))),
                Step::Return(_) | Step::ReturnA => None,
                _ => Some(at + 1),
            };
            let is_inside = farthest.is_none_or(|next| next < code.len());
            is_inside.then_some(step).ok_or(BadProgram::Past { at })
        };
        Ok(Self(code.iter().enumerate().map(step).collect::<Result<_, _>>()?))
    }

    /// Whether it takes a packet.
    pub fn takes<P: Packet + ?Sized>(&self, packet: &P) -> bool {
        self.run(packet).unwrap_or(false)
    }

    /// `None`: it reads beyond the packet, or divides by 0.
    fn run<P: Packet + ?Sized>(&self, packet: &P) -> Option<bool> {
        let (mut a, mut x, mut cells, mut at) = (0u32, 0u32, [0u32; CELLS], 0);
        loop {
            let step = self.0.get(at)?;
            at += 1;
            match *step {
                Step::Load(size, Place::At(from)) => a = load(packet, from.into(), size)?,
                Step::Load(size, Place::Behind(from)) => {
                    a = load(packet, u64::from(x) + u64::from(from), size)?;
                }
                Step::Length => a = packet.len() as u32,
                Step::Number(k) => a = k,
                Step::Cell(cell) => a = cells[usize::from(cell) % CELLS],
                Step::LengthToX => x = packet.len() as u32,
                Step::NumberToX(k) => x = k,
                Step::CellToX(cell) => x = cells[usize::from(cell) % CELLS],
                Step::HeaderToX(from) => x = (load(packet, from.into(), 1)? & 0xf) * 4,
                Step::Store(cell) => cells[usize::from(cell) % CELLS] = a,
                Step::StoreX(cell) => cells[usize::from(cell) % CELLS] = x,
                Step::Math(math, operand) => a = of(math, a, value(operand, x))?,
                Step::Negate => a = a.wrapping_neg(),
                Step::Jump(skip) => at += skip,
                Step::If(test, operand, jt, jf) => {
                    let is_so = holds(test, a, value(operand, x));
                    at += usize::from(if is_so { jt } else { jf });
                }
                Step::AToX => x = a,
                Step::XToA => a = x,
                Step::Return(takes) => return Some(takes),
                Step::ReturnA => return Some(a != 0),
            }
        }
    }
}

fn load<P: Packet + ?Sized>(packet: &P, from: u64, size: usize) -> Option<u32> {
    let from = usize::try_from(from).ok()?;
    if from.checked_add(size)? > packet.len() {
        return None;
    }
    let mut bytes = [0; 4];
    packet.copy_to(from, &mut bytes[4 - size..]);
    Some(u32::from_be_bytes(bytes))
}

fn value(operand: Operand, x: u32) -> u32 {
    match operand {
        Operand::Number(k) => k,
        Operand::X => x,
    }
}

fn of(math: Math, a: u32, by: u32) -> Option<u32> {
    Some(match math {
        Math::Add => a.wrapping_add(by),
        Math::Sub => a.wrapping_sub(by),
        Math::Mul => a.wrapping_mul(by),
        Math::Div => a.checked_div(by)?,
        Math::Mod => a.checked_rem(by)?,
        Math::Or => a | by,
        Math::And => a & by,
        Math::Xor => a ^ by,
        Math::Left => a.checked_shl(by).unwrap_or(0),
        Math::Right => a.checked_shr(by).unwrap_or(0),
    })
}

fn holds(test: Test, a: u32, by: u32) -> bool {
    match test {
        Test::Equal => a == by,
        Test::Greater => a > by,
        Test::AtLeast => a >= by,
        Test::AnyBit => a & by != 0,
    }
}

fn decode(at: usize, one: &Instruction) -> Result<Step, BadProgram> {
    let &Instruction { code, jt, jf, k } = one;
    let unknown = BadProgram::Code { at, code };
    let bounds = BadProgram::Bounds { at, k };
    let operand = if code & 8 == 0 { Operand::Number(k) } else { Operand::X };
    let cell = || if k < CELLS as u32 { Ok(k as u8) } else { Err(bounds) };
    // Kernels have extensions at negative offsets.
    let place = || if k <= i32::MAX as u32 { Ok(k) } else { Err(bounds) };
    Ok(match code {
        0x20 => Step::Load(4, Place::At(place()?)),
        0x28 => Step::Load(2, Place::At(place()?)),
        0x30 => Step::Load(1, Place::At(place()?)),
        0x40 => Step::Load(4, Place::Behind(place()?)),
        0x48 => Step::Load(2, Place::Behind(place()?)),
        0x50 => Step::Load(1, Place::Behind(place()?)),
        0x80 => Step::Length,
        0x00 => Step::Number(k),
        0x60 => Step::Cell(cell()?),
        0x81 => Step::LengthToX,
        0x01 => Step::NumberToX(k),
        0x61 => Step::CellToX(cell()?),
        0xb1 => Step::HeaderToX(place()?),
        0x02 => Step::Store(cell()?),
        0x03 => Step::StoreX(cell()?),
        0x84 => Step::Negate,
        0x05 => Step::Jump(k as usize),
        0x06 => Step::Return(k != 0),
        0x16 => Step::ReturnA,
        0x07 => Step::AToX,
        0x87 => Step::XToA,
        _ if code & 7 == 4 && code <= 0xaf => {
            let math = [
                Math::Add,
                Math::Sub,
                Math::Mul,
                Math::Div,
                Math::Or,
                Math::And,
                Math::Left,
                Math::Right,
            ];
            let math = match code >> 4 {
                9 => Math::Mod,
                10 => Math::Xor,
                which => *math.get(usize::from(which)).ok_or(unknown)?,
            };
            let is_bad = match math {
                Math::Div | Math::Mod => operand == Operand::Number(0),
                Math::Left | Math::Right => code & 8 == 0 && k > 31,
                _ => false,
            };
            if is_bad {
                return Err(bounds);
            }
            Step::Math(math, operand)
        }
        _ if code & 7 == 5 && code <= 0x4f => {
            let tests = [Test::Equal, Test::Greater, Test::AtLeast, Test::AnyBit];
            let test = usize::from(code >> 4).checked_sub(1).and_then(|which| tests.get(which));
            Step::If(*test.ok_or(unknown)?, operand, jt, jf)
        }
        _ => return Err(unknown),
    })
}

#[cfg(test)]
mod tests;
