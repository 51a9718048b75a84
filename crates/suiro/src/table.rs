//! Columns of text, aligned.

use std::fmt;

/// Rows under a header; the last column is as wide as it likes.
pub struct Table {
    rows: Vec<Vec<String>>,
    right: Vec<bool>,
}

impl Table {
    /// With these headings; one that begins with `>` heads numbers, which stand at the right.
    pub fn new(headings: &[&str]) -> Self {
        let right = headings.iter().map(|heading| heading.starts_with('>')).collect();
        let header =
            headings.iter().map(|heading| heading.trim_start_matches('>').to_owned()).collect();
        Self { rows: vec![header], right }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    fn width(&self, column: usize) -> usize {
        self.rows
            .iter()
            .filter_map(|row| row.get(column))
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or(0)
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths: Vec<usize> = (0..self.right.len()).map(|column| self.width(column)).collect();
        for row in &self.rows {
            let mut line = String::new();
            for (column, cell) in row.iter().enumerate() {
                let (width, gap) = (widths[column], if column == 0 { "" } else { "  " });
                line += gap;
                line += &if self.right[column] {
                    format!("{cell:>width$}")
                } else {
                    format!("{cell:<width$}")
                };
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// A number in few digits: `12`, `1.5k`, `23M`.
pub fn short(number: f64) -> String {
    let scales = [(1e9, "G"), (1e6, "M"), (1e3, "k")];
    let Some((scale, unit)) = scales.into_iter().find(|(scale, _)| number >= *scale) else {
        return format!("{:.0}", number + 0.0); // no "-0"
    };
    let scaled = number / scale;
    if scaled < 10.0 {
        format!("{scaled:.2}{unit}")
    } else if scaled < 100.0 {
        format!("{scaled:.1}{unit}")
    } else {
        format!("{scaled:.0}{unit}")
    }
}

/// A time in few digits: `850 ns`, `3.2 us`, `15 ms`.
pub fn time(ns: u64) -> String {
    let scales = [(1e9, "s"), (1e6, "ms"), (1e3, "us")];
    let ns = ns as f64;
    let Some((scale, unit)) = scales.into_iter().find(|(scale, _)| ns >= *scale) else {
        return format!("{ns:.0} ns");
    };
    let digits = usize::from(ns / scale < 10.0);
    format!("{:.digits$} {unit}", ns / scale)
}

/// Text, or a dash for none.
pub fn dash(text: Option<impl ToString>) -> String {
    text.map_or_else(|| "-".into(), |text| text.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_numbers_stand_right() {
        let mut table = Table::new(&["NAME", ">N", "NOTE"]);
        table.row(vec!["a".into(), "1".into(), "x".into()]);
        table.row(vec!["long".into(), "10".into(), String::new()]);
        assert_eq!(table.to_string(), "NAME   N  NOTE\na      1  x\nlong  10\n");
    }

    #[test]
    fn times_have_two_digits_and_their_unit() {
        let said = [0, 850, 3_249, 15_400, 15_400_000, 2_000_000_000].map(time);
        assert_eq!(said, ["0 ns", "850 ns", "3.2 us", "15 us", "15 ms", "2.0 s"]);
    }

    #[test]
    fn short_numbers_keep_three_digits() {
        assert_eq!(
            [0.0, 999.0, 1500.0, 23_400.0, 999_000.0, 1e6, 14.88e6].map(short),
            ["0", "999", "1.50k", "23.4k", "999k", "1.00M", "14.9M"]
        );
    }
}
