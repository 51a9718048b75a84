//! What of a page a terminal shows: which tables, which rows, from which line, in which colours. Pure: keys in, text out.
//!
//! A page is a line of sums and tables with an empty line between them. A table's first line is its heading, in capitals.

/// Lines and columns of a terminal that does not say.
const USUAL: (usize, usize) = (24, 80);

const HELP: &str = "\
q          end
↑ ↓ PgUp PgDn Home End   scroll
Tab        one table, the next one, all
o          order of the rows
/ TEXT     only rows that have this text; Enter keeps it, Esc forgets it
?          this help, and back
";

/// Room, and whether it may be coloured.
#[derive(Clone, Copy)]
pub struct Screen {
    lines: usize,
    columns: usize,
    paint: bool,
}

impl Screen {
    /// Of this many lines and columns, as the terminal says.
    pub fn of(size: Option<(usize, usize)>, paint: bool) -> Self {
        let (lines, columns) =
            size.filter(|&(lines, columns)| lines > 0 && columns > 0).unwrap_or(USUAL);
        Self { lines: lines.max(3), columns, paint }
    }
}

/// What a user chose to see.
pub struct View {
    /// Ended by a key.
    pub over: bool,
    orders: &'static [&'static str],
    order: usize,
    /// Zero for all tables.
    table: usize,
    filter: String,
    typing: bool,
    help: bool,
    from: usize,
}

impl View {
    /// All of a page, its rows in the first of these orders.
    pub fn new(orders: &'static [&'static str]) -> Self {
        let filter = String::new();
        Self {
            over: false,
            orders,
            order: 0,
            table: 0,
            filter,
            typing: false,
            help: false,
            from: 0,
        }
    }

    /// The order of the rows.
    pub fn order(&self) -> &'static str {
        self.orders[self.order]
    }

    /// Keys as a terminal sends them.
    pub fn typed(&mut self, keys: &[u8]) {
        let text = String::from_utf8_lossy(keys);
        let mut rest = text.as_ref();
        while let Some(first) = rest.chars().next() {
            let key = KEYS.iter().find(|(code, _)| rest.starts_with(code));
            let length = key.map_or(first.len_utf8(), |(code, _)| code.len());
            match key {
                Some((_, key)) => self.pressed(*key),
                None if self.typing && !first.is_control() => self.filter.push(first),
                None => self.letter(first),
            }
            rest = &rest[length..];
        }
    }

    fn pressed(&mut self, key: Key) {
        match key {
            Key::Interrupt => self.over = true,
            Key::Up => self.from = self.from.saturating_sub(1),
            Key::Down => self.from += 1,
            Key::PageUp => self.from = self.from.saturating_sub(USUAL.0 - 4),
            Key::PageDown => self.from += USUAL.0 - 4,
            Key::Home => self.from = 0,
            Key::End => self.from = usize::MAX / 2,
            Key::Tab => (self.table, self.from) = (self.table + 1, 0),
            Key::Enter => self.typing = false,
            Key::Escape => {
                self.filter.clear();
                (self.typing, self.help) = (false, false);
            }
            Key::Backspace => drop(self.filter.pop()),
        }
    }

    fn letter(&mut self, letter: char) {
        match letter {
            'q' => self.over = true,
            'o' => self.order = (self.order + 1) % self.orders.len(),
            '/' => (self.typing, self.from) = (true, 0),
            '?' => (self.help, self.from) = (!self.help, 0),
            'k' => self.pressed(Key::Up),
            'j' => self.pressed(Key::Down),
            _ => {}
        }
    }

    /// The page as this user wants it, as long as the screen.
    pub fn shown(&mut self, page: &str, screen: Screen) -> String {
        let body = if self.help { HELP.to_owned() } else { self.chosen(page) };
        let lines: Vec<&str> = body.lines().collect();
        let room = screen.lines - 1;
        self.from = self.from.min(lines.len().saturating_sub(room));
        let mut text = String::new();
        for line in lines.iter().skip(self.from).take(room) {
            text += &painted(line, screen);
            text.push('\n');
        }
        let below = lines.len().saturating_sub(self.from + room);
        text + &bold(&cut(&self.foot(below), screen.columns), screen.paint)
    }

    fn chosen(&mut self, page: &str) -> String {
        let mut parts: Vec<String> = page.split("\n\n").map(|part| self.filtered(part)).collect();
        self.table %= parts.len() + 1;
        if self.table > 0 {
            parts = vec![parts.swap_remove(self.table - 1)];
        }
        parts.retain(|part| !part.is_empty());
        parts.join("\n")
    }

    /// A table's rows that have the text, below their heading; nothing if none has it.
    fn filtered(&self, part: &str) -> String {
        let wanted = self.filter.to_lowercase();
        let has = |line: &&str| line.to_lowercase().contains(&wanted);
        let mut lines = part.lines().filter(|line| is_heading(line) || has(line)).peekable();
        let only_heading = lines.clone().all(is_heading);
        if only_heading && !wanted.is_empty() {
            return String::new();
        }
        lines.by_ref().map(|line| format!("{line}\n")).collect()
    }

    fn foot(&self, below: usize) -> String {
        if self.typing {
            return format!("/{}_   Enter keeps it, Esc forgets it", self.filter);
        }
        let more = if below > 0 { format!("{below} more lines ↓   ") } else { String::new() };
        let filter =
            if self.filter.is_empty() { String::new() } else { format!("   /{}", self.filter) };
        let order = if self.orders.len() > 1 {
            format!("   o order: {}", self.order())
        } else {
            String::new()
        };
        format!("{more}q end   Tab table{order}   / filter   ? help{filter}")
    }
}

#[derive(Clone, Copy)]
enum Key {
    Interrupt,
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
    End,
    Tab,
    Enter,
    Escape,
    Backspace,
}

/// What terminals send (xterm's control sequences, ECMA-48). Longer ones stand before what they begin with.
const KEYS: [(&str, Key); 16] = [
    ("\x1b[A", Key::Up),
    ("\x1bOA", Key::Up),
    ("\x1b[B", Key::Down),
    ("\x1bOB", Key::Down),
    ("\x1b[5~", Key::PageUp),
    ("\x1b[6~", Key::PageDown),
    ("\x1b[H", Key::Home),
    ("\x1b[1~", Key::Home),
    ("\x1b[F", Key::End),
    ("\x1b[4~", Key::End),
    ("\x1b", Key::Escape),
    ("\t", Key::Tab),
    ("\n", Key::Enter),
    ("\r", Key::Enter),
    ("\x7f", Key::Backspace),
    ("\x03", Key::Interrupt),
];

fn is_heading(line: &str) -> bool {
    line.chars().any(char::is_alphabetic) && !line.chars().any(char::is_lowercase)
}

fn cut(line: &str, columns: usize) -> String {
    line.chars().take(columns).collect()
}

fn bold(line: &str, paint: bool) -> String {
    if paint { format!("\x1b[1m{line}\x1b[0m") } else { line.to_owned() }
}

fn painted(line: &str, screen: Screen) -> String {
    const WORRIES: [&str; 3] = [" fault", " no link", " down"];
    let line = cut(line, screen.columns);
    if is_heading(&line) {
        bold(&line, screen.paint)
    } else if screen.paint && WORRIES.iter().any(|word| line.contains(word)) {
        format!("\x1b[31m{line}\x1b[0m")
    } else {
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "suiro: 2 switches\n\nSWITCH  PORTS\nsw0  3\nsw1  1\n\nPORT  STATE\nsw0:a  up\nsw0:b  no link\nsw1:c  up\n";
    const WIDE: Screen = Screen { lines: 30, columns: 80, paint: false };

    fn view() -> View {
        View::new(&["load", "name"])
    }

    fn body(view: &mut View, screen: Screen) -> Vec<String> {
        let text = view.shown(PAGE, screen);
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.pop();
        lines
    }

    #[test]
    fn all_is_shown_first_and_a_foot_tells_the_keys() {
        let text = view().shown(PAGE, WIDE);
        assert!(text.contains("sw1:c  up"), "{text}");
        assert!(text.ends_with("q end   Tab table   o order: load   / filter   ? help"), "{text}");
    }

    #[test]
    fn tab_goes_through_the_tables_and_back_to_all() {
        let mut view = view();
        view.typed(b"\t\t");
        assert_eq!(body(&mut view, WIDE), ["SWITCH  PORTS", "sw0  3", "sw1  1"]);
        view.typed(b"\t\t");
        assert_eq!(body(&mut view, WIDE).len(), PAGE.lines().count());
    }

    #[test]
    fn a_filter_keeps_headings_of_rows_that_have_it() {
        let mut view = view();
        view.typed(b"/SW0:\r");
        assert_eq!(body(&mut view, WIDE), ["PORT  STATE", "sw0:a  up", "sw0:b  no link"]);
        assert!(view.shown(PAGE, WIDE).ends_with("/SW0:"));
        view.typed(b"/\x7f\x7f\x7f\x7f1");
        assert_eq!(body(&mut view, WIDE).len(), 5, "sw1 as a switch and as a port's");
        view.typed(b"\x1b");
        assert_eq!(body(&mut view, WIDE).len(), PAGE.lines().count());
    }

    #[test]
    fn letters_of_a_filter_are_no_keys() {
        let mut view = view();
        view.typed(b"/q\n");
        assert!(!view.over);
        view.typed(b"q");
        assert!(view.over);
    }

    #[test]
    fn scrolling_ends_where_the_page_ends() {
        let small = Screen { lines: 5, columns: 6, paint: false };
        let mut view = view();
        view.typed(b"\x1b[F");
        assert_eq!(body(&mut view, small), ["PORT  ", "sw0:a ", "sw0:b ", "sw1:c "]);
        view.typed(b"\x1b[A");
        assert_eq!(body(&mut view, small)[1], "PORT  ");
        view.typed(b"\x1b[H");
        assert_eq!(body(&mut view, small)[0], "suiro:");
    }

    #[test]
    fn colours_come_only_when_asked() {
        let painted = Screen { paint: true, ..WIDE };
        let text = view().shown(PAGE, painted);
        assert!(text.contains("\x1b[1mPORT  STATE\x1b[0m"), "{text:?}");
        assert!(text.contains("\x1b[31msw0:b  no link\x1b[0m"), "{text:?}");
        assert!(!view().shown(PAGE, WIDE).contains('\x1b'));
    }
}
