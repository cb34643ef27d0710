//! Rows and columns: aligned for a terminal, two spaces between fields otherwise.

use super::BOLD;

/// A table of text. Fields never contain tabs or line ends: names and labels are checked where they enter.
#[derive(Debug)]
pub(crate) struct Table {
    head: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new<const N: usize>(
        head: [&'static str; N],
        rows: impl IntoIterator<Item = [String; N]>,
    ) -> Self {
        Self { head: head.to_vec(), rows: rows.into_iter().map(Vec::from).collect() }
    }

    /// The table as text, one line a row, each ended.
    pub(super) fn layout(&self, aligned: bool, marked: bool) -> String {
        let width = |column: usize| {
            let rows = self.rows.iter().map(|row| row[column].chars().count());
            rows.chain([self.head[column].chars().count()]).max().unwrap_or(0)
        };
        let widths: Vec<usize> =
            (0..self.head.len()).map(|column| if aligned { width(column) } else { 0 }).collect();
        let line = |fields: &[&str]| {
            let padded: Vec<String> =
                fields.iter().zip(&widths).map(|(field, width)| format!("{field:width$}")).collect();
            padded.join("  ").trim_end().to_owned()
        };
        let head = line(&self.head);
        let mut text = if marked { BOLD.on(&head) } else { head };
        text.push('\n');
        for row in &self.rows {
            let fields: Vec<&str> = row.iter().map(String::as_str).collect();
            text.push_str(&line(&fields));
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let rows = [["jobs/nightly", "7"], ["a", "12"]];
        Table::new(["NAME", "TOKEN"], rows.map(|row| row.map(String::from)))
    }

    #[test]
    fn columns_are_aligned_for_a_terminal_alone() {
        assert_eq!(table().layout(true, false), "NAME          TOKEN\njobs/nightly  7\na             12\n");
        assert_eq!(table().layout(false, false), "NAME  TOKEN\njobs/nightly  7\na  12\n");
    }

    #[test]
    fn only_a_marked_table_has_escape_codes() {
        assert!(table().layout(true, true).starts_with("\x1b[1mNAME"));
        assert!(!table().layout(true, false).contains('\x1b'));
    }
}
