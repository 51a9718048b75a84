//! CRC32c (Castagnoli, RFC 9260 appendix A) and its linearity.
//!
//! With bits reflected, as SCTP and iSCSI use it. A register state is a polynomial over GF(2) modulo P; appending a zero byte
//! multiplies it by x^8. Both facts make an update possible from the changed bytes alone: see [`crc32c_shift`].

/// P without its highest term, bits reflected.
const POLYNOMIAL: u32 = 0x82f6_3b78;

/// `TABLES[k][b]`: the register after byte `b` and then `k` zero bytes, from state 0.
static TABLES: [[u32; 256]; 8] = tables();

const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut state = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            state = times_x(state);
            bit += 1;
        }
        tables[0][byte] = state;
        byte += 1;
    }
    let mut k = 1;
    while k < 8 {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[k - 1][byte];
            tables[k][byte] = before >> 8 ^ tables[0][(before & 0xff) as usize];
            byte += 1;
        }
        k += 1;
    }
    tables
}

/// The polynomial times x, reduced.
const fn times_x(value: u32) -> u32 {
    if value & 1 == 0 { value >> 1 } else { value >> 1 ^ POLYNOMIAL }
}

/// The product of two polynomials, reduced. x^0 is the highest bit.
const fn product(a: u32, mut b: u32) -> u32 {
    let mut result = 0;
    let mut bit = 1 << 31;
    while bit != 0 {
        if a & bit != 0 {
            result ^= b;
        }
        b = times_x(b);
        bit >>= 1;
    }
    result
}

/// `POWERS[k]` = x^(8 · 2^k): the multiplier that stands for 2^k zero bytes.
static POWERS: [u32; 32] = {
    let mut powers = [0; 32];
    powers[0] = 1 << 31 >> 8;
    let mut k = 1;
    while k < 32 {
        powers[k] = product(powers[k - 1], powers[k - 1]);
        k += 1;
    }
    powers
};

/// The CRC32c of `bytes`.
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc32c_append(0, bytes)
}

/// The CRC32c of something whose CRC32c is `crc`, followed by `bytes`. Eight bytes a step (slicing-by-8).
pub fn crc32c_append(crc: u32, bytes: &[u8]) -> u32 {
    !raw(!crc, bytes)
}

/// The register after `bytes`, without the complement before and after.
fn raw(state: u32, bytes: &[u8]) -> u32 {
    let (blocks, rest) = bytes.as_chunks::<8>();
    let state = blocks.iter().fold(state, |state, block| {
        let word = u64::from_le_bytes(*block) ^ u64::from(state);
        let byte = |i: u32| (word >> (8 * i)) as u8 as usize;
        TABLES[7][byte(0)]
            ^ TABLES[6][byte(1)]
            ^ TABLES[5][byte(2)]
            ^ TABLES[4][byte(3)]
            ^ TABLES[3][byte(4)]
            ^ TABLES[2][byte(5)]
            ^ TABLES[1][byte(6)]
            ^ TABLES[0][byte(7)]
    });
    rest.iter().fold(state, |state, &byte| state >> 8 ^ TABLES[0][(state as u8 ^ byte) as usize])
}

/// How a CRC32c changes when bytes change: xor the result into the old CRC.
///
/// `difference` is old xor new of the bytes that changed, `after` the number of bytes between them and the end of what the CRC
/// covers. Those bytes need not be at hand: CRC(a) ^ CRC(b) depends on a ^ b only, and trailing zeros of a ^ b multiply by x^8 each.
/// Cost: one 32-step multiplication for each set bit of `after`.
pub fn crc32c_shift(difference: &[u8], after: u32) -> u32 {
    let mut state = raw(0, difference);
    for (k, &power) in POWERS.iter().enumerate() {
        if after >> k & 1 == 1 {
            state = product(power, state);
        }
    }
    state
}
