//! Script files: a sentence, tags, then steps with what came out of each below it.

use std::path::{Path, PathBuf};

/// One script as it stands on disk.
pub(crate) struct Script {
    /// The situation: the name of the file.
    pub(crate) name: String,
    path: PathBuf,
    text: String,
    /// What the script shows, in a sentence.
    pub(crate) sentence: String,
    /// What it is counted for.
    pub(crate) tags: Vec<String>,
    /// The rest of the file.
    pub(crate) blocks: Vec<Block>,
}

/// A part of a script.
pub(crate) enum Block {
    /// A comment or an empty line, kept as it is.
    Text(String),
    /// Lines that are carried out together. Their number in the file stands with them.
    Step(Vec<(usize, String)>),
}

impl Script {
    /// Reads a script. The output in it is not looked at here.
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let name = name.ok_or_else(|| format!("{} has no name", path.display()))?;
        let mut lines = text.lines();
        let head = |line: Option<&str>, prefix: &str| {
            let found = line.and_then(|line| line.strip_prefix(prefix)).map(str::to_owned);
            found.ok_or_else(|| format!("{name} must begin with {prefix:?}"))
        };
        let sentence = head(lines.next(), "# ")?;
        if !sentence.ends_with('.') {
            return Err(format!("{name}: the first line is not a sentence"));
        }
        let tags = head(lines.next(), "# shows: ")?.split(", ").map(str::to_owned).collect();
        let blocks = blocks(&text);
        Ok(Self { name, path: path.to_owned(), sentence, tags, blocks, text })
    }

    /// The file as it would be with this output below its steps, in order.
    pub(crate) fn with_output(&self, outputs: &[Vec<String>]) -> String {
        let mut outputs = outputs.iter();
        let mut text = String::new();
        for block in &self.blocks {
            match block {
                Block::Text(line) => text.extend([line, "\n"]),
                Block::Step(lines) => {
                    lines.iter().for_each(|(_, line)| text.extend([line, "\n"]));
                    let output = outputs.next().map_or(&[] as &[String], Vec::as_slice);
                    output.iter().for_each(|line| text.extend(["> ", line, "\n"]));
                }
            }
        }
        text
    }

    /// Compares, or writes if asked to.
    pub(crate) fn settle(&self, text: &str, update: bool) -> Result<(), String> {
        settle(&self.path, &self.text, text, update)
    }
}

/// Compares the new text of a file with the one on disk, or writes it if asked to.
pub(crate) fn settle(path: &Path, old: &str, new: &str, update: bool) -> Result<(), String> {
    if old == new {
        return Ok(());
    }
    if update {
        // Written aside: the tests of one run read these files at the same time.
        let aside = path.with_extension("new");
        let written = std::fs::write(&aside, new).and_then(|()| std::fs::rename(&aside, path));
        return written.map_err(|error| format!("{}: {error}", path.display()));
    }
    Err(format!("{} differs (- expected, + came out):\n{}", path.display(), difference(old, new)))
}

fn blocks(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open = false;
    for (number, line) in (1..).zip(text.lines()) {
        if line.starts_with('>') {
            open = false;
        } else if line.trim().is_empty() || line.starts_with('#') {
            open = false;
            blocks.push(Block::Text(line.to_owned()));
        } else if let (true, Some(Block::Step(lines))) = (open, blocks.last_mut()) {
            lines.push((number, line.to_owned()));
        } else {
            open = true;
            blocks.push(Block::Step(vec![(number, line.to_owned())]));
        }
    }
    blocks
}

/// The lines that differ, each stretch with the two lines before it.
fn difference(old: &str, new: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let (mut i, mut j) = (0, 0);
    let mut text = String::new();
    while i < old.len() || j < new.len() {
        if i < old.len() && old.get(i) == new.get(j) {
            (i, j) = (i + 1, j + 1);
            continue;
        }
        for line in &old[i.saturating_sub(2)..i] {
            text.extend(["    ", line, "\n"]);
        }
        let (skip_old, skip_new) = next_match(&old[i..], &new[j..]);
        old[i..i + skip_old].iter().for_each(|line| text.extend(["  - ", line, "\n"]));
        new[j..j + skip_new].iter().for_each(|line| text.extend(["  + ", line, "\n"]));
        (i, j) = (i + skip_old, j + skip_new);
    }
    text
}

/// How many lines of each to pass over until both go on alike: the shortest way.
fn next_match(old: &[&str], new: &[&str]) -> (usize, usize) {
    for sum in 1..=old.len() + new.len() {
        for skip in 0..=sum.min(old.len()) {
            if old.get(skip).is_some_and(|line| new.get(sum - skip) == Some(line)) {
                return (skip, sum - skip);
            }
        }
    }
    (old.len(), new.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_names_the_lines_and_what_stands_before_them() {
        assert_eq!(difference("a\nb\nc\nd", "a\nb\nx\nd"), "    a\n    b\n  - c\n  + x\n");
        assert_eq!(difference("a\nb", "a\nb\nc"), "    a\n    b\n  + c\n");
        assert_eq!(difference("a\nb", "a\nb"), "");
    }

    #[test]
    fn lines_between_outputs_are_one_step() {
        let blocks = blocks("# s.\nat 0\nA open\n> x\nA renew\n> y\n\nat 5\n");
        let steps: Vec<usize> = blocks
            .iter()
            .filter_map(|block| if let Block::Step(lines) = block { Some(lines.len()) } else { None })
            .collect();
        assert_eq!(steps, [2, 1, 1]);
    }
}
